// The results of a run of a loop.
#include <algorithm>
#include <cstring>

#include "reel/core/ops/elementwise/add_to.h"
#include "reel/core/ops/list/list.h"
#include "reel/core/types/sizes.h"
#include "reel/trace/executors/loop/loop_types.h"
#include "reel/trace/executors/plan/base/plan_views.h"
#include "reel/trace/executors/plan/loop/clear_bytes.h"
#include "reel/trace/executors/plan/loop/loop_run.h"

namespace reel {
namespace {

/// out = blocks + out, where `out` holds the last block of terms.
void round_blocks(Tensor& blocks, const Tensor& out) {
  add_block(blocks, out);
  std::copy_n(blocks.data<double>(), out.numel(), out.data<float>());
}

void give_result(Tensor& out, const Tensor& value) {
  if (out.is_defined())
    copy_elements(out.data<void>(), value);
  else
    out = value;
}

void set_number(Tensor& out, std::int64_t number) {
  if (!out.is_defined()) out = Tensor(allocate_block(TensorType(i32)));
  *out.data<std::int32_t>() = checked_i32(number, "loop", "the number of iterations");
}

}  // namespace

void LoopRun::finish() {
  for (std::size_t i = 0; i < attrs_.carries.size(); ++i) {
    Tensor& out = out_.carries[i];
    if (loop_.carries[i].is_list) {
      out = std::move(carried_lists_[i]);
      continue;
    }
    if (!out.is_defined()) out = Tensor(allocate_block(carry_type(i)));
    const std::int64_t bytes = loop_.carries[i].bytes;
    if (bytes && out.data<char>() != carries_[i])
      std::memcpy(out.data<char>(), carries_[i], static_cast<std::size_t>(bytes));
  }
  const Dim fresh = attrs_.trips.makes_dim ? iterations_.made_dim() : Dim(0);
  for (std::size_t j = 0; j < stacks_.size(); ++j)
    std::visit([&](const auto& stack) { stack.finish(out_.stacks[j], fresh); }, stacks_[j]);
  for (std::size_t i = 0; i < attrs_.sums.size(); ++i) finish_sum(i);
  set_number(out_.trips, attrs_.chunking.over_chunks ? loop_.chunks.steps : iterations_.count());
  if (out_.lengths) give_result(*out_.lengths, iterations_.reached());
  if (out_.token) *out_.token = iterations_.token(fresh);
  loop_.body->release();
  if (attrs_.chunking.over_chunks && loop_.chunks.has_rest()) loop_.rest->release();
  if (attrs_.cond) loop_.cond->release();
}

void LoopRun::finish_sum(std::size_t i) {
  Tensor& out = out_.sums[i];
  if (formal_sum(i).is_list()) {
    const Tensor sum = sums_[i].take();
    out = sum.is_defined()
              ? owned(sum)
              : empty_list(type_without_iterations(attrs_, loop_.input_types, formal_sum(i)));
  } else if (!iterations_.count())
    clear_bytes(out.data<char>(), 0, out.type().bytes());
  else if (!wide_.empty() && wide_[i].is_defined())
    round_blocks(wide_[i], out);
}

}  // namespace reel
