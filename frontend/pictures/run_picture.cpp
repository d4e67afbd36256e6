// Converts recorded runs of lowered graphs into counts and spans of a picture.
#include <algorithm>

#include "reel/core/base/str.h"
#include "reel/frontend/pictures/loop_rows.h"
#include "reel/frontend/pictures/lowered_picture.h"

namespace reel {
namespace {

class RunDraughtsman {
 public:
  explicit RunDraughtsman(const RecordedRun& run)
      : run_(run), result_(reel::picture_of(*run.graph)) {}

  LoweredPicture draw() {
    Picture& picture = result_.picture;
    picture.name = run_.graph->scopes.front().graph->name;
    picture.runs = run_.failure ? 0 : 1;
    picture.which_runs = Picture::Runs::last;
    picture.nanoseconds = run_.nanoseconds;
    add_span({-1}, 0, 0, run_.nanoseconds);
    count();
    draw_activations();
    draw_loops();
    return std::move(result_);
  }

 private:
  void add_span(PictureSpan span, unsigned row, std::int64_t begin, std::int64_t end) {
    span.row = row;
    span.begin = run_.began + begin;
    span.end = run_.began + end;
    result_.picture.spans.push_back(std::move(span));
  }
  PictureNode& node(int at) { return result_.picture.nodes[static_cast<std::size_t>(at)]; }

  /// Sets the counts of nodes and loops over the whole run, including activations that were not
  /// recorded.
  void count() {
    for (std::size_t i = 0; i < run_.node_totals.size(); ++i)
      if (const auto& [count, nanoseconds] = run_.node_totals[i]; count.live)
        node(result_.nodes[i]).count = {count.live, nanoseconds};
    for (std::size_t frame = 1; frame < run_.frame_totals.size(); ++frame) {
      const RecordedRun::FrameTotal& total = run_.frame_totals[frame];
      PictureNode& box = node(result_.frames[frame]);
      if (total.executions) box.count = {total.executions, total.nanoseconds};
      const int most = run_.parallel_iterations ? run_.parallel_iterations
                                                : run_.graph->frames[frame].parallel_iterations;
      box.note = str(total.bodies, total.bodies == 1 ? " iteration" : " iterations", ", at most ",
                     most, " at once");
    }
  }

  void draw_activations() {
    std::int64_t left_out = 0;
    for (const auto& [count, nanoseconds] : run_.node_totals) left_out += count.live;
    for (const Activation& at : run_.activations) {
      threads_ = std::max(threads_, static_cast<unsigned>(at.thread) + 1);
      if (at.is_dead || at.has_failed) continue;
      --left_out;
      PictureSpan span{result_.nodes[static_cast<std::size_t>(at.node)]};
      span.in_iteration = tag_of(run_, at.instance, at.iteration);
      add_span(std::move(span), static_cast<unsigned>(at.thread), at.begin, at.end);
    }
    result_.picture.spans_left_out += left_out;
  }

  void draw_loops() {
    std::vector<std::string> names;
    for (const int box : result_.frames) names.push_back(box < 0 ? "" : list_name_of(node(box)));
    const LoopRows rows = rows_of_loops(run_, names);
    std::int64_t all = 0;
    for (const RecordedRun::FrameTotal& total : run_.frame_totals)
      all += total.executions + total.iterations;
    for (const LoopSpan& span : rows.spans)
      add_span({.node = result_.frames[static_cast<std::size_t>(span.frame)],
                .iteration = span.iteration,
                .in_iteration = span.tag},
               threads_ + span.row, span.begin, span.end);
    for (std::size_t row = 0; row < rows.names.size(); ++row)
      result_.picture.rows.emplace(threads_ + static_cast<unsigned>(row), rows.names[row]);
    result_.picture.spans_left_out += all - std::ssize(rows.spans);
  }

  const RecordedRun& run_;
  LoweredPicture result_;
  unsigned threads_ = 1;
};

}  // namespace

LoweredPicture picture_of(const RecordedRun& run) { return RunDraughtsman(run).draw(); }

}  // namespace reel
