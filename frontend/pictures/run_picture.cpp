// Recorded runs of lowered graphs as counts and spans of a picture.
#include <algorithm>
#include <map>

#include "reel/core/str.h"
#include "reel/frontend/pictures/lowered_picture.h"

namespace reel {
namespace {

/// So many ops a time line has, the first ones, and so many iterations of each loop.
constexpr std::int64_t kMostSpans = std::int64_t{1} << 17;

/// Gives rows of the time line to spans that may overlap: each the first that is free by then.
class Rows {
 public:
  /// first: the number of the first row.
  explicit Rows(unsigned first) : first_(first) {}
  /// Spans come in the order in which they begin.
  unsigned take(std::int64_t begin, std::int64_t end) {
    const auto free =
        std::find_if(ends_.begin(), ends_.end(), [&](std::int64_t e) { return e <= begin; });
    const auto row = static_cast<unsigned>(free - ends_.begin());
    if (free == ends_.end())
      ends_.push_back(end);
    else
      *free = end;
    return first_ + row;
  }
  unsigned count() const { return static_cast<unsigned>(ends_.size()); }

 private:
  unsigned first_;
  std::vector<std::int64_t> ends_;  ///< of what a row has last
};

class RunDraughtsman {
 public:
  explicit RunDraughtsman(const RecordedRun& run)
      : run_(run), result_(reel::picture_of(*run.graph)) {}

  LoweredPicture draw() {
    finish_ = run_.nanoseconds;
    Picture& picture = result_.picture;
    picture.name = run_.graph->scopes.front().graph->name;
    picture.runs = run_.failure ? 0 : 1;
    picture.which_runs = Picture::Runs::last;
    picture.nanoseconds = finish_;
    all_ = iterations();
    add_span({-1}, 0, 0, finish_);
    count();
    draw_activations();
    // Loops of one kind lie below each other, those around them above.
    for (std::size_t frame = 1; frame < run_.graph->frames.size(); ++frame)
      draw_frame(static_cast<int>(frame));
    return std::move(result_);
  }

 private:
  struct Part {
    std::int64_t iteration, begin, end;
  };

  void add_span(PictureSpan span, unsigned row, std::int64_t begin, std::int64_t end) {
    span.row = row;
    span.begin = run_.began + begin;
    span.end = run_.began + end;
    result_.picture.spans.push_back(std::move(span));
  }
  PictureNode& node(int at) { return result_.picture.nodes[static_cast<std::size_t>(at)]; }

  /// What nodes and loops took in the whole run, of which not all may be kept.
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
    std::int64_t spans = 0, all = 0;
    for (const auto& [count, nanoseconds] : run_.node_totals) all += count.live;
    for (const Activation& at : run_.activations) {
      threads_ = std::max(threads_, static_cast<unsigned>(at.thread) + 1);
      if (at.is_dead || at.has_failed || spans == kMostSpans) continue;
      ++spans;
      PictureSpan span{result_.nodes[static_cast<std::size_t>(at.node)]};
      span.in_iteration = tag_of(run_, at);
      add_span(std::move(span), static_cast<unsigned>(at.thread), at.begin, at.end);
    }
    result_.picture.spans_left_out += all - spans;
  }

  /// The iterations of an execution of a frame, in the order in which they began. One that was not
  /// done with, in a run that failed, ends with the run.
  std::vector<std::vector<Part>> iterations() const {
    std::vector<std::vector<Part>> result(run_.instances.size());
    std::map<std::pair<int, std::int64_t>, std::size_t> place;
    for (const IterationEvent& event : run_.iterations) {
      std::vector<Part>& parts = result[static_cast<std::size_t>(event.instance)];
      if (event.begins) {
        place[{event.instance, event.iteration}] = parts.size();
        parts.push_back({event.iteration, event.time, finish_});
      } else {
        parts[place.at({event.instance, event.iteration})].end = event.time;
      }
    }
    return result;
  }

  void draw_frame(int frame) {
    const int box = result_.frames[static_cast<std::size_t>(frame)];
    const std::string& name = node(box).label;
    std::vector<Part> wholes, parts;  // executions of the frame, and all their iterations
    for (std::size_t i = 0; i < run_.instances.size(); ++i) {
      const FrameInstance& instance = run_.instances[i];
      if (instance.frame != frame || !instance.has_run || all_[i].empty()) continue;
      Part whole{-1, all_[i].front().begin, 0};
      for (const Part& part : all_[i]) whole.end = std::max(whole.end, part.end);
      wholes.push_back(whole);
      parts.insert(parts.end(), all_[i].begin(), all_[i].end());
    }
    const auto draw = [&](std::vector<Part>& some, const std::string& title, std::int64_t all) {
      std::stable_sort(some.begin(), some.end(),
                       [](const Part& a, const Part& b) { return a.begin < b.begin; });
      some.resize(std::min(some.size(), static_cast<std::size_t>(kMostSpans)));
      Rows rows(next_row());
      for (const Part& part : some) {
        PictureSpan span{box};
        if (part.iteration >= 0) span.iteration = part.iteration;
        add_span(span, rows.take(part.begin, part.end), part.begin, part.end);
      }
      for (unsigned row = 0; row < rows.count(); ++row)
        result_.picture.rows.emplace(next_row(), title);
      result_.picture.spans_left_out += all - std::ssize(some);
    };
    const RecordedRun::FrameTotal& total = run_.frame_totals[static_cast<std::size_t>(frame)];
    draw(wholes, name, total.executions);
    draw(parts, name + ", iterations", total.iterations);
  }
  unsigned next_row() const {
    return threads_ + static_cast<unsigned>(result_.picture.rows.size());
  }

  const RecordedRun& run_;
  LoweredPicture result_;
  unsigned threads_ = 1;
  std::int64_t finish_ = 0;
  std::vector<std::vector<Part>> all_;  ///< by execution of a frame
};

}  // namespace

LoweredPicture picture_of(const RecordedRun& run) { return RunDraughtsman(run).draw(); }

}  // namespace reel
