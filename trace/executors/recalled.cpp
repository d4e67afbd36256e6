#include "reel/trace/executors/recalled.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "reel/core/ops/list.h"
#include "reel/trace/executors/iterations.h"
#include "reel/trace/executors/kept_steps.h"
#include "reel/trace/executors/loop_types.h"

namespace reel {
namespace {

std::atomic<std::int64_t> advanced_steps{0}, saved_steps{0};

/// Of a list that may lie in a file.
Tensor element_of(const Tensor& list, std::size_t i) {
  const SavedValue* const saved = saved_value(list);
  if (!saved) return list_elements(list)[i];
  const auto position = static_cast<std::int64_t>(i);
  saved->steps->need(position, 1);
  return saved->steps->tensor(saved->index, position);
}

}  // namespace

RecalledSteps recalled_steps() { return {advanced_steps, saved_steps}; }

Recalled::Recalled(const RecallAttrs& attrs, Tensors inputs, std::vector<TensorType> types)
    : attrs_(attrs), types_(std::move(types)), segments_(attrs, inputs) {
  const std::size_t lists = inputs.size() - static_cast<std::size_t>(loop().carries);
  const Tensors kept = list_elements(inputs[lists - 1]);
  if (!kept.empty()) unit_ = kept[0].data<std::int64_t>()[1];
  begin_ = end_ = units_ = (segments_.steps() + unit_ - 1) / unit_;
  for (const Tensor& steps : kept) kept_.push_back(unit_at(steps.data<std::int64_t>()[0]));
  checkpoints_.assign(inputs.begin() + static_cast<std::ptrdiff_t>(lists), inputs.end());
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
/// Of the window.
std::int64_t Recalled::first_position() const {
  return loop().is_reverse ? segments_.steps() - step_of(end_) : step_of(begin_);
}

void Recalled::need(std::int64_t first, std::int64_t count) {
  std::int64_t begin = first / unit_, end = (first + count + unit_ - 1) / unit_;
  if (loop().is_reverse) {
    begin = units_ - begin;
    end = units_ - end;
    std::swap(begin, end);
  }
  while (begin < begin_ || end > end_) {
    const bool goes_on = begin_ > begin && begin_ < end;  // some of them are there
    make_window(goes_on ? begin_ : end, end, end - begin);
  }
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
  for (const Tensor& carry : checkpoints_) state.carries.push_back(element_of(carry, gap));
  states_.assign(1, std::move(state));
  const std::int64_t next = gap + 1 < kept_.size() ? kept_[gap + 1] : units_;
  std::int64_t leaf = next - kept_[gap], slots = 1;
  if (loop().checkpoint_bytes) {
    std::int64_t state_bytes = 0;
    for (const Tensor& carry : states_[0].carries) state_bytes += bytes_of(carry);
    const std::int64_t all = slots_of(loop(), state_bytes);
    slots = std::max<std::int64_t>(all - KeptSteps::most(all), 0) + 1;
    const std::int64_t fit =
        loop().checkpoint_bytes / 2 / std::max<std::int64_t>(bytes_of_step() * unit_, 1);
    leaf = std::min(leaf, std::max(fit / together * together, together));
  }
  revolve_.emplace(kept_[gap], leaf, slots);
}

/// What one step saves; of values whose sizes a run tells, as the step behind the checkpoint does.
std::int64_t Recalled::bytes_of_step() {
  if (bytes_of_step_) return bytes_of_step_;
  const bool are_known = std::all_of(types_.begin(), types_.end(), [](const TensorType& type) {
    return !type.is_list() && type.is_known();
  });
  if (are_known) {
    for (const TensorType& type : types_) bytes_of_step_ += slice_type(type).bytes();
  } else {
    const State& state = states_[0];
    for (const Tensor& saved :
         segments_.run(step_of(state.unit), step_of(state.unit) + 1, state.carries, true).saved)
      bytes_of_step_ += bytes_of(saved);
  }
  return bytes_of_step_;
}

/// The window that ends at `end`, and those of the units behind it that are there already, up to
/// `last`. together: how many units are asked for at a time.
void Recalled::make_window(std::int64_t end, std::int64_t last, std::int64_t together) {
  find_gap(end, together);
  while (states_.size() > 1 && states_.back().unit >= end) states_.pop_back();
  State state = states_.back();
  for (const Revolve::Advance& advance : revolve_->way_to(end)) {
    state.carries = run(advance.from, advance.to, state.carries, false).carries;
    state.unit = advance.to;
    if (advance.keeps) states_.push_back(state);
  }
  // Of the window before, only what comes next stays; and that is let go of before there is more.
  const std::int64_t stays = step_of(last) - step_of(end);
  const std::size_t values = types_.size();
  Tensors whole(values);
  std::vector<Tensors> elements(values);
  for (std::size_t i = 0; stays && i < values; ++i)
    if (is_dense(i))
      whole[i] = next_steps(whole_[i], stays);
    else
      elements[i].assign(elements_[i].begin(), elements_[i].begin() + stays);
  whole_.assign(values, Tensor());
  elements_.assign(values, Tensors());
  const Tensors saved = run(state.unit, end, state.carries, true).saved;
  for (std::size_t i = 0; i < values; ++i) {
    if (is_dense(i)) {
      const Tensor made = segments_.is_dense() ? saved[i] : in_one_piece(list_elements(saved[i]));
      whole_[i] = stays ? joined({made, whole[i]}) : made;
      continue;
    }
    elements_[i] = list_elements(saved[i]);
    if (loop().is_reverse) std::reverse(elements_[i].begin(), elements_[i].end());
    elements_[i].insert(elements_[i].end(), elements[i].begin(), elements[i].end());
  }
  begin_ = state.unit;
  end_ = last;
}

/// Steps by position, one behind the other.
Tensor Recalled::in_one_piece(const Tensors& steps) {
  const TensorType& type = steps[0].type();
  Dims dims{Dim(std::ssize(steps))};
  if (type.is_named()) dims[0] = Dim("steps", std::ssize(steps));
  dims.insert(dims.end(), type.dims().begin(), type.dims().end());
  const Tensor all(allocate_block(type.with(dims)));
  char* to = all.data<char>();
  for (const Tensor& step : steps) {
    std::memcpy(to, step.data<char>(), static_cast<std::size_t>(step.type().bytes()));
    to += step.type().bytes();
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

char* Recalled::data(std::size_t i, std::int64_t position) {
  if (!is_dense(i)) return element(i, position).data<char>();
  return whole_[i].data<char>() +
         (position - first_position()) * slice_type(whole_[i].type()).bytes();
}

Tensor Recalled::tensor(std::size_t i, std::int64_t position) {
  if (!is_dense(i)) return element(i, position);
  return Tensor(allocate_view(slice_type(types_[i]), whole_[i].ref(), data(i, position)));
}

const Tensor& Recalled::element(std::size_t i, std::int64_t position) const {
  const std::int64_t step = segments_.position(position);  // its own inverse
  return elements_[i][static_cast<std::size_t>(step - step_of(begin_))];
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
