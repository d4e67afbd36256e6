#include "reel/trace/executors/policy_costs.h"

#include <algorithm>
#include <deque>
#include <vector>

#include "reel/trace/executors/kept_steps.h"
#include "reel/trace/executors/revolve.h"
#include "reel/trace/executors/way_back.h"

namespace reel {
namespace {

/// One run of a loop, and back over it as Recalled goes, without any tensor.
class ForetoldLoop {
 public:
  ForetoldLoop(const LoopAttrs& loop, std::int64_t steps, std::int64_t unit,
               std::int64_t state_bytes, std::int64_t unit_bytes)
      : loop_(loop),
        steps_(steps),
        unit_(unit),
        units_((steps + unit - 1) / unit),
        state_bytes_(state_bytes),
        unit_bytes_(unit_bytes) {}

  PolicyCosts costs(std::int64_t asked) {
    forwards();
    for (std::int64_t chunk = (steps_ + asked - 1) / asked; chunk-- > 0;)
      need(chunk * asked, std::min(asked, steps_ - chunk * asked));
    PolicyCosts result;
    result.checkpoints = checkpoints_;
    result.steps = most_;
    result.runs = units_ ? 2 + static_cast<double>(advanced_) / static_cast<double>(units_) : 2;
    return result;
  }

 private:
  struct Part {
    std::int64_t begin, end;
  };

  void forwards() {
    const std::int64_t checkpoint = state_bytes_ + kBytesOfWhich;
    KeptSteps times(loop_.checkpoint_steps,
                    loop_.checkpoint_bytes ? slots_of(loop_, state_bytes_) : 0);
    for (std::int64_t k = 0; k < units_; ++k) {
      const KeptSteps::Decision now = times.before(k * unit_);
      for (int i = 0; i < now.drops; ++i) thin(kept_);
      if (now.takes) kept_.push_back(k);
      checkpoints_ = std::max(checkpoints_, std::ssize(kept_) * checkpoint);
    }
  }

  void need(std::int64_t first, std::int64_t count) {
    const std::int64_t begin = first / unit_, end = (first + count + unit_ - 1) / unit_;
    while (parts_.empty() || begin < parts_.front().begin || end > parts_.back().end) {
      const bool goes_on =
          !parts_.empty() && begin < parts_.front().begin && parts_.front().begin < end;
      if (!goes_on) parts_.clear();
      make_part(goes_on ? parts_.front().begin : end, end, end - begin);
    }
    std::int64_t in_memory = 0;
    bool is_joined = false;
    for (const Part& part : parts_) {
      in_memory += std::min(part.end * unit_, steps_) - part.begin * unit_;
      is_joined = is_joined || (begin < part.end && part.end < end);
    }
    // A copy of what was asked for and lies in several parts; that of before goes behind it.
    const std::int64_t piece = is_joined ? count : 0;
    most_ = std::max(most_, in_memory + std::max(piece, piece_));
    piece_ = piece;
  }

  void make_part(std::int64_t end, std::int64_t last, std::int64_t together) {
    while (!parts_.empty() && parts_.back().begin >= last) parts_.pop_back();
    find_gap(end, together);
    if (loop_.checkpoint_bytes && !parts_.empty())
      parts_.back().end = std::min(parts_.back().end, last);
    const std::vector<Revolve::Advance> advances = revolve_->way_to(end);
    for (const Revolve::Advance& advance : advances) advanced_ += advance.to - advance.from;
    const auto states = static_cast<std::int64_t>(revolve_->checkpoints());
    checkpoints_ = std::max(checkpoints_, std::ssize(kept_) * (state_bytes_ + kBytesOfWhich) +
                                              (states - 1) * state_bytes_);
    const std::int64_t begin = advances.empty() ? revolve_->last_checkpoint() : advances.back().to;
    const std::int64_t most = unit_ == 1 ? end - begin : together;
    for (std::int64_t to = end; to > begin; to -= most)
      parts_.push_front({std::max(to - most, begin), to});
  }

  void find_gap(std::int64_t end, std::int64_t together) {
    const auto gap = std::lower_bound(kept_.begin(), kept_.end(), end) - kept_.begin() - 1;
    if (revolve_ && gap == gap_) return;
    gap_ = gap;
    const auto at = static_cast<std::size_t>(gap);
    const std::int64_t next = at + 1 < kept_.size() ? kept_[at + 1] : units_;
    const WayBack way = way_back(loop_, next - kept_[at], state_bytes_, unit_bytes_, together);
    revolve_.emplace(kept_[at], way.leaf, way.slots);
  }

  const LoopAttrs& loop_;
  std::int64_t steps_, unit_, units_, state_bytes_, unit_bytes_;
  std::vector<std::int64_t> kept_;  ///< the unit behind each checkpoint
  std::ptrdiff_t gap_ = -1;
  std::optional<Revolve> revolve_;
  std::deque<Part> parts_;  ///< in memory
  std::int64_t piece_ = 0;  ///< steps of what was asked for last, where it was joined
  std::int64_t checkpoints_ = 0, advanced_ = 0, most_ = 0;
};

/// What a step saves, and while it is put in one piece.
std::optional<std::int64_t> step_bytes_of(const RecallAttrs& attrs,
                                          std::span<const TensorType> inputs,
                                          std::span<const TensorType> outputs) {
  const LoopAttrs& loop = attrs.saving();
  const Graph& body = *loop.body.graph;
  std::vector<TensorType> of_step;
  std::int64_t most = 0;  // of a value that is put in one piece
  std::size_t output = loop.first_stack() + static_cast<std::size_t>(attrs.first_saved);
  for (const TensorType& type : outputs) {
    // What a loop inside keeps is a list in each step, as long as that loop likes.
    const bool is_of_lists = body.types[body.outputs[output++]].is_list();
    of_step.push_back(is_of_lists ? type : slice_type(type));
    if (!type.is_list() && of_step.back().is_known()) most = std::max(most, of_step.back().bytes());
  }
  const auto bytes = bytes_of(of_step);
  if (!bytes) return bytes;
  return *bytes + (saves_in_one_piece(attrs, inputs) ? 0 : most);
}

}  // namespace

std::optional<std::int64_t> bytes_of(std::span<const TensorType> types) {
  std::int64_t result = 0;
  for (const TensorType& type : types) {
    if (type.is_list() || !type.is_known()) return std::nullopt;
    result += type.bytes();
  }
  return result;
}

PolicyCosts policy_costs(const RecallAttrs& attrs, std::span<const TensorType> inputs,
                         std::span<const TensorType> outputs, std::optional<std::int64_t> steps,
                         std::int64_t unit, std::int64_t asked) {
  const LoopAttrs& loop = attrs.saving();
  const auto state =
      bytes_of(inputs.subspan(loop.first_carry(), static_cast<std::size_t>(loop.carries)));
  const auto step = step_bytes_of(attrs, inputs, outputs);
  if (steps && state && step) {
    PolicyCosts result = ForetoldLoop(loop, *steps, unit, *state, *step * unit).costs(asked);
    result.bytes = result.steps * *step;
    return result;
  }
  PolicyCosts result;
  if (loop.checkpoint_steps)
    result.steps = steps ? std::min(*steps, loop.checkpoint_steps) : loop.checkpoint_steps;
  if (loop.checkpoint_bytes) {
    const std::int64_t half = loop.checkpoint_bytes / 2;
    result.checkpoints = std::max(half, state ? *state + kBytesOfWhich : 0);
    result.bytes = std::max(half, step ? *step * unit : 0);
    if (step)
      result.steps =
          std::max(half / std::max<std::int64_t>(*step * unit, 1), std::int64_t{1}) * unit;
  } else if (step && result.steps >= 0) {
    result.bytes = result.steps * *step;
  }
  return result;
}

std::int64_t spilled_bytes_in_memory(const LoopAttrs& loop, std::int64_t step_bytes,
                                     std::int64_t count, std::int64_t together) {
  const auto stacks = std::count_if(loop.stack_kinds.begin(), loop.stack_kinds.end(),
                                    [](std::uint8_t kind) { return kind & LoopAttrs::kSpilled; });
  const std::int64_t run = std::max<std::int64_t>(step_bytes * together, 1),
                     window = loop.spill_window / std::max<std::int64_t>(stacks, 1),
                     block = ((std::int64_t{1} << 20) + run - 1) / run * run,
                     in_memory = (std::max<std::int64_t>(window / block, 2) + 3) * block;
  return count < 0 ? in_memory : std::min(in_memory, count * step_bytes);
}

}  // namespace reel
