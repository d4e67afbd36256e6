#include "reel/trace/executors/loop/finished_entries.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <vector>

#include "reel/core/ops/list/list.h"
#include "reel/core/ops/loop/entries.h"
#include "reel/core/runtime/residual_source.h"

namespace reel {
namespace {

/// Returns the dims that stay unchanged: entry dims, dims of elements of arrays in the state, and
/// dims of a state that change, which the body handles itself.
Dims dims_kept(const LoopAttrs& attrs, std::span<const TensorType> inputs) {
  Dims result = attrs.entries.dims;
  result.insert(result.end(), attrs.entries.kept_dims.begin(), attrs.entries.kept_dims.end());
  const Graph& body = *attrs.body.graph;
  const Dims changing = changing_dims(attrs);
  const auto formals = body_inputs(attrs).carries;
  const auto carries = operands_of(attrs, inputs).carries;
  for (std::size_t i = 0; i < carries.size(); ++i) {
    const Dims &formal = body.types[formals[i]].dims(), &actual = carries[i].dims();
    for (std::size_t axis = 0; axis < formal.size(); ++axis)
      if (contains(changing, formal[axis])) result.push_back(actual[axis]);
  }
  return result;
}

/// Returns the data of a value that stands for saved steps of an inner loop, or of elements that
/// do: replacing dims needs it.
Tensor in_memory(const Tensor& x) {
  const ResidualValue* const residual = residual_value(x);
  if (x.type().is_list()) {
    if (residual) return x;
    Tensors elements = list_elements(x);
    bool stands_for_steps = false;
    for (Tensor& element : elements) {
      if (!element.is_defined() || !residual_value(element)) continue;
      element = in_memory(element);
      stands_for_steps = true;
    }
    return stands_for_steps ? make_list(x.type().element(), elements) : x;
  }
  if (!residual || !residual->steps->is_uniform()) return x;
  const Tensor result(allocate_block(x.type()));
  const std::lock_guard lock(residual->steps->mutex);
  // The loop may have ended before the last element of its dim.
  const std::int64_t ran = std::min(x.type().sizes()[0], residual->steps->count());
  const std::int64_t bytes = ran * slice_type(x.type()).bytes();
  if (bytes) {
    residual->steps->need(0, ran);
    std::memcpy(result.data<char>(), residual->steps->data(residual->index, 0),
                static_cast<std::size_t>(bytes));
  }
  std::memset(result.data<char>() + bytes, 0, static_cast<std::size_t>(x.type().bytes() - bytes));
  return result;
}

}  // namespace

/// The captures of the body as finished entries see them, in the order of body_captures.
class FinishedEntries::SeenCaptures {
 public:
  explicit SeenCaptures(std::size_t count) : filled_(count) {}

  /// Returns capture i; compute() makes it if it is new. Two threads may compute one capture at
  /// once: compute() runs ops, which must not wait for a lock.
  template <class Compute>
  Tensor get(std::size_t i, const Compute& compute) {
    {
      const std::lock_guard lock(mutex_);
      if (filled_[i].is_defined()) return filled_[i];
    }
    Tensor made = compute();
    const std::lock_guard lock(mutex_);
    if (!filled_[i].is_defined()) filled_[i] = std::move(made);
    return filled_[i];
  }

 private:
  std::mutex mutex_;
  Tensors filled_;
};

FinishedEntries::FinishedEntries(const LoopAttrs& attrs, std::span<const TensorType> inputs)
    : attrs_(attrs), dims_(dims_kept(attrs, inputs)) {
  const auto operands = operands_of(attrs, inputs);
  // The body itself keeps such carries valid, in entries that have finished too.
  for (std::size_t i = 0; i < attrs.carries.size(); ++i)
    if (attrs.carries[i].fill == FinishedFill::as_is) dims_.keep_sizes(operands.carries[i]);
  for (const auto& [symbol, actual] : attrs.body.bindings) dims_.add(actual);
  for (std::size_t i = 0; i < attrs.carries.size(); ++i)
    if (attrs.carries[i].fill != FinishedFill::as_is) dims_.add(operands.carries[i]);
  // Residual lists in memory may have dims that an iteration made.
  for (std::size_t i = 0; i < attrs.slices.size(); ++i)
    if (const LoopSlice& slice = attrs.slices[i];
        !operands.slices[i].is_list() || slice.fill != FinishedFill::as_is || !slice.is_in_memory())
      dims_.add(slice_type(operands.slices[i]));
  for (const int capture : attrs.body_captures) dims_.add(operands.captures[capture]);
  // Sums are cotangents of another loop's captures. Iterations of the other loop read the captures'
  // dims in this form.
  const Graph& body = *attrs.body.graph;
  DimEnv env = body_env(attrs, inputs);
  for (const ValueId term : body_outputs(attrs).sums)
    for (const Dim& dim : body.types[term].dims())
      if (env.knows(dim)) dims_.add(env.resolve(dim));
}

void FinishedEntries::set_running(const Tensor& running) {
  if (has_running(running)) return;
  running_ = running;
  dims_.set_running(running);
  captures_ = std::make_shared<SeenCaptures>(attrs_.body_captures.size());
}

bool FinishedEntries::has_running(const Tensor& running) const {
  return running_.is_defined() && running_.type() == running.type() &&
         !std::memcmp(running_.data<bool>(), running.data<bool>(),
                      static_cast<std::size_t>(running.type().bytes()));
}

Tensor FinishedEntries::seen(const Tensor& x, std::size_t input) const {
  const LoopLeaf leaf = body_input_at(attrs_, input + 1);
  const FinishedFill fill = fill_of(attrs_, leaf);
  // A list is not filled but shared, and may be written in place if nothing else holds it.
  if (!leaf.is(LeafKind::capture) || x.type().is_list()) return filled(x, fill);
  return captures_->get(leaf.index, [&] { return filled(x, fill); });
}

Tensor FinishedEntries::filled(const Tensor& x, FinishedFill fill) const {
  if (fill == FinishedFill::running) return dims_.filled(x);
  if (fill == FinishedFill::running_padding)
    return fill_running_with_padding(dims_.renamed(x), running_);
  return dims_.renamed(fill == FinishedFill::zero ? zero_finished(x, running_) : x);
}

SubGraph FinishedEntries::body() const {
  SubGraph result = attrs_.body;
  for (auto& [symbol, actual] : result.bindings) actual = dims_(actual);
  return result;
}

Tensor FinishedEntries::made(const Tensor& x, std::size_t output) const {
  const auto is_shown = [&](const Dim& dim) { return dims_.is_shown(dim); };
  const Tensor read = std::any_of(x.dims().begin(), x.dims().end(), is_shown) ? in_memory(x) : x;
  const LoopLeaf leaf = body_output_at(attrs_, output);
  if (adds_finished(attrs_, leaf)) return dims_.restored(collect_running(read, running_));
  return leaf.is(LeafKind::sum) ? relabelled(read) : dims_.restored(read);
}

/// Returns x with its dims outside, for terms without finished entries: the running entries have
/// the same lengths under both dims, so that no element moves.
Tensor FinishedEntries::relabelled(const Tensor& x) const {
  if (x.type().is_list() || !leaf_mask(x.type(), running_)) return dims_.restored(x);
  Dims dims;
  for (const Dim& dim : x.dims()) {
    dims.push_back(dims_.restored(dim));
    if (dims.back().size() != dim.size()) return dims_.restored(x);
  }
  return dims == x.dims() ? x : with_dims_of(x, x.type().with(dims));
}

Tensor FinishedEntries::term(const Tensor& made, std::size_t output) const {
  const LoopLeaf leaf = body_output_at(attrs_, output);
  const bool is_raw = leaf.is(LeafKind::stack) && attrs_.stacks[leaf.index].is_raw();
  return is_raw || adds_finished(attrs_, leaf) ? made : zero_finished(made, running_);
}

Tensor FinishedEntries::next(const Tensor& made, const Tensor& before, std::size_t carry) const {
  if (attrs_.carries[carry].fill == FinishedFill::as_is) return made;
  return keep_finished(dims_.completed(made, before), before, running_);
}

}  // namespace reel
