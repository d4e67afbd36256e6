// Recorded runs of lowered graphs as counts and spans of a picture.
#include <algorithm>

#include "reel/core/str.h"
#include "reel/frontend/pictures/lowered_picture.h"

namespace reel {
namespace {

/// Of activations, a time line has the first ones.
constexpr std::size_t kMostSpans = std::size_t{1} << 17;

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
      : run_(run), result_(reel::picture_of(*run.graph, run.parallel_iterations)) {}

  LoweredPicture draw() {
    for (const Activation& at : run_.activations) finish_ = std::max(finish_, at.end);
    Picture& picture = result_.picture;
    picture.name = run_.graph->scopes.front().graph->name;
    picture.runs = run_.has_failed ? 0 : 1;
    picture.which_runs = Picture::Runs::last;
    picture.nanoseconds = finish_;
    all_ = iterations();
    add_span({-1}, 0, 0, finish_);
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
    result_.picture.spans.push_back(span);
  }
  PictureNode::Count& count_of(int node) {
    auto& count = result_.picture.nodes[static_cast<std::size_t>(node)].count;
    if (!count) count.emplace();
    return *count;
  }

  void draw_activations() {
    std::size_t spans = 0;
    for (const Activation& at : run_.activations) {
      if (at.is_dead) continue;
      const int node = result_.nodes[static_cast<std::size_t>(at.node)];
      PictureNode::Count& count = count_of(node);
      count.calls += 1;
      count.nanoseconds += at.end - at.begin;
      threads_ = std::max(threads_, static_cast<unsigned>(at.thread) + 1);
      if (++spans <= kMostSpans)
        add_span({node}, static_cast<unsigned>(at.thread), at.begin, at.end);
      else
        ++result_.picture.spans_left_out;
    }
  }

  /// The iterations of an execution of a frame, in the order in which they began. One that was not
  /// done with, in a run that failed, ends with the run.
  std::vector<std::vector<Part>> iterations() const {
    std::vector<std::vector<Part>> result(run_.instances.size());
    for (const IterationEvent& event : run_.iterations) {
      std::vector<Part>& parts = result[static_cast<std::size_t>(event.instance)];
      if (event.begins)
        parts.push_back({event.iteration, event.time, finish_});
      else
        parts[static_cast<std::size_t>(event.iteration)].end = event.time;
    }
    return result;
  }

  void draw_frame(int frame) {
    const int box = result_.frames[static_cast<std::size_t>(frame)];
    const std::string& name = result_.picture.nodes[static_cast<std::size_t>(box)].label;
    std::vector<Part> wholes, parts;  // executions of the frame, and all their iterations
    for (std::size_t i = 0; i < run_.instances.size(); ++i) {
      if (run_.instances[i].frame != frame || all_[i].empty()) continue;
      Part whole{-1, all_[i].front().begin, 0};
      for (const Part& part : all_[i]) whole.end = std::max(whole.end, part.end);
      wholes.push_back(whole);
      parts.insert(parts.end(), all_[i].begin(), all_[i].end());
      PictureNode::Count& count = count_of(box);
      count.calls += 1;
      count.nanoseconds += whole.end - whole.begin;
    }
    const auto draw = [&](std::vector<Part>& some, const std::string& title) {
      std::stable_sort(some.begin(), some.end(),
                       [](const Part& a, const Part& b) { return a.begin < b.begin; });
      Rows rows(next_row());
      for (const Part& part : some) {
        PictureSpan span{box};
        if (part.iteration >= 0) span.iteration = part.iteration;
        add_span(span, rows.take(part.begin, part.end), part.begin, part.end);
      }
      for (unsigned row = 0; row < rows.count(); ++row)
        result_.picture.rows.emplace(next_row(), title);
    };
    draw(wholes, name);
    draw(parts, name + ", iterations");
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
