// Moves tokens from outputs to inputs, into frames, from iteration to iteration, and out of frames.
#include <new>

#include "reel/core/base/errors.h"
#include "reel/core/base/str.h"
#include "reel/trace/executors/dataflow/token_run.h"

namespace reel {

void TokenRun::make_ready(Iteration& iteration, int node, bool is_dead, int taken) {
  ++iteration.outstanding;
  const Ready ready{&iteration, node, is_dead, taken};
  if (is_dead || plan_.nodes[static_cast<std::size_t>(node)].is_forwarding)
    forwarding_.push_back(ready);
  else
    (takes_long(ready) ? long_ : short_).push_back(ready);
}

void TokenRun::deliver(Iteration& to, const TokenPlan::Edge& edge, const Tensor& value,
                       bool is_dead) {
  if (edge.node == TokenPlan::kResult) {
    results_[static_cast<std::size_t>(edge.slot)] = value;
    result_states_[static_cast<std::size_t>(edge.slot)] = is_dead ? kDead : kLive;
    return;
  }
  const TokenPlan::Node& node = plan_.nodes[static_cast<std::size_t>(edge.node)];
  const auto place = static_cast<std::size_t>(node.place);
  std::uint8_t& state = to.state[place];
  if (node.is->kind == LoweredKind::merge) {
    --to.waits[place];
    if (state & Iteration::kFired) return;
    // After a dead Enter the loop does not run, and no NextIteration reaches its Merge.
    const bool never_runs = node.is_loop_merge && edge.slot == 0;
    if (is_dead && to.waits[place] && !never_runs) return;
    state |= Iteration::kFired;
    if (!is_dead) to.slots[static_cast<std::size_t>(node.first_slot + edge.slot)] = value;
    return make_ready(to, edge.node, is_dead, is_dead ? -1 : edge.slot);
  }
  if (is_dead)
    state |= Iteration::kDead;
  else if (edge.slot != TokenPlan::kControl)
    to.slots[static_cast<std::size_t>(node.first_slot + edge.slot)] = value;
  if (--to.waits[place] == 0) make_ready(to, edge.node, state & Iteration::kDead);
}

void TokenRun::send(Iteration& to, int node, int port, const Tensor& value, bool is_dead) {
  const TokenPlan::Node& from = plan_.nodes[static_cast<std::size_t>(node)];
  for (int i = plan_.first_edge_of(from, port);
       i < from.end_edge && plan_.edges[static_cast<std::size_t>(i)].port == port; ++i)
    deliver(to, plan_.edges[static_cast<std::size_t>(i)], value, is_dead);
}

/// Sends dead tokens by all ports, or a live one to nodes that wait for this node without reading
/// it.
void TokenRun::send_all(Iteration& to, int node, bool is_dead) {
  const TokenPlan::Node& from = plan_.nodes[static_cast<std::size_t>(node)];
  for (int i = from.first_edge; i < (is_dead ? from.end_edge : from.end_controls); ++i)
    deliver(to, plan_.edges[static_cast<std::size_t>(i)], {}, is_dead);
}

void TokenRun::complete(const Ready& ready, std::span<Tensor> outputs) {
  Iteration& iteration = *ready.iteration;
  for (std::size_t port = 0; port < outputs.size(); ++port)
    send(iteration, ready.node, static_cast<int>(port), outputs[port], false);
  send_all(iteration, ready.node, false);
  --iteration.outstanding;
  clean_up(iteration);
}

void TokenRun::fire_forwarding(int thread) {
  // A loop may consist of forwarding nodes only, so other threads get the mutex in between.
  constexpr int kAtOnce = 256;
  for (int i = 0; i < kAtOnce && !forwarding_.empty(); ++i) {
    Ready ready = forwarding_.front();
    forwarding_.pop_front();
    if (!may_run(ready)) continue;
    const std::int64_t begin = recorder_ ? now() : 0;
    const std::exception_ptr error = forward(ready);
    if (error) {
      fail(activation(ready, begin, recorder_ ? now() : 0, thread), ready, error);
      continue;
    }
    if (recorder_) recorder_->note(activation(ready, begin, now(), thread));
    --ready.iteration->outstanding;
    clean_up(*ready.iteration);
  }
}

std::exception_ptr TokenRun::forward(Ready& ready) try {
  const TokenPlan::Node& node = plan_.nodes[static_cast<std::size_t>(ready.node)];
  Iteration& iteration = *ready.iteration;
  FrameRun& frame = *iteration.frame;
  const auto take = [&](int k) {
    const auto slot = static_cast<std::size_t>(node.first_slot + k);
    Tensor& input = iteration.slots[slot];
    return frame.plan->is_held[slot] ? input : std::move(input);
  };
  switch (node.is->kind) {
    case LoweredKind::enter:
      enter(iteration, ready.node, ready.is_dead ? Tensor() : take(0), ready.is_dead);
      return {};
    case LoweredKind::next_iteration:
      if (!ready.is_dead) next(iteration, ready.node, take(0));
      return {};
    case LoweredKind::exit:
      if (!ready.is_dead)
        send(*frame.outer, ready.node, 0, take(0), false);
      else if (iteration.number == frame.newest())
        frame.dead_exits.push_back(ready.node);
      return {};
    default:
      break;
  }
  if (ready.is_dead) {
    send_all(iteration, ready.node, true);
    return {};
  }
  if (node.is->kind == LoweredKind::switch_) {
    const Tensor pred = take(1), x = take(0);
    if (pred.dtype() != boolean || pred.numel() != 1)
      throw ArgumentError(str(node.is->name, ": the predicate of a Switch must be a boolean ",
                              "scalar, got ", pred.type()));
    ready.taken = *pred.data<bool>();
    send(iteration, ready.node, ready.taken, x, false);
    send(iteration, ready.node, !ready.taken, {}, true);
  } else {
    const Tensor x = take(ready.taken < 0 ? 0 : ready.taken);
    send(iteration, ready.node, 0, x, false);
  }
  send_all(iteration, ready.node, false);
  return {};
} catch (const std::bad_alloc&) {
  throw;  // tokens may have been delivered in part: the run ends
} catch (...) {
  return std::current_exception();
}

FrameRun& TokenRun::frame_entered(Iteration& outer, int index) {
  const TokenPlan::Frame& plan = plan_.frames[static_cast<std::size_t>(index)];
  std::unique_ptr<FrameRun>& child = outer.children[static_cast<std::size_t>(plan.child)];
  if (child) return *child;
  child = std::make_unique<FrameRun>();
  child->plan = &plan;
  child->index = index;
  child->outer = &outer;
  child->pending_enters = plan.enters;
  ++outer.child_count;
  if (recorder_) child->instance = recorder_->enter({index, outer.frame->instance, outer.number});
  begin_iteration(*child);
  return *child;
}

void TokenRun::enter(Iteration& outer, int node, Tensor value, bool is_dead) {
  const LoweredNode& is = *plan_.nodes[static_cast<std::size_t>(node)].is;
  FrameRun& frame = frame_entered(outer, is.enters);
  if (frame.iterations.empty()) return;  // no memory for the first iteration: the run has failed
  --frame.pending_enters;
  if (frame.plan->begin == node && !is_dead) frame.begin = value;
  const auto pass = [&](Iteration& to) {
    if (is_dead) {
      send_all(to, node, true);
    } else {
      send(to, node, 0, value, false);
      send_all(to, node, false);
    }
  };
  if (is.is_constant) {
    frame.constants.push_back({node, value, is_dead});
    frame.has_dead_constants = frame.has_dead_constants || is_dead;
    for (const auto& iteration : frame.iterations) pass(*iteration);
  } else {
    pass(*frame.iterations.front());
  }
  clean_up(*frame.iterations.front());
}

int TokenRun::bound_of(const FrameRun& frame) const {
  return parallel_iterations_
             ? parallel_iterations_
             : plan_.graph->frames[static_cast<std::size_t>(frame.index)].parallel_iterations;
}

void TokenRun::next(Iteration& from, int node, const Tensor& value) {
  FrameRun& frame = *from.frame;
  Iteration* to = nullptr;
  if (from.number < frame.newest())
    to = frame.iterations[static_cast<std::size_t>(from.number + 1 - frame.oldest)].get();
  else if (std::ssize(frame.iterations) < bound_of(frame))
    to = &begin_iteration(frame);
  else
    frame.parked.push_back({node, value});
  if (!to) return;
  send(*to, node, 0, value, false);
  send_all(*to, node, false);
}

Iteration& TokenRun::begin_iteration(FrameRun& frame) {
  const TokenPlan::Frame& plan = *frame.plan;
  const bool is_settled = frame.is_settled();
  std::unique_ptr<Iteration> made;
  if (frame.spare.empty()) {
    made = std::make_unique<Iteration>();
    made->frame = &frame;
    made->slots.resize(static_cast<std::size_t>(plan.slots));
    made->children.resize(static_cast<std::size_t>(plan.children));
    if (is_settled) hold_constants(*made);
  } else {
    made = std::move(frame.spare.back());
    frame.spare.pop_back();
  }
  made->number = frame.newest() + 1;
  made->waits = is_settled ? plan.waits_but_held : plan.waits;
  made->state.assign(plan.waits.size(), 0);
  if (plan.has_dims)
    made->scopes = std::make_unique<ScopeDims[]>(static_cast<std::size_t>(plan.scopes));
  Iteration& iteration = *made;
  frame.dead_exits.clear();
  frame.iterations.push_back(std::move(made));
  if (recorder_ && frame.index) recorder_->iteration(frame.instance, iteration.number, true, now());
  if (is_settled) {
    for (const int node : plan.held_ready) make_ready(iteration, node, false);
    replay_constants(iteration);
  } else {
    for (const FrameRun::Token& token : frame.constants) {
      if (!token.is_dead) send(iteration, token.node, 0, token.value, false);
      send_all(iteration, token.node, token.is_dead);
    }
  }
  return iteration;
}

/// Puts constants into their slots, where they stay. A reused iteration has them already.
void TokenRun::hold_constants(Iteration& iteration) {
  for (const auto& [from, value, is_dead] : iteration.frame->constants) {
    const TokenPlan::Node& node = plan_.nodes[static_cast<std::size_t>(from)];
    for (int i = node.end_controls; i < node.end_edge; ++i) {
      const TokenPlan::Edge& edge = plan_.edges[static_cast<std::size_t>(i)];
      const TokenPlan::Node& to = plan_.nodes[static_cast<std::size_t>(edge.node)];
      if (edge.is_held)
        iteration.slots[static_cast<std::size_t>(to.first_slot + edge.slot)] = value;
    }
  }
}

/// Sends constants to the nodes that need them anew in every iteration.
void TokenRun::replay_constants(Iteration& iteration) {
  if (!iteration.frame->plan->has_replayed) return;
  for (const auto& [from, value, is_dead] : iteration.frame->constants) {
    const TokenPlan::Node& node = plan_.nodes[static_cast<std::size_t>(from)];
    if (!node.is_replayed) continue;
    for (int i = node.first_edge; i < node.end_edge; ++i)
      if (const TokenPlan::Edge& edge = plan_.edges[static_cast<std::size_t>(i)]; !edge.is_held)
        deliver(iteration, edge, value, false);
  }
}

bool TokenRun::is_done(const Iteration& iteration) const {
  return !iteration.outstanding && !iteration.child_count &&
         (iteration.number > 0 || !iteration.frame->pending_enters);
}

/// Ends iterations with nothing left to do, in order, and after the last one their frame.
void TokenRun::clean_up(Iteration& iteration) {
  FrameRun& frame = *iteration.frame;
  if (!frame.index) return;
  while (!frame.iterations.empty() && is_done(*frame.iterations.front())) {
    std::unique_ptr<Iteration> gone = std::move(frame.iterations.front());
    frame.iterations.pop_front();
    if (recorder_) recorder_->iteration(frame.instance, frame.oldest, false, now());
    ++frame.oldest;
    for (std::size_t slot = 0; slot < gone->slots.size(); ++slot)
      if (!frame.plan->is_held[slot]) gone->slots[slot] = Tensor();
    frame.spare.push_back(std::move(gone));
    if (frame.parked.empty()) continue;
    const std::vector<FrameRun::Token> parked = std::move(frame.parked);
    frame.parked.clear();
    Iteration& to = begin_iteration(frame);
    for (const FrameRun::Token& token : parked) {
      send(to, token.node, 0, token.value, false);
      send_all(to, token.node, false);
    }
  }
  if (frame.iterations.empty()) end_frame(frame);
}

void TokenRun::end_frame(FrameRun& frame) {
  Iteration& outer = *frame.outer;
  if (recorder_) recorder_->leave(frame.instance);
  for (const int node : frame.dead_exits) send_all(outer, node, true);
  outer.children[static_cast<std::size_t>(frame.plan->child)].reset();
  --outer.child_count;
  clean_up(outer);
}

}  // namespace reel
