#include "reel/trace/executors/checkpoints/policy_costs.h"

#include <algorithm>
#include <deque>
#include <numeric>
#include <utility>
#include <vector>

#include "reel/trace/executors/checkpoints/checkpoint_schedule.h"
#include "reel/trace/executors/checkpoints/known_steps.h"
#include "reel/trace/executors/checkpoints/reverse_schedule.h"
#include "reel/trace/executors/checkpoints/revolve.h"
#include "reel/trace/executors/spill/spilled.h"
#include "reel/trace/passes/residuals/replay_segment_graphs.h"

namespace reel {
namespace {

/// Returns the maximum bytes in memory of a stack in a file. window: its share of the window.
std::int64_t blocks_in_memory(std::int64_t window, std::int64_t step_bytes, std::int64_t count,
                              std::int64_t together, std::int64_t requested, bool is_expected) {
  const std::int64_t run = std::max<std::int64_t>(step_bytes * together, 1),
                     runs = ((std::int64_t{1} << 20) + run - 1) / run, block = runs * run,
                     most = std::max<std::int64_t>(window / block, 2) * block,
                     copy = runs * together % requested ? requested * step_bytes : 0,
                     in_memory = std::max(most, copy + 2 * block) + 3 * block;
  if (count < 0) return std::max(in_memory, most + copy);
  const std::int64_t room = is_expected ? 0 : std::min(2 * count * step_bytes, block),
                     all = count * step_bytes + room;
  if (count <= runs * together) return all;  // one block
  return all <= most ? all + copy : std::min(in_memory, all + copy);
}

/// Simulates one run of a loop and its reverse sweep as RecomputedResiduals does it, without
/// tensors.
class SimulatedLoop {
 public:
  SimulatedLoop(const LoopAttrs& loop, std::int64_t steps, std::int64_t chunk_size,
                std::span<const TensorType> state, std::int64_t chunk_bytes, bool measures)
      : loop_(loop),
        steps_(steps),
        chunk_size_(chunk_size),
        chunk_count_((steps + chunk_size - 1) / chunk_size),
        state_bytes_(*bytes_of(state)),
        chunk_bytes_(chunk_bytes),
        measures_(measures && loop.policy.bytes) {
    if (!loop.policy.swaps || !loop.spills()) return;
    std::vector<std::int64_t> carries;
    for (const TensorType& carry : state) carries.push_back(carry.bytes());
    FileOfCheckpoints file(loop, std::move(carries));
    if (file.is_used()) file_.emplace(std::move(file));
  }

  PolicyCosts costs(std::int64_t requested) {
    forwards();
    const std::int64_t chunks = (steps_ + requested - 1) / requested;
    for (std::int64_t k = 0; k < chunks; ++k) {
      const std::int64_t first = (loop_.trips.is_reverse ? k : chunks - 1 - k) * requested;
      need(first, std::min(requested, steps_ - first));
    }
    PolicyCosts result;
    result.checkpoints = checkpoints_;
    result.steps = max_steps_;
    result.runs = 2;
    if (chunk_count_)
      result.runs += static_cast<double>(advanced_) / static_cast<double>(chunk_count_);
    if (steps_) result.runs += static_cast<double>(measured_) / static_cast<double>(steps_);
    return result;
  }

 private:
  struct Segment {
    std::int64_t begin, end;
  };

  void forwards() {
    CheckpointSchedule times(loop_.policy.steps,
                             loop_.policy.bytes ? slots_of(loop_, state_bytes_) : 0);
    std::vector<std::int64_t> checkpoints;
    for (std::int64_t k = 0; k < chunk_count_; ++k) {
      const CheckpointSchedule::Decision now = times.before(step_of(k));
      for (int i = 0; i < now.drops; ++i) thin(checkpoints);
      if (now.takes) checkpoints.push_back(k);
      put_ += now.takes;
      checkpoints_ = std::max(checkpoints_, in_memory(std::ssize(checkpoints)));
    }
    schedule_.emplace(loop_, std::move(checkpoints), chunk_count_, chunk_size_ != 1);
  }

  /// Returns the bytes of checkpoints in memory, with their step numbers.
  std::int64_t in_memory(std::int64_t checkpoints) const {
    return checkpoints * kBytesOfWhich +
           (file_ ? file_->in_memory(put_) : checkpoints * state_bytes_);
  }

  void need(std::int64_t first, std::int64_t count) {
    std::int64_t begin = first / chunk_size_, end = (first + count + chunk_size_ - 1) / chunk_size_;
    if (loop_.trips.is_reverse) {
      begin = chunk_count_ - begin;
      end = chunk_count_ - end;
      std::swap(begin, end);
    }
    count_ = count;
    joined_ = 0;
    while (!window_.empty() && window_.back().begin >= end) window_.pop_back();
    const bool are_in_one = !window_.empty() && window_.back().begin <= begin;
    std::int64_t left = are_in_one ? begin : end;
    while (left > begin && !window_.empty()) {
      copy_to_request(0);
      left = std::max(begin, window_.back().begin);
      if (window_.back().begin >= begin) window_.pop_back();
    }
    while (left > begin) left = run_before(begin, left, end - begin);
  }

  std::int64_t run_before(std::int64_t begin, std::int64_t end, std::int64_t together) {
    schedule_->find(begin, end, together, [&](std::size_t) {
      measured_ += measures_;
      return ReverseSchedule::Bytes{state_bytes_, chunk_bytes_};
    });
    const std::vector<Revolve::Advance> advances = schedule_->advances_to(end);
    for (const Revolve::Advance& advance : advances) advanced_ += advance.to - advance.from;
    checkpoints_ = std::max(
        checkpoints_, in_memory(std::ssize(schedule_->checkpoints())) +
                          (static_cast<std::int64_t>(schedule_->states()) - 1) * state_bytes_);
    const std::int64_t first = schedule_->begin_behind(advances);
    for (std::int64_t chunk = first; chunk < end;) {
      const Segment segment{chunk, chunk_size_ == 1 ? end : chunk + 1};
      const std::int64_t steps = steps_of(segment);
      const bool has_all = !joined_ && chunk <= begin && segment.end == end;
      count_memory(steps);
      if (!has_all && segment.end > begin) copy_to_request(steps);
      if (has_all || chunk < begin) window_.push_back(segment);
      chunk = segment.end;
    }
    return first;
  }

  /// besides: time steps of the segments that are copied into the request.
  void copy_to_request(std::int64_t besides) {
    joined_ = count_;
    count_memory(besides);
  }
  void count_memory(std::int64_t besides) {
    std::int64_t in_memory = joined_ + besides;
    for (const Segment& segment : window_) in_memory += steps_of(segment);
    max_steps_ = std::max(max_steps_, in_memory);
  }
  std::int64_t steps_of(const Segment& segment) const {
    return step_of(segment.end) - step_of(segment.begin);
  }
  std::int64_t step_of(std::int64_t chunk) const {
    if (!loop_.trips.is_reverse) return std::min(chunk * chunk_size_, steps_);
    return chunk ? steps_ - (chunk_count_ - chunk) * chunk_size_ : 0;
  }

  const LoopAttrs& loop_;
  std::int64_t steps_, chunk_size_, chunk_count_, state_bytes_, chunk_bytes_;
  bool measures_;  ///< a step behind each checkpoint is run to measure its residuals
  std::optional<FileOfCheckpoints> file_;
  std::int64_t put_ = 0;  ///< checkpoints taken, including dropped ones
  std::optional<ReverseSchedule> schedule_;
  std::deque<Segment> window_;  ///< in memory
  std::int64_t count_ = 0;      ///< time steps of the last request
  std::int64_t joined_ = 0;     ///< the same, if they were copied into one buffer
  std::int64_t checkpoints_ = 0, advanced_ = 0, measured_ = 0, max_steps_ = 0;
};

/// Residual bytes of one step.
struct StepCosts {
  std::optional<std::int64_t> bytes;  ///< including the copy into one buffer
  std::int64_t inside = 0;  ///< bytes that inner loops hold before that copy, of the step that runs
  bool is_measured = false;  ///< sizes are unknown: a step is run to measure them
};

/// Returns the bytes that inner loops hold of residuals that are then copied into one buffer per
/// step.
std::int64_t made_inside(const Graph& body, std::span<const ValueId> residuals) {
  std::int64_t result = 0;
  for (const ValueId v : residuals) {
    const OpRecord* const maker = record_of(body, v);
    if (!maker || maker->op != &loop_op || !body.types[v].is_known()) continue;
    const auto& loop = get<LoopAttrs>(maker->attrs.get());
    const LoopLeaf leaf = result_at(loop, output_of(body, *maker, v));
    if (!leaf.is(LeafKind::stack) || !loop.stacks[leaf.index].is_raw()) continue;
    result += body.types[v].bytes() +
              made_inside(*loop.body.graph, body_outputs(loop).stacks.subspan(leaf.index, 1));
  }
  return result;
}

StepCosts step_costs(const RecomputeAttrs& attrs, std::span<const TensorType> inputs,
                     std::span<const TensorType> outputs) {
  const LoopAttrs& loop = attrs.saving();
  const Graph& body = *loop.body.graph;
  const auto residuals = body_outputs(loop).stacks.subspan(attrs.first_residual, outputs.size());
  StepCosts result;
  std::int64_t all = 0, most = 0;  // most: of a value that is copied into one buffer
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const TensorType& type = outputs[i];
    // An inner loop's residuals are a list in each step; only that loop's run tells its length.
    const bool is_of_lists = body.types[residuals[i]].is_list();
    const TensorType one = is_of_lists ? type.element() : slice_type(type);
    const auto count = known_tensors(body, residuals[i], body.types);
    result.is_measured = result.is_measured || is_of_lists;
    if (one.is_list() || !one.is_known() || !count) return result;
    all += *count * one.bytes();
    if (!type.is_list()) most = std::max(most, one.bytes());
  }
  const bool is_dense = saves_in_one_buffer(attrs, inputs);
  result.bytes = all + (is_dense ? 0 : most);
  if (is_dense) result.inside = made_inside(body, residuals);
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

PolicyCosts policy_costs(const RecomputeAttrs& attrs, std::span<const TensorType> inputs,
                         std::span<const TensorType> outputs, std::optional<std::int64_t> steps,
                         std::int64_t chunk_size, std::int64_t requested) {
  const LoopAttrs& loop = attrs.saving();
  const auto carries = operands_of(loop, inputs).carries;
  const auto state = bytes_of(carries);
  const StepCosts of_step = step_costs(attrs, inputs, outputs);
  const std::optional<std::int64_t>& step = of_step.bytes;
  // For chunks, a plan stores residuals in one buffer from the start.
  const std::int64_t inside = chunk_size == 1 ? of_step.inside : 0;
  if (steps && state && step) {
    PolicyCosts result =
        SimulatedLoop(loop, *steps, chunk_size, carries, *step * chunk_size, of_step.is_measured)
            .costs(requested);
    result.bytes = result.steps * *step + inside;
    return result;
  }
  PolicyCosts result;
  for (const TensorType& carry : carries) result.has_arrays = result.has_arrays || carry.is_list();
  if (loop.policy.steps)
    result.steps = steps ? std::min(*steps, loop.policy.steps) : loop.policy.steps;
  if (loop.policy.bytes) {
    const std::int64_t half = loop.policy.bytes / 2;
    result.checkpoints = std::max(half, state ? *state + kBytesOfWhich : 0);
    result.bytes = std::max(half, step ? *step * chunk_size : 0) + inside;
    if (step)
      result.steps =
          std::max(half / std::max<std::int64_t>(*step * chunk_size, 1), std::int64_t{1}) *
          chunk_size;
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
      slots_(loop.policy.bytes ? slots_of(loop, state_) : 0) {}

bool FileOfCheckpoints::is_used() const {
  return !slots_ || in_memory(-1) < CheckpointSchedule::most(slots_) * state_;
}

std::int64_t FileOfCheckpoints::in_memory(std::int64_t puts) const {
  const std::int64_t window =
      loop_.policy.spill_window / std::max<std::int64_t>(std::ssize(loop_.carries), 1);
  std::int64_t result = 0;
  for (const std::int64_t bytes : carries_)
    if (bytes) result += blocks_in_memory(window, bytes, puts, 1, 1, true);
  return result;
}

std::int64_t spilled_bytes_in_memory(const LoopAttrs& loop, std::int64_t step_bytes,
                                     std::int64_t count, std::int64_t together,
                                     std::int64_t requested, bool is_expected) {
  return blocks_in_memory(window_of_stack(loop), step_bytes, count, together, requested,
                          is_expected);
}

}  // namespace reel
