#include "reel/trace/executors/policy_costs.h"

#include <algorithm>
#include <deque>
#include <numeric>
#include <utility>
#include <vector>

#include "reel/trace/executors/kept_steps.h"
#include "reel/trace/executors/known_steps.h"
#include "reel/trace/executors/revolve.h"
#include "reel/trace/executors/way_back.h"

namespace reel {
namespace {

/// What a stack that lies in a file has in memory, of which `window` is its share.
std::int64_t blocks_in_memory(std::int64_t window, std::int64_t step_bytes, std::int64_t count,
                              std::int64_t together, bool is_expected = true) {
  const std::int64_t run = std::max<std::int64_t>(step_bytes * together, 1),
                     block = ((std::int64_t{1} << 20) + run - 1) / run * run,
                     in_memory = (std::max<std::int64_t>(window / block, 2) + 3) * block;
  const std::int64_t all = count * step_bytes, room = is_expected ? 0 : std::min(2 * all, block);
  return count < 0 ? in_memory : std::min(in_memory, all + room);
}

/// Whether what the loop keeps for its gradient may lie in a file: it swaps, and is in no other
/// one.
bool spills(const LoopAttrs& loop) {
  return loop.swaps && std::any_of(loop.stack_kinds.begin(), loop.stack_kinds.end(),
                                   [](std::uint8_t kind) { return kind & LoopAttrs::kSpilled; });
}

/// One run of a loop, and back over it as Recalled goes, without any tensor.
class ForetoldLoop {
 public:
  ForetoldLoop(const LoopAttrs& loop, std::int64_t steps, std::int64_t unit,
               std::span<const TensorType> state, std::int64_t unit_bytes, bool measures)
      : loop_(loop),
        steps_(steps),
        unit_(unit),
        units_((steps + unit - 1) / unit),
        state_bytes_(*bytes_of(state)),
        unit_bytes_(unit_bytes),
        measures_(measures && loop.checkpoint_bytes) {
    if (!spills(loop)) return;
    std::vector<std::int64_t> carries;
    for (const TensorType& carry : state) carries.push_back(carry.bytes());
    FileOfCheckpoints file(loop, std::move(carries));
    if (file.is_used()) file_.emplace(std::move(file));
  }

  PolicyCosts costs(std::int64_t asked) {
    forwards();
    for (std::int64_t chunk = (steps_ + asked - 1) / asked; chunk-- > 0;)
      need(chunk * asked, std::min(asked, steps_ - chunk * asked));
    PolicyCosts result;
    result.checkpoints = checkpoints_;
    result.steps = most_;
    result.runs = 2;
    if (units_) result.runs += static_cast<double>(advanced_) / static_cast<double>(units_);
    if (steps_) result.runs += static_cast<double>(measured_) / static_cast<double>(steps_);
    return result;
  }

 private:
  struct Part {
    std::int64_t begin, end;
  };

  void forwards() {
    KeptSteps times(loop_.checkpoint_steps,
                    loop_.checkpoint_bytes ? slots_of(loop_, state_bytes_) : 0);
    for (std::int64_t k = 0; k < units_; ++k) {
      const KeptSteps::Decision now = times.before(k * unit_);
      for (int i = 0; i < now.drops; ++i) thin(kept_);
      if (now.takes) kept_.push_back(k);
      put_ += now.takes;
      checkpoints_ = std::max(checkpoints_, kept_in_memory());
    }
  }

  /// Bytes of the checkpoints, and of which steps they are.
  std::int64_t kept_in_memory() const {
    const std::int64_t kept = std::ssize(kept_);
    return kept * kBytesOfWhich + (file_ ? file_->in_memory(put_) : kept * state_bytes_);
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
    checkpoints_ = std::max(checkpoints_, kept_in_memory() + (states - 1) * state_bytes_);
    const std::int64_t begin = advances.empty() ? revolve_->last_checkpoint() : advances.back().to;
    const std::int64_t most = unit_ == 1 ? end - begin : together;
    for (std::int64_t to = end; to > begin; to -= most)
      parts_.push_front({std::max(to - most, begin), to});
  }

  void find_gap(std::int64_t end, std::int64_t together) {
    const auto gap = std::lower_bound(kept_.begin(), kept_.end(), end) - kept_.begin() - 1;
    if (revolve_ && gap == gap_) return;
    gap_ = gap;
    measured_ += measures_;
    const auto at = static_cast<std::size_t>(gap);
    const std::int64_t next = at + 1 < kept_.size() ? kept_[at + 1] : units_;
    const WayBack way = way_back(loop_, next - kept_[at], state_bytes_, unit_bytes_, together);
    revolve_.emplace(kept_[at], way.leaf, way.slots);
  }

  const LoopAttrs& loop_;
  std::int64_t steps_, unit_, units_, state_bytes_, unit_bytes_;
  bool measures_;  ///< a step behind each checkpoint is run to see what it saves
  std::optional<FileOfCheckpoints> file_;
  std::vector<std::int64_t> kept_;  ///< the unit behind each checkpoint
  std::int64_t put_ = 0;            ///< checkpoints, those that were dropped counted
  std::ptrdiff_t gap_ = -1;
  std::optional<Revolve> revolve_;
  std::deque<Part> parts_;  ///< in memory
  std::int64_t piece_ = 0;  ///< steps of what was asked for last, where it was joined
  std::int64_t checkpoints_ = 0, advanced_ = 0, measured_ = 0, most_ = 0;
};

/// What one step saves.
struct StepCosts {
  std::optional<std::int64_t> bytes;  ///< and takes while that is put in one piece
  std::int64_t inside = 0;   ///< what loops inside have of it before that, of the step that runs
  bool is_measured = false;  ///< of values of unknown sizes a run takes a step to see them
};

/// Of values that steps save in one piece, what loops inside have put into memory of their own.
std::int64_t made_inside(const Graph& body, std::span<const ValueId> saved) {
  std::int64_t result = 0;
  for (const ValueId v : saved) {
    const OpRecord* const maker = record_of(body, v);
    if (!maker || maker->op != &loop_op || !body.types[v].is_known()) continue;
    const auto& loop = get<LoopAttrs>(maker->attrs.get());
    const std::size_t output = output_of(body, *maker, v), stack = output - loop.first_stack();
    if (output < loop.first_stack() || output >= loop.first_sum() || !loop.is_raw(stack)) continue;
    const Graph& of_loop = *loop.body.graph;
    result += body.types[v].bytes() + made_inside(of_loop, {&of_loop.outputs[output], 1});
  }
  return result;
}

StepCosts step_costs(const RecallAttrs& attrs, std::span<const TensorType> inputs,
                     std::span<const TensorType> outputs) {
  const LoopAttrs& loop = attrs.saving();
  const Graph& body = *loop.body.graph;
  const auto saved = std::span(body.outputs)
                         .subspan(loop.first_stack() + static_cast<std::size_t>(attrs.first_saved),
                                  outputs.size());
  StepCosts result;
  std::int64_t all = 0, most = 0;  // most: of a value that is put in one piece
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const TensorType& type = outputs[i];
    // What a loop inside keeps is a list in each step, as long as that loop likes.
    const bool is_of_lists = body.types[saved[i]].is_list();
    const TensorType one = is_of_lists ? type.element() : slice_type(type);
    const auto count = known_tensors(body, saved[i], body.types);
    result.is_measured = result.is_measured || is_of_lists;
    if (one.is_list() || !one.is_known() || !count) return result;
    all += *count * one.bytes();
    if (!type.is_list()) most = std::max(most, one.bytes());
  }
  const bool is_dense = saves_in_one_piece(attrs, inputs);
  result.bytes = all + (is_dense ? 0 : most);
  if (is_dense) result.inside = made_inside(body, saved);
  return result;
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
  const auto carries = inputs.subspan(loop.first_carry(), static_cast<std::size_t>(loop.carries));
  const auto state = bytes_of(carries);
  const StepCosts of_step = step_costs(attrs, inputs, outputs);
  const std::optional<std::int64_t>& step = of_step.bytes;
  // A plan has what steps of a chunk save in one piece from the start.
  const std::int64_t inside = unit == 1 ? of_step.inside : 0;
  if (steps && state && step) {
    PolicyCosts result =
        ForetoldLoop(loop, *steps, unit, carries, *step * unit, of_step.is_measured).costs(asked);
    result.bytes = result.steps * *step + inside;
    return result;
  }
  PolicyCosts result;
  for (const TensorType& carry : carries) result.has_arrays = result.has_arrays || carry.is_list();
  if (loop.checkpoint_steps)
    result.steps = steps ? std::min(*steps, loop.checkpoint_steps) : loop.checkpoint_steps;
  if (loop.checkpoint_bytes) {
    const std::int64_t half = loop.checkpoint_bytes / 2;
    result.checkpoints = std::max(half, state ? *state + kBytesOfWhich : 0);
    result.bytes = std::max(half, step ? *step * unit : 0) + inside;
    if (step)
      result.steps =
          std::max(half / std::max<std::int64_t>(*step * unit, 1), std::int64_t{1}) * unit;
  } else if (step && result.steps >= 0) {
    result.bytes = result.steps * *step + inside;
  }
  return result;
}

FileOfCheckpoints::FileOfCheckpoints(const LoopAttrs& loop, std::vector<std::int64_t> carries,
                                     std::int64_t arrays)
    : loop_(loop),
      carries_(std::move(carries)),
      state_(std::accumulate(carries_.begin(), carries_.end(), arrays)),
      slots_(loop.checkpoint_bytes ? slots_of(loop, state_) : 0) {}

bool FileOfCheckpoints::is_used() const {
  return !slots_ || in_memory(-1) < KeptSteps::most(slots_) * state_;
}

std::int64_t FileOfCheckpoints::in_memory(std::int64_t puts) const {
  const std::int64_t window = loop_.spill_window / std::max<std::int64_t>(loop_.carries, 1);
  std::int64_t result = 0;
  for (const std::int64_t bytes : carries_)
    if (bytes) result += blocks_in_memory(window, bytes, puts, 1);
  return result;
}

std::int64_t spilled_bytes_in_memory(const LoopAttrs& loop, std::int64_t step_bytes,
                                     std::int64_t count, std::int64_t together, bool is_expected) {
  const auto stacks = std::count_if(loop.stack_kinds.begin(), loop.stack_kinds.end(),
                                    [](std::uint8_t kind) { return kind & LoopAttrs::kSpilled; });
  return blocks_in_memory(loop.spill_window / std::max<std::int64_t>(stacks, 1), step_bytes, count,
                          together, is_expected);
}

}  // namespace reel
