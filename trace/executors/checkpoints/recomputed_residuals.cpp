#include "reel/trace/executors/checkpoints/recomputed_residuals.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "reel/core/ops/list/list.h"
#include "reel/core/runtime/memory.h"
#include "reel/trace/executors/loop/iterations.h"
#include "reel/trace/executors/loop/loop_types.h"

namespace reel {
namespace {

std::atomic<std::int64_t> steps_advanced{0}, steps_saved{0};

}  // namespace

RecomputedSteps recomputed_steps() { return {steps_advanced, steps_saved}; }

RecomputedResiduals::RecomputedResiduals(const RecomputeAttrs& attrs, Tensors inputs,
                                         std::vector<TensorType> types)
    : attrs_(attrs), types_(std::move(types)), segments_(attrs, inputs) {
  const std::size_t lists = inputs.size() - loop().carries.size();
  const Tensors checkpoints = list_elements(inputs[lists - 1]);  // [time step, chunk size] of each
  if (!checkpoints.empty()) chunk_size_ = checkpoints[0].data<std::int64_t>()[1];
  chunk_count_ = (segments_.steps() + chunk_size_ - 1) / chunk_size_;
  std::vector<std::int64_t> chunks;
  for (const Tensor& checkpoint : checkpoints)
    chunks.push_back(chunk_at(checkpoint.data<std::int64_t>()[0]));
  schedule_.emplace(loop(), std::move(chunks), chunk_count_, chunk_size_ != 1);
  for (std::size_t i = lists; i < inputs.size(); ++i) {
    checkpoints_.push_back(inputs[i]);
    in_memory_.push_back(residual_value(inputs[i]) ? Tensors() : list_elements(inputs[i]));
  }
}

/// Returns the value of a carry at a checkpoint.
Tensor RecomputedResiduals::carry_at(std::size_t carry, std::size_t checkpoint) const {
  const ResidualValue* const in_file = residual_value(checkpoints_[carry]);
  if (!in_file) return in_memory_[carry][checkpoint];
  const auto position = static_cast<std::int64_t>(checkpoint);
  const std::lock_guard lock(in_file->steps->mutex);
  in_file->steps->need(position, 1);
  return in_file->steps->tensor(in_file->index, position);
}

/// All chunks have the same size except the last one by position, which a reverse loop runs first.
std::int64_t RecomputedResiduals::step_of(std::int64_t chunk) const {
  if (!loop().trips.is_reverse) return std::min(chunk * chunk_size_, segments_.steps());
  return chunk ? segments_.steps() - (chunk_count_ - chunk) * chunk_size_ : 0;
}
std::int64_t RecomputedResiduals::chunk_at(std::int64_t step) const {
  if (!loop().trips.is_reverse) return step / chunk_size_;
  return step ? chunk_count_ - (segments_.steps() - step) / chunk_size_ : 0;
}

void RecomputedResiduals::need(std::int64_t first, std::int64_t count) {
  if (is_there_ && first == first_ && count == count_) return;
  std::int64_t begin = first / chunk_size_, end = (first + count + chunk_size_ - 1) / chunk_size_;
  if (loop().trips.is_reverse) {
    begin = chunk_count_ - begin;
    end = chunk_count_ - end;
    std::swap(begin, end);
  }
  is_there_ = false;
  first_ = first;
  count_ = count;
  joined_.reset();
  while (!window_.empty() && window_.back().begin >= end) window_.pop_back();
  if (!window_.empty() && window_.back().end < end) window_.clear();
  const bool are_in_one = !window_.empty() && window_.back().begin <= begin;
  std::int64_t left = are_in_one ? begin : end;
  while (left > begin && !window_.empty()) {
    copy_to_request(window_.back());
    left = std::max(begin, window_.back().begin);
    if (window_.back().begin >= begin) window_.pop_back();
  }
  while (left > begin) left = run_before(begin, left, end - begin);
  is_there_ = true;
}

/// Runs chunks [begin, end) from the state before them, a chunked loop one chunk at a time.
ReplaySegments::Ran RecomputedResiduals::run(std::int64_t begin, std::int64_t end,
                                             const Tensors& carries, bool saves) {
  (saves ? steps_saved : steps_advanced) += step_of(end) - step_of(begin);
  if (chunk_size_ == 1) return segments_.run(begin, end, carries, saves);
  ReplaySegments::Ran last{carries, {}};
  for (std::int64_t chunk = begin; chunk < end; ++chunk)
    last = segments_.run(step_of(chunk), step_of(chunk + 1), last.carries, saves);
  return last;
}

RecomputedResiduals::State RecomputedResiduals::state_at(std::size_t checkpoint) const {
  State state{schedule_->checkpoints()[checkpoint], {}};
  for (std::size_t i = 0; i < checkpoints_.size(); ++i)
    state.carries.push_back(carry_at(i, checkpoint));
  return state;
}

/// Returns the state at the next checkpoint. Behind the last checkpoint, runs all chunks but the
/// last one, and returns the state before that.
RecomputedResiduals::State RecomputedResiduals::last_state_behind(std::size_t checkpoint) {
  if (checkpoint + 1 < schedule_->checkpoints().size()) return state_at(checkpoint + 1);
  State state = state_at(checkpoint);
  const std::int64_t last = std::max(state.chunk, chunk_count_ - 1);
  return {last, run(state.chunk, last, state.carries, false).carries};
}

/// Returns true if sizes of the state may change from iteration to iteration.
bool RecomputedResiduals::state_has_any_size() const {
  const Graph& body = *loop().body.graph;
  const auto carries = body_inputs(loop()).carries;
  return std::any_of(carries.begin(), carries.end(), [&](ValueId carry) {
    const TensorType& type = body.types[carry];
    return !type.is_list() && !type.is_known();
  });
}

/// If the state's sizes change, takes the maximum over both ends of the gap, as states grow up to
/// the next checkpoint.
ReverseSchedule::Bytes RecomputedResiduals::bytes_behind(std::size_t checkpoint) {
  const ReverseSchedule::Bytes first = bytes_at(state_at(checkpoint));
  if (!state_has_any_size()) return first;
  const ReverseSchedule::Bytes last = bytes_at(last_state_behind(checkpoint));
  return {std::max(first.state, last.state), std::max(first.chunk, last.chunk)};
}

ReverseSchedule::Bytes RecomputedResiduals::bytes_at(const State& state) {
  ReverseSchedule::Bytes result{0, bytes_of_step(state) * chunk_size_};
  for (const Tensor& carry : state.carries) result.state += bytes_of(carry);
  return result;
}

/// Returns the residual bytes of one time step. If some sizes are known at run time only, measures
/// them by running the time step behind `state`.
std::int64_t RecomputedResiduals::bytes_of_step(const State& state) {
  const Graph& body = *loop().body.graph;
  const auto terms = body_outputs(loop()).stacks;
  const auto is_known = [&](std::size_t i) {  // lengths of inner loops' lists are unknown
    return slice_type(types_[i]).is_known() && !body.types[terms[stack_of(i)]].is_list();
  };
  bool are_known = true;
  for (std::size_t i = 0; i < types_.size(); ++i) are_known = are_known && is_known(i);
  std::int64_t all = 0, most = 0;
  const auto add = [&](std::size_t i, std::int64_t bytes) {
    all += bytes;
    if (is_dense(i)) most = std::max(most, bytes);
  };
  if (are_known) {
    for (std::size_t i = 0; i < types_.size(); ++i) add(i, slice_type(types_[i]).bytes());
  } else {
    const std::int64_t step = step_of(state.chunk);
    const Tensors residuals = segments_.run(step, step + 1, state.carries, true).residuals;
    for (std::size_t i = 0; i < residuals.size(); ++i) add(i, bytes_of(residuals[i]));
  }
  return segments_.is_dense() ? all : all + most;  // values are copied one after the other
}

/// Recomputes the run of chunks that ends at `end`, and returns its first chunk. Chunks [begin,
/// end) are the rest of a request of `together` chunks.
std::int64_t RecomputedResiduals::run_before(std::int64_t begin, std::int64_t end,
                                             std::int64_t together) {
  if (schedule_->find(begin, end, together, [&](std::size_t at) { return bytes_behind(at); }))
    states_.assign(1, state_at(schedule_->checkpoint()));
  while (states_.size() > 1 && states_.back().chunk >= end) states_.pop_back();
  State state = states_.back();
  for (const Revolve::Advance& advance : schedule_->advances_to(end)) {
    state.carries = run(advance.from, advance.to, state.carries, false).carries;
    state.chunk = advance.to;
    if (!advance.takes_checkpoint) continue;
    for (const Tensor& carry : state.carries)
      count_as_made_since(begin_, carry, MemoryClass::checkpoints);
    states_.push_back(state);
  }
  const std::int64_t first = state.chunk;
  while (state.chunk < end) {
    const std::int64_t to = chunk_size_ == 1 ? end : state.chunk + 1;
    ReplaySegments::Ran ran = run(state.chunk, to, state.carries, true);
    Segment segment = as_segment(state.chunk, to, std::move(ran.residuals));
    const bool has_all = !joined_ && state.chunk <= begin && to == end;
    if (!has_all && to > begin) copy_to_request(segment);
    if (has_all || state.chunk < begin) window_.push_back(std::move(segment));
    state = {to, std::move(ran.carries)};
  }
  return first;
}

RecomputedResiduals::Segment RecomputedResiduals::as_segment(std::int64_t begin, std::int64_t end,
                                                             Tensors residuals) const {
  Segment segment{begin, end, Tensors(types_.size()), std::vector<Tensors>(types_.size())};
  for (std::size_t i = 0; i < types_.size(); ++i) {
    Tensor residual = std::move(residuals[i]);
    if (is_dense(i) && segments_.is_dense()) {
      segment.whole[i] = std::move(residual);
      count_as(segment.whole[i], MemoryClass::saved);
      continue;
    }
    Tensors& steps = segment.elements[i];
    steps = list_elements(residual);
    const MemoryClass what = loop().stacks[stack_of(i)].memory_class();
    for (const Tensor& step : steps) count_as_made_since(begin_, step, what);
    if (!is_dense(i)) continue;
    residual = Tensor();
    segment.whole[i] = in_one_buffer(std::exchange(steps, {}));
  }
  return segment;
}

/// Copies the requested time steps of a segment into the buffer of the request.
void RecomputedResiduals::copy_to_request(const Segment& segment) {
  const std::int64_t first = first_position(segment.begin, segment.end),
                     begin = std::max(first, first_),
                     end = std::min(first + step_of(segment.end) - step_of(segment.begin),
                                    first_ + count_);
  if (!joined_) {
    joined_ = Segment{0, 0, Tensors(types_.size()), std::vector<Tensors>(types_.size())};
    for (std::size_t i = 0; i < types_.size(); ++i)
      if (is_dense(i)) {
        const Dim& dim = segment.whole[i].dims()[0];
        const Dim joined_dim = dim.is_named() ? Dim(dim.name(), count_) : Dim(count_);
        joined_->whole[i] = Tensor(allocate_block(chunk_type(segment.whole[i].type(), joined_dim)));
        count_as(joined_->whole[i], MemoryClass::saved);
      } else {
        joined_->elements[i].resize(static_cast<std::size_t>(count_));
      }
  }
  for (std::size_t i = 0; i < types_.size(); ++i) {
    if (!is_dense(i)) {
      std::copy_n(segment.elements[i].begin() + (begin - first), end - begin,
                  joined_->elements[i].begin() + (begin - first_));
      continue;
    }
    const std::int64_t bytes = slice_type(segment.whole[i].type()).bytes();
    std::memcpy(joined_->whole[i].data<char>() + (begin - first_) * bytes,
                segment.whole[i].data<char>() + (begin - first) * bytes,
                static_cast<std::size_t>((end - begin) * bytes));
  }
}

/// Copies time steps, ordered by position, into one buffer; frees each after copying.
Tensor RecomputedResiduals::in_one_buffer(Tensors steps) {
  const TensorType& type = steps[0].type();
  Dims dims{Dim(std::ssize(steps))};
  if (type.is_named()) dims[0] = Dim("steps", std::ssize(steps));
  dims.insert(dims.end(), type.dims().begin(), type.dims().end());
  const Tensor all(allocate_block(type.with(dims)));
  count_as(all, MemoryClass::saved);
  char* to = all.data<char>();
  for (Tensor& step : steps) {
    const std::int64_t bytes = step.type().bytes();
    std::memcpy(to, step.data<char>(), static_cast<std::size_t>(bytes));
    to += bytes;
    step = Tensor();
  }
  return all;
}

char* RecomputedResiduals::data(std::size_t i, std::int64_t position) {
  const auto [segment, first] = place();
  if (!is_dense(i))
    return segment.elements[i][static_cast<std::size_t>(position - first)].data<char>();
  const Tensor& whole = segment.whole[i];
  return whole.data<char>() + (position - first) * slice_type(whole.type()).bytes();
}

Tensor RecomputedResiduals::tensor(std::size_t i, std::int64_t position) {
  const auto [segment, first] = place();
  const std::int64_t at = position - first;
  if (!is_dense(i)) return segment.elements[i][static_cast<std::size_t>(at)];
  const Tensor& whole = segment.whole[i];
  return Tensor(allocate_view(slice_type(types_[i]), whole.ref(),
                              whole.data<char>() + at * slice_type(whole.type()).bytes()));
}

/// Counts checkpoints in memory, and the residuals of the window.
std::int64_t RecomputedResiduals::bytes_held() const {
  std::int64_t result = 0;
  const auto add = [&](const Tensors& tensors) {
    for (const Tensor& tensor : tensors)
      if (tensor.is_defined()) result += bytes_of(tensor);
  };
  const auto add_segment = [&](const Segment& segment) {
    add(segment.whole);
    for (const Tensors& elements : segment.elements) add(elements);
  };
  for (const Tensors& carries : in_memory_) add(carries);
  for (const State& state : states_) add(state.carries);
  for (const Segment& segment : window_) add_segment(segment);
  if (joined_) add_segment(*joined_);
  return result;
}

void run_recompute(KernelArgs& args) {
  const RecomputeAttrs& attrs = args.attr<RecomputeAttrs>();
  Tensors inputs;
  for (std::size_t i = 0; i < args.in.size(); ++i) inputs.push_back(args.input(i));
  const Ref<ResidualSource> steps(
      new RecomputedResiduals(attrs, std::move(inputs), {args.types.begin(), args.types.end()}));
  for (std::size_t i = 0; i < args.out.size(); ++i)
    args.out[i] = make_residual(args.types[i], steps, i);
}

}  // namespace reel
