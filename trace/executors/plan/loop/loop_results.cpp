// The results of a run of a loop.
#include <algorithm>
#include <cstring>

#include "reel/core/ops/list/list.h"
#include "reel/core/runtime/memory.h"
#include "reel/core/types/sizes.h"
#include "reel/trace/executors/loop/loop_types.h"
#include "reel/trace/executors/plan/base/plan_views.h"
#include "reel/trace/executors/plan/loop/loop_run.h"

namespace reel {
namespace {

void clear(char* data, std::int64_t from, std::int64_t to) {
  if (from < to) std::memset(data + from, 0, static_cast<std::size_t>(to - from));
}

/// out = blocks + out, where `out` holds the last block of terms.
void round_blocks(Tensor& blocks, const Tensor& out) {
  add_block(blocks, out);
  std::copy_n(blocks.data<double>(), out.numel(), out.data<float>());
}

void set_number(Tensor& out, std::int64_t number) {
  if (!out.is_defined()) out = Tensor(allocate_block(TensorType(i32)));
  *out.data<std::int32_t>() = checked_i32(number, "loop", "the number of iterations");
}

}  // namespace

TensorType stacked(const TensorType& term, const Dim& dim) {
  Dims dims{dim};
  dims.insert(dims.end(), term.dims().begin(), term.dims().end());
  return term.with(dims);
}

void LoopRun::finish() {
  for (int i = 0; i < attrs_.carries; ++i) {
    Tensor& out = out_[i];
    if (loop_.carries[i].is_list) {
      out = std::move(carried_lists_[i]);
      continue;
    }
    if (!out.is_defined()) out = Tensor(allocate_block(carry_type(i)));
    const std::int64_t bytes = loop_.carries[i].bytes;
    if (bytes && out.data<char>() != carries_[i])
      std::memcpy(out.data<char>(), carries_[i], static_cast<std::size_t>(bytes));
  }
  const Dim fresh = attrs_.makes_dim ? iterations_.made_dim() : Dim(0);
  for (int j = 0; j < attrs_.stacks; ++j) finish_stack(j, fresh);
  for (int i = 0; i < attrs_.sums; ++i) finish_sum(i);
  set_number(out_[attrs_.trips_output()],
             attrs_.over_chunks ? loop_.chunks.steps : iterations_.count());
  if (attrs_.makes_lengths()) give_result(attrs_.lengths_output(), iterations_.reached());
  if (attrs_.makes_dim) out_[attrs_.token_output()] = iterations_.token(fresh);
  loop_.body->release();
  if (attrs_.over_chunks && loop_.chunks.has_rest()) loop_.rest->release();
  if (attrs_.cond) loop_.cond->release();
}

void LoopRun::finish_stack(int j, const Dim& fresh) {
  Tensor& out = out_[attrs_.first_stack() + j];
  const TensorType& formal =
      attrs_.body.graph->types[attrs_.body.graph->outputs[attrs_.carries + j]];
  if (const Ref<Spilled>& steps = stacks_[static_cast<std::size_t>(j)].spilled) {
    const bool is_list = attrs_.is_list(j);
    const TensorType step =
        is_list ? steps->type().value_or(type_without_iterations(attrs_, loop_.input_types,
                                                                 remove_chunk_dim(attrs_, formal)))
                : remove_chunk_dim(attrs_, loop_.body->output_type(attrs_.carries + j));
    const Dim& dim = attrs_.makes_dim ? fresh : attrs_.stack_dims[j];
    out = make_saved(
        is_list ? step.as_list() : stacked(step, dim.has_size() ? dim : Dim(iterations_.count())),
        Ref<ResidualSource>(steps.get()), 0);
    return;
  }
  if (const Ref<ResidualSource> kept = lists_[static_cast<std::size_t>(j)].in_file()) {
    const TensorType element = type_without_iterations(attrs_, loop_.input_types, formal);
    out = make_saved(element.as_list(), kept, 0);
    return;
  }
  if (attrs_.is_list(j)) {
    const Tensors& elements = lists_[j].elements();
    const TensorType element = element_of_stack(attrs_, static_cast<std::size_t>(j), formal);
    out = make_list(elements.empty() ? type_without_iterations(attrs_, loop_.input_types, element)
                                     : common_type(elements),
                    elements);
    return;
  }
  const TensorType& term = loop_.body->output_type(attrs_.carries + j);
  Stack& stack = stacks_[j];
  if (stack.growing) {
    const Dim dim = attrs_.makes_dim ? fresh : Dim(iterations_.count());
    out = Tensor(allocate_block(stacked(term, dim)));
    count_as(out, attrs_.memory_of(static_cast<std::size_t>(j)));
    const std::int64_t count = std::min(iterations_.count(), dim.size());
    stack.growing->copy_to(out.data<char>(), count);
    clear(out.data<char>(), count * stack.bytes, dim.size() * stack.bytes);
    return;
  }
  if (rows_) return;  // which writes the zeros
  // If iterations end before the dim does, the remaining positions are zero.
  clear(stack.data, iterations_.count() * stack.bytes, out.type().bytes());
}

void LoopRun::finish_sum(int i) {
  const std::size_t k = first_sum() + i;
  Tensor& out = out_[attrs_.first_sum() + i];
  if (is_list(k)) {
    const Tensor sum = sums_[i].take();
    out = sum.is_defined() ? owned(sum)
                           : empty_list(type_without_iterations(
                                 attrs_, loop_.input_types,
                                 attrs_.body.graph->types[attrs_.body.graph->outputs[k]]));
  } else if (!iterations_.count())
    clear(out.data<char>(), 0, out.type().bytes());
  else if (!wide_.empty() && wide_[static_cast<std::size_t>(i)].is_defined())
    round_blocks(wide_[static_cast<std::size_t>(i)], out);
}

void LoopRun::give_result(std::size_t k, const Tensor& value) {
  if (out_[k].is_defined())
    copy_elements(out_[k].data<void>(), value);
  else
    out_[k] = value;
}

}  // namespace reel
