#include "reel/trace/executors/recalled.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "reel/core/memory.h"
#include "reel/core/ops/list.h"
#include "reel/trace/executors/iterations.h"
#include "reel/trace/executors/loop_types.h"
#include "reel/trace/executors/way_back.h"

namespace reel {
namespace {

std::atomic<std::int64_t> advanced_steps{0}, saved_steps{0};

}  // namespace

RecalledSteps recalled_steps() { return {advanced_steps, saved_steps}; }

Recalled::Recalled(const RecallAttrs& attrs, Tensors inputs, std::vector<TensorType> types)
    : attrs_(attrs), types_(std::move(types)), segments_(attrs, inputs) {
  const std::size_t lists = inputs.size() - static_cast<std::size_t>(loop().carries);
  const Tensors kept = list_elements(inputs[lists - 1]);
  if (!kept.empty()) unit_ = kept[0].data<std::int64_t>()[1];
  units_ = (segments_.steps() + unit_ - 1) / unit_;
  for (const Tensor& steps : kept) kept_.push_back(unit_at(steps.data<std::int64_t>()[0]));
  for (std::size_t i = lists; i < inputs.size(); ++i) {
    checkpoints_.push_back(inputs[i]);
    in_memory_.push_back(saved_value(inputs[i]) ? Tensors() : list_elements(inputs[i]));
  }
}

/// What a carry was at a checkpoint.
Tensor Recalled::carry_at(std::size_t carry, std::size_t checkpoint) const {
  const SavedValue* const saved = saved_value(checkpoints_[carry]);
  if (!saved) return in_memory_[carry][checkpoint];
  const auto position = static_cast<std::int64_t>(checkpoint);
  const std::lock_guard lock(saved->steps->mutex);
  saved->steps->need(position, 1);
  return saved->steps->tensor(saved->index, position);
}

/// Chunks are equal but for the one at the end of the positions, which a reverse loop begins with.
std::int64_t Recalled::step_of(std::int64_t unit) const {
  if (!loop().is_reverse) return std::min(unit * unit_, segments_.steps());
  return unit ? segments_.steps() - (units_ - unit) * unit_ : 0;
}
std::int64_t Recalled::unit_at(std::int64_t step) const {
  if (!loop().is_reverse) return step / unit_;
  return step ? units_ - (segments_.steps() - step) / unit_ : 0;
}
void Recalled::need(std::int64_t first, std::int64_t count) {
  if (first == first_ && count == count_) return;
  std::int64_t begin = first / unit_, end = (first + count + unit_ - 1) / unit_;
  if (loop().is_reverse) {
    begin = units_ - begin;
    end = units_ - end;
    std::swap(begin, end);
  }
  while (parts_.empty() || begin < parts_.front().begin || end > parts_.back().end) {
    const bool goes_on =  // some of them are there
        !parts_.empty() && begin < parts_.front().begin && parts_.front().begin < end;
    if (!goes_on) parts_.clear();
    make_part(goes_on ? parts_.front().begin : end, end, end - begin);
  }
  first_ = first;
  count_ = count;
  pieces_.assign(types_.size(), Tensor());
}

/// Units from `begin` to before `end`, from the state before them.
Segments::Ran Recalled::run(std::int64_t begin, std::int64_t end, const Tensors& carries,
                            bool saves) {
  (saves ? saved_steps : advanced_steps) += step_of(end) - step_of(begin);
  if (unit_ == 1) return segments_.run(begin, end, carries, saves);
  Segments::Ran all{carries, {}};
  std::vector<Tensors> parts(saves ? types_.size() : 0);
  for (std::int64_t unit = begin; unit < end; ++unit) {
    Segments::Ran ran = segments_.run(step_of(unit), step_of(unit + 1), all.carries, saves);
    all.carries = std::move(ran.carries);
    for (std::size_t i = 0; i < parts.size(); ++i) parts[i].push_back(std::move(ran.saved[i]));
  }
  for (Tensors& of_value : parts) all.saved.push_back(joined(std::move(of_value)));
  return all;
}

/// The units behind the last checkpoint before `end`.
void Recalled::find_gap(std::int64_t end, std::int64_t together) {
  const auto gap = static_cast<std::size_t>(std::lower_bound(kept_.begin(), kept_.end(), end) -
                                            kept_.begin() - 1);
  if (revolve_ && gap == gap_) return;
  gap_ = gap;
  State state{kept_[gap], {}};
  for (std::size_t i = 0; i < checkpoints_.size(); ++i) state.carries.push_back(carry_at(i, gap));
  states_.assign(1, std::move(state));
  const std::int64_t next = gap + 1 < kept_.size() ? kept_[gap + 1] : units_;
  std::int64_t state_bytes = 0, unit_bytes = 0;
  if (loop().checkpoint_bytes) {
    for (std::size_t i = 0; i < checkpoints_.size(); ++i) {
      const Graph& body = *loop().body.graph;
      const TensorType& type = body.types[body.inputs[1 + i]];
      const bool may_grow = !type.is_list() && !type.is_known() && gap + 1 < kept_.size();
      const std::int64_t bytes = bytes_of(states_[0].carries[i]);
      state_bytes += may_grow ? std::max(bytes, bytes_of(carry_at(i, gap + 1))) : bytes;
    }
    unit_bytes = bytes_of_step() * unit_;
  }
  const WayBack way = way_back(loop(), next - kept_[gap], state_bytes, unit_bytes, together);
  revolve_.emplace(kept_[gap], way.leaf, way.slots);
}

/// What one step takes; of values whose sizes a run tells, as the step behind the checkpoint does.
std::int64_t Recalled::bytes_of_step() {
  const Graph& body = *loop().body.graph;
  const auto is_known = [&](std::size_t i) {  // a loop inside may have saved as many as it liked
    const ValueId term = body.outputs[loop().first_stack() + stack_of(i)];
    return slice_type(types_[i]).is_known() && !body.types[term].is_list();
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
    const State& state = states_[0];
    const Tensors saved =
        segments_.run(step_of(state.unit), step_of(state.unit) + 1, state.carries, true).saved;
    for (std::size_t i = 0; i < saved.size(); ++i) add(i, bytes_of(saved[i]));
  }
  return segments_.is_dense() ? all : all + most;  // one value is put in one piece at a time
}

/// The part of the window that ends at `end`; of those behind it, what lies before `last` stays.
/// together: how many units are asked for at a time.
void Recalled::make_part(std::int64_t end, std::int64_t last, std::int64_t together) {
  while (!parts_.empty() && parts_.back().begin >= last) parts_.pop_back();
  find_gap(end, together);
  if (loop().checkpoint_bytes && !parts_.empty()) keep_next_steps(parts_.back(), last);
  while (states_.size() > 1 && states_.back().unit >= end) states_.pop_back();
  State state = states_.back();
  for (const Revolve::Advance& advance : revolve_->way_to(end)) {
    state.carries = run(advance.from, advance.to, state.carries, false).carries;
    state.unit = advance.to;
    if (!advance.keeps) continue;
    for (const Tensor& carry : state.carries)
      count_as_made_since(begin_, carry, MemoryClass::checkpoints);
    states_.push_back(state);
  }
  // As many units as are asked for at a time are a part: chunks that are joined take their memory
  // twice.
  std::vector<Part> made;
  const std::int64_t most = unit_ == 1 ? end - state.unit : together;
  while (state.unit < end) {
    const std::int64_t to = end - (end - state.unit - 1) / most * most;
    Segments::Ran ran = run(state.unit, to, state.carries, true);
    made.push_back(as_part(state.unit, to, std::move(ran.saved)));
    state = {to, std::move(ran.carries)};
  }
  parts_.insert(parts_.begin(), std::make_move_iterator(made.begin()),
                std::make_move_iterator(made.end()));
}

Recalled::Part Recalled::as_part(std::int64_t begin, std::int64_t end, Tensors saved) const {
  Part part{begin, end, Tensors(types_.size()), std::vector<Tensors>(types_.size())};
  for (std::size_t i = 0; i < types_.size(); ++i) {
    Tensor of_value = std::move(saved[i]);
    if (is_dense(i) && segments_.is_dense()) {
      part.whole[i] = std::move(of_value);
      count_as(part.whole[i], MemoryClass::saved);
      continue;
    }
    Tensors& steps = part.elements[i];
    steps = list_elements(of_value);
    const MemoryClass what = loop().memory_of(stack_of(i));
    for (const Tensor& step : steps) count_as_made_since(begin_, step, what);
    if (!is_dense(i)) continue;
    of_value = Tensor();
    part.whole[i] = in_one_piece(std::exchange(steps, {}));
  }
  return part;
}

/// Of a part, the units before `last` alone, in memory of their own: under a budget the rest goes.
void Recalled::keep_next_steps(Part& part, std::int64_t last) {
  if (part.end <= last) return;
  const std::int64_t count = step_of(last) - step_of(part.begin);
  for (std::size_t i = 0; i < types_.size(); ++i)
    if (is_dense(i)) {
      part.whole[i] = next_steps(part.whole[i], count);
    } else {
      Tensors& steps = part.elements[i];
      const auto first = loop().is_reverse ? steps.end() - count : steps.begin();
      steps = Tensors(first, first + count);
    }
  part.end = last;
}

/// Steps by position, one behind the other; each goes when it is copied.
Tensor Recalled::in_one_piece(Tensors steps) {
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

/// Of steps one behind the other by position, those that come first as the loop goes.
Tensor Recalled::next_steps(const Tensor& steps, std::int64_t count) const {
  const Dim& dim = steps.dims()[0];
  const TensorType type =
      chunk_type(steps.type(), dim.is_named() ? Dim(dim.name(), count) : Dim(count));
  const Tensor copy(allocate_block(type));
  const std::int64_t bytes = slice_type(type).bytes(),
                     first = loop().is_reverse ? steps.type().sizes()[0] - count : 0;
  std::memcpy(copy.data<char>(), steps.data<char>() + first * bytes,
              static_cast<std::size_t>(count * bytes));
  count_as(copy, MemoryClass::saved);
  return copy;
}

/// Steps that come one behind the other as the loop goes, by position.
Tensor Recalled::joined(Tensors parts) const {
  if (parts.size() == 1) return std::move(parts[0]);
  if (loop().is_reverse) std::reverse(parts.begin(), parts.end());
  if (parts[0].type().is_list()) {
    Tensors steps;
    for (const Tensor& part : parts) {
      const Tensors more = list_elements(part);
      steps.insert(steps.end(), more.begin(), more.end());
    }
    return make_list(parts[0].type().element(), steps);
  }
  std::int64_t count = 0;
  for (const Tensor& part : parts) count += part.type().sizes()[0];
  const Dim& dim = parts[0].dims()[0];
  const Tensor all(allocate_block(
      chunk_type(parts[0].type(), dim.is_named() ? Dim(dim.name(), count) : Dim(count))));
  char* to = all.data<char>();
  for (const Tensor& part : parts) {
    std::memcpy(to, part.data<char>(), static_cast<std::size_t>(part.type().bytes()));
    to += part.type().bytes();
  }
  return all;
}

/// The part that a step is in.
const Recalled::Part& Recalled::part_of(std::int64_t position) const {
  const std::int64_t unit = loop().is_reverse ? units_ - 1 - position / unit_ : position / unit_;
  auto part = parts_.begin();
  while (part->end <= unit) ++part;
  return *part;
}
std::int64_t Recalled::first_position(const Part& part) const {
  return loop().is_reverse ? segments_.steps() - step_of(part.end) : step_of(part.begin);
}

char* Recalled::data(std::size_t i, std::int64_t position) {
  const Part& part = part_of(position);
  const std::int64_t first = first_position(part);
  if (!is_dense(i))
    return part.elements[i][static_cast<std::size_t>(position - first)].data<char>();
  const std::int64_t bytes = slice_type(part.whole[i].type()).bytes();
  if (position != first_ || &part_of(first_ + count_ - 1) == &part)
    return part.whole[i].data<char>() + (position - first) * bytes;
  // What was asked for lies in several parts.
  Tensor& piece = pieces_[i];
  if (!piece.is_defined()) {
    piece = Tensor(allocate_block(TensorType(boolean, {count_ * bytes})));
    count_as(piece, MemoryClass::saved);
    char* to = piece.data<char>();
    for (std::int64_t k = first_; k < first_ + count_;) {
      const Part& from = part_of(k);
      const std::int64_t begin = first_position(from),
                         end = std::min(begin + from.whole[i].type().sizes()[0], first_ + count_);
      std::memcpy(to, from.whole[i].data<char>() + (k - begin) * bytes,
                  static_cast<std::size_t>((end - k) * bytes));
      to += (end - k) * bytes;
      k = end;
    }
  }
  return piece.data<char>();
}

Tensor Recalled::tensor(std::size_t i, std::int64_t position) {
  const Part& part = part_of(position);
  const std::int64_t at = position - first_position(part);
  if (!is_dense(i)) return part.elements[i][static_cast<std::size_t>(at)];
  const Tensor& whole = part.whole[i];
  return Tensor(allocate_view(slice_type(types_[i]), whole.ref(),
                              whole.data<char>() + at * slice_type(whole.type()).bytes()));
}

void run_recall(KernelArgs& args) {
  const RecallAttrs& attrs = args.attr<RecallAttrs>();
  Tensors inputs;
  for (std::size_t i = 0; i < args.in.size(); ++i) inputs.push_back(args.input(i));
  const Ref<SavedSteps> steps(
      new Recalled(attrs, std::move(inputs), {args.types.begin(), args.types.end()}));
  for (std::size_t i = 0; i < args.out.size(); ++i)
    args.out[i] = make_saved(args.types[i], steps, i);
}

}  // namespace reel
