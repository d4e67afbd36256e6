// frontend/events/event_writer.h — EventWriter, which writes files that TensorBoard shows.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "reel/core/base/visibility.h"
#include "reel/core/graph/graph.h"
#include "reel/core/types/tensor.h"

REEL_API_BEGIN
namespace reel {

/// Options of EventWriter.
struct EventWriterOptions {
  std::function<double()> clock = {};  ///< seconds since 1970; default: the system's
  /// The first step of a run that resumes. TensorBoard then drops this step and later steps from
  /// files that the folder already has.
  std::optional<std::int64_t> purge_step = {};
};

/// Writes measurements of a training run for TensorBoard.
///
///   EventWriter events("runs/first");
///   events.graph(step.graph());
///   events.scalar("loss", i, loss);
///   events.histogram("hidden", i, model.hidden);
///
///   tensorboard --logdir runs
///
/// Each object makes one new file in the folder, with a name events.out.tfevents... A run that
/// resumes writes another file beside it; with `purge_step`, a curve has each step once:
///
///   load_checkpoint(saved, now);
///   EventWriter events("runs/first", {.purge_step = steps_done + 1});
///
/// Every call writes at once, so that a program that is
/// killed loses nothing. Tags with slashes group: "loss/train", "loss/validation". A call takes
/// some microseconds, a histogram one pass over its tensor. Not thread-safe.
class EventWriter {
 public:
  /// Makes the folder if it does not exist. Throws IoError, as all members do, also if the folder
  /// is a link of another user in a folder like /tmp.
  explicit EventWriter(const std::string& folder, EventWriterOptions options = {});
  ~EventWriter();
  EventWriter(EventWriter&&) noexcept;
  EventWriter& operator=(EventWriter&&) noexcept;

  void scalar(const std::string& tag, std::int64_t step, double value);
  /// value: one number of any dtype. Throws ShapeError for more elements.
  void scalar(const std::string& tag, std::int64_t step, const Tensor& value);
  /// Writes the distribution of a tensor's elements, of any dtype and shape, in at most 30 buckets
  /// of equal width. Leaves out padding, NaN and infinities.
  void histogram(const std::string& tag, std::int64_t step, const Tensor& values);
  /// Writes a text, which TensorBoard reads as Markdown.
  void text(const std::string& tag, std::int64_t step, const std::string& text);
  /// Writes a graph, as Jitted::graph() has it. Loops, conditions and branches are scopes, which
  /// TensorBoard opens and closes.
  void graph(const Graph& graph);

  /// Returns the path of the file.
  const std::string& path() const;

 private:
  struct File;
  std::unique_ptr<File> file_;
};

}  // namespace reel
REEL_API_END
