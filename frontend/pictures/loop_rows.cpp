#include "reel/frontend/pictures/loop_rows.h"

#include <algorithm>
#include <map>

namespace reel {
namespace {

/// Lanes of spans that must not overlap: each span takes the first lane that is free.
class Lanes {
 public:
  /// Requires calls in the order in which the spans begin.
  std::size_t take(std::int64_t begin, std::int64_t end) {
    const auto free =
        std::find_if(ends_.begin(), ends_.end(), [&](std::int64_t e) { return e <= begin; });
    const auto lane = static_cast<std::size_t>(free - ends_.begin());
    if (free == ends_.end())
      ends_.push_back(end);
    else
      *free = end;
    return lane;
  }
  std::size_t count() const { return ends_.size(); }

 private:
  std::vector<std::int64_t> ends_;  ///< end of the last span of each lane
};

struct Iteration {
  std::int64_t number, begin, end;
  std::size_t lane = 0;  ///< of its execution
};

/// A part of an execution that lies on one row. Lane 0: the loop itself and its consecutive
/// iterations. Other lanes: iterations that overlap with those.
struct Lane {
  std::int64_t begin = 0, end = 0;
  bool is_inside = false;  ///< drawn on the row of an iteration of the outer loop, inside it
  unsigned row = 0;
};

struct Execution {
  std::vector<Iteration> iterations;       ///< in the order of their begins
  std::map<std::int64_t, std::size_t> at;  ///< places of iterations, by number
  std::vector<Lane> lanes;
};

class LoopLayout {
 public:
  LoopLayout(const RecordedRun& run, const std::vector<std::string>& names)
      : run_(run), names_(names), all_(run.instances.size()) {}

  LoopRows lay_out() {
    read_iterations();
    for (Execution& execution : all_) part(execution);
    find_what_is_inside();
    for (std::size_t frame = 1; frame < run_.graph->frames.size(); ++frame)
      for (const bool is_beside : {false, true}) give_rows(static_cast<int>(frame), is_beside);
    for (std::size_t i = 0; i < all_.size(); ++i) draw(i);
    return std::move(result_);
  }

 private:
  const FrameInstance& instance(std::size_t i) const { return run_.instances[i]; }

  /// Iterations that did not finish because the run failed end with the run.
  void read_iterations() {
    for (const IterationEvent& event : run_.iterations) {
      const auto i = static_cast<std::size_t>(event.instance);
      if (instance(i).frame == 0 || !instance(i).has_run) continue;
      Execution& execution = all_[i];
      if (event.begins) {
        execution.at[event.iteration] = execution.iterations.size();
        execution.iterations.push_back({event.iteration, event.time, run_.nanoseconds});
      } else {
        execution.iterations[execution.at.at(event.iteration)].end = event.time;
      }
    }
    for (auto& [iterations, at, lanes] : all_) {
      std::stable_sort(iterations.begin(), iterations.end(),
                       [](const Iteration& a, const Iteration& b) { return a.begin < b.begin; });
      for (std::size_t k = 0; k < iterations.size(); ++k) at[iterations[k].number] = k;
    }
    // Inner loops come after their outer loop in the list.
    for (std::size_t i = all_.size(); i-- > 0;)
      if (Iteration* around = iteration_around(i))
        for (const Iteration& one : all_[i].iterations)
          around->end = std::max(around->end, one.end);
  }

  Iteration* iteration_around(std::size_t i) {
    if (all_[i].iterations.empty() || instance(i).parent < 0) return nullptr;
    Execution& parent = all_[static_cast<std::size_t>(instance(i).parent)];
    const auto found = parent.at.find(instance(i).parent_iteration);
    return found == parent.at.end() ? nullptr : &parent.iterations[found->second];
  }

  static void part(Execution& execution) {
    Lanes lanes;
    for (Iteration& one : execution.iterations) {
      one.lane = lanes.take(one.begin, one.end);
      if (one.lane == execution.lanes.size()) execution.lanes.push_back({one.begin, one.end});
      Lane& lane = execution.lanes[one.lane];
      lane.end = std::max(lane.end, one.end);
      execution.lanes.front().end = std::max(execution.lanes.front().end, one.end);
    }
  }

  std::vector<std::size_t> in_order_of_begin(std::vector<std::size_t> some) const {
    std::stable_sort(some.begin(), some.end(), [&](std::size_t a, std::size_t b) {
      return all_[a].lanes.front().begin < all_[b].lanes.front().begin;
    });
    return some;
  }

  /// If several loops of an iteration ran at the same time, the one that began first lies inside
  /// it.
  void find_what_is_inside() {
    std::vector<std::size_t> inner;
    for (std::size_t i = 0; i < all_.size(); ++i)
      if (iteration_around(i)) inner.push_back(i);
    std::map<const Iteration*, std::int64_t> ends;
    for (const std::size_t i : in_order_of_begin(std::move(inner))) {
      Lane& lane = all_[i].lanes.front();
      const auto [end, is_first] = ends.try_emplace(iteration_around(i), lane.end);
      lane.is_inside = is_first || end->second <= lane.begin;
      if (lane.is_inside) end->second = lane.end;
    }
  }

  /// is_beside: gives rows to the lanes other than lane 0.
  void give_rows(int frame, bool is_beside) {
    std::vector<Lane*> some;
    for (std::size_t i = 0; i < all_.size(); ++i) {
      std::vector<Lane>& lanes = all_[i].lanes;
      if (instance(i).frame != frame) continue;
      for (std::size_t k = 0; k < lanes.size(); ++k)
        if ((k > 0) == is_beside && !lanes[k].is_inside) some.push_back(&lanes[k]);
    }
    std::stable_sort(some.begin(), some.end(),
                     [](const Lane* a, const Lane* b) { return a->begin < b->begin; });
    const auto first = static_cast<unsigned>(result_.names.size());
    Lanes rows;
    for (Lane* lane : some)
      lane->row = first + static_cast<unsigned>(rows.take(lane->begin, lane->end));
    const std::string& name = names_[static_cast<std::size_t>(frame)];
    result_.names.resize(first + rows.count(), is_beside ? name + ", more in flight" : name);
  }

  void draw(std::size_t i) {
    Execution& execution = all_[i];
    if (execution.iterations.empty()) return;
    Lane& whole = execution.lanes.front();
    if (whole.is_inside) {
      const Execution& parent = all_[static_cast<std::size_t>(instance(i).parent)];
      whole.row = parent.lanes[iteration_around(i)->lane].row;
    }
    const int frame = instance(i).frame;
    result_.spans.push_back({frame, {}, {}, whole.row, whole.begin, whole.end});
    for (const Iteration& one : execution.iterations)
      result_.spans.push_back({frame, one.number, tag_of(run_, static_cast<int>(i), one.number),
                               execution.lanes[one.lane].row, one.begin, one.end});
  }

  const RecordedRun& run_;
  const std::vector<std::string>& names_;
  std::vector<Execution> all_;  ///< by instance; empty for instances that are not executed loops
  LoopRows result_;
};

}  // namespace

LoopRows rows_of_loops(const RecordedRun& run, const std::vector<std::string>& names) {
  return LoopLayout(run, names).lay_out();
}

}  // namespace reel
