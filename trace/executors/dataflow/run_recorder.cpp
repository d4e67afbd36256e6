#include "reel/trace/executors/dataflow/run_recorder.h"

#include <algorithm>

namespace reel {
namespace {

/// Returns, by node, whether it is the first Switch of its frame that reads a LoopCond. It passes a
/// value into the body in exactly the iterations in which the body runs.
std::vector<std::uint8_t> switches_of_loops(const LoweredGraph& graph) {
  std::vector<std::uint8_t> result(graph.nodes.size(), 0), has_one(graph.frames.size(), 0);
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const LoweredNode& node = graph.nodes[i];
    if (node.kind != LoweredKind::switch_ || node.inputs.size() < 2) continue;
    const LoweredNode& asked = graph.nodes[static_cast<std::size_t>(node.inputs[1].node)];
    std::uint8_t& has = has_one[static_cast<std::size_t>(node.frame)];
    if (asked.kind != LoweredKind::loop_cond || has) continue;
    result[i] = has = 1;
  }
  return result;
}

}  // namespace

RunRecorder::RunRecorder(RecordedRun& run, RecordLimits limits) : run_(run), limits_(limits) {
  run_.node_totals.resize(run_.graph->nodes.size());
  run_.frame_totals.resize(run_.graph->frames.size());
  busy_.resize(run_.graph->frames.size());
  counts_bodies_ = switches_of_loops(*run_.graph);
}

std::int64_t RunRecorder::begin(std::int64_t now, int parallel_iterations) {
  run_.parallel_iterations = parallel_iterations;
  return run_.began = now;
}

int RunRecorder::enter(const FrameInstance& instance) {
  if (instances_.size() >= forgets_at_) forget_instances();
  instances_.emplace(next_instance_, Known{instance, true});
  return next_instance_++;
}

void RunRecorder::leave(int instance) { instances_.at(instance).is_open = false; }

/// Counts the execution when the first live value enters the loop. Its first iteration exists
/// already.
void RunRecorder::begin_run(int instance) {
  FrameInstance& is = instances_.at(instance).is;
  if (is.has_run) return;
  is.has_run = true;
  const auto frame = static_cast<std::size_t>(is.frame);
  ++run_.frame_totals[frame].executions;
  ++run_.frame_totals[frame].iterations;
}

void RunRecorder::iteration(int instance, std::int64_t number, bool begins, std::int64_t time) {
  const auto frame = static_cast<std::size_t>(instances_.at(instance).is.frame);
  if (begins && number > 0) ++run_.frame_totals[frame].iterations;  // 0: begin_run counts it
  const IterationEvent event{instance, number, begins, count_, time};
  if (!is_at_first()) return tail_events_.push_back(event);
  run_.iterations.push_back(event);
  if (begins)
    open_[{instance, number}] = {time, true};
  else
    open_.erase({instance, number});
}

void RunRecorder::note(const Activation& at) {
  run_.nanoseconds = std::max(run_.nanoseconds, at.end);
  if (!at.has_failed) {
    RecordedRun::NodeTotal& total = run_.node_totals[static_cast<std::size_t>(at.node)];
    ++(at.is_dead ? total.count.dead : total.count.live);
    if (!at.is_dead) {
      total.nanoseconds += at.end - at.begin;
      note_loop(at);
    }
  }
  keep(at);
}

/// Updates the totals of the loops around a live node.
void RunRecorder::note_loop(const Activation& at) {
  const LoweredNode& node = run_.graph->nodes[static_cast<std::size_t>(at.node)];
  if (node.kind == LoweredKind::merge && node.frame && at.iteration == 0) begin_run(at.instance);
  if (counts_bodies_[static_cast<std::size_t>(at.node)] && at.taken == 1)
    ++run_.frame_totals[static_cast<std::size_t>(node.frame)].bodies;
  for (int frame = node.frame; frame > 0;
       frame = run_.graph->frames[static_cast<std::size_t>(frame)].parent)
    busy_[static_cast<std::size_t>(frame)].add(at.begin, at.end);
}

void RunRecorder::fail(const Activation& at) { run_.failure = {at, count_, {}}; }

void RunRecorder::keep(const Activation& at) {
  ++count_;
  if (is_at_first() && run_.activations.size() < limits_.first)
    return run_.activations.push_back(at);
  tail_.push_back(at);
  if (tail_.size() > limits_.last) drop_first_of_tail();
}

void RunRecorder::drop_first_of_tail() {
  tail_.pop_front();
  ++run_.gap.left_out;
  drop_events();
}

/// Drops the events before the tail.
void RunRecorder::drop_events() {
  const std::size_t before = count_ - tail_.size();
  while (!tail_events_.empty() && tail_events_.front().after <= before) {
    drop(tail_events_.front());
    tail_events_.pop_front();
  }
}

void RunRecorder::drop(const IterationEvent& event) {
  const Iteration iteration{event.instance, event.iteration};
  if (event.begins) {
    open_[iteration] = {event.time, false};
    return;
  }
  const auto at = open_.find(iteration);
  if (at->second.is_of_first) finished_in_gap_.push_back(event);
  open_.erase(at);
}

void RunRecorder::leave_out(std::size_t activations) {
  count_ += activations;
  run_.gap.left_out += activations + tail_.size();
  tail_.clear();
  drop_events();
}

void RunRecorder::finish(std::optional<std::string> message) {
  for (std::size_t frame = 0; frame < busy_.size(); ++frame)
    run_.frame_totals[frame].nanoseconds = busy_[frame].nanoseconds();
  run_.gap.activations = run_.activations.size();
  if (run_.gap.left_out) {
    run_.gap.iterations = run_.iterations.size();
    std::vector<IterationEvent>& events = run_.iterations;
    events.insert(events.end(), finished_in_gap_.begin(), finished_in_gap_.end());
    for (const auto& [iteration, open] : open_)
      if (!open.is_of_first)
        events.push_back({iteration.first, iteration.second, true, 0, open.time});
    for (std::size_t i = run_.gap.iterations; i < events.size(); ++i)
      events[i].after = run_.gap.activations + run_.gap.left_out;
  }
  run_.activations.insert(run_.activations.end(), tail_.begin(), tail_.end());
  run_.iterations.insert(run_.iterations.end(), tail_events_.begin(), tail_events_.end());
  for (std::size_t i = run_.gap.iterations; i < run_.iterations.size(); ++i)
    run_.iterations[i].after -= run_.gap.left_out;
  tail_.clear();
  tail_events_.clear();
  if (run_.gap.left_out) instances_ = instances_of_what_is_kept();
  renumber_instances();
  if (!message) return;
  if (!run_.failure) run_.failure.emplace(RecordedRun::Failure{});
  run_.failure->message = std::move(*message);
}

/// Drops instances that no kept event mentions and no later one can.
void RunRecorder::forget_instances() {
  instances_ = instances_of_what_is_kept();
  forgets_at_ = 2 * std::max<std::size_t>(instances_.size(), 1 << 15);
}

std::map<int, RunRecorder::Known> RunRecorder::instances_of_what_is_kept() const {
  std::map<int, Known> kept;
  const auto keep = [&](int number) {
    while (number >= 0 && !kept.contains(number))
      number = kept.emplace(number, instances_.at(number)).first->second.is.parent;
  };
  const auto keep_all_of = [&](const auto& list) {
    for (const auto& at : list) keep(at.instance);
  };
  keep_all_of(run_.activations);
  keep_all_of(run_.iterations);
  keep_all_of(tail_);
  keep_all_of(tail_events_);
  keep_all_of(finished_in_gap_);
  for (const auto& [iteration, open] : open_) keep(iteration.first);
  for (const auto& [number, known] : instances_)
    if (known.is_open) keep(number);
  if (run_.failure && run_.failure->at) keep(run_.failure->at->instance);
  return kept;
}

/// Renumbers instances from 0, in the order in which they began.
void RunRecorder::renumber_instances() {
  std::map<int, int> place;
  for (const auto& [number, known] : instances_) {
    place.emplace(number, static_cast<int>(place.size()));
    run_.instances.push_back(known.is);
  }
  for (FrameInstance& instance : run_.instances)
    if (instance.parent >= 0) instance.parent = place.at(instance.parent);
  for (Activation& at : run_.activations) at.instance = place.at(at.instance);
  for (IterationEvent& event : run_.iterations) event.instance = place.at(event.instance);
  if (run_.failure && run_.failure->at)
    run_.failure->at->instance = place.at(run_.failure->at->instance);
}

RecordedRun shortened(const RecordedRun& run, RecordLimits limits) {
  RecordedRun result;
  result.graph = run.graph;
  RunRecorder recorder(result, limits);
  recorder.begin(run.began, run.parallel_iterations);
  for (const FrameInstance& instance : run.instances) recorder.enter(instance);
  std::size_t next = 0;
  const auto hand_events = [&](std::size_t after, std::size_t end) {
    for (; next < end && run.iterations[next].after <= after; ++next) {
      const IterationEvent& event = run.iterations[next];
      recorder.iteration(event.instance, event.iteration, event.begins, event.time);
    }
  };
  for (std::size_t i = 0; i <= run.activations.size(); ++i) {
    if (run.gap.left_out && i == run.gap.activations) {
      hand_events(i, run.gap.iterations);
      recorder.leave_out(run.gap.left_out);
    }
    hand_events(i, run.iterations.size());
    if (i < run.activations.size()) recorder.note(run.activations[i]);
  }
  result.failure = run.failure;
  recorder.finish();
  result.nanoseconds = run.nanoseconds;
  result.node_totals = run.node_totals;
  result.frame_totals = run.frame_totals;
  return result;
}

}  // namespace reel
