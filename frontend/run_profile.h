// frontend/run_profile.h — RunProfile, the measured times of a traced function's runs.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "reel/core/base/visibility.h"

REEL_API_BEGIN
namespace reel {

struct Picture;  // frontend/pictures/picture.h

/// A copy of the measured times of a traced function's ops and loops: Jitted::profile.
///
/// Plan: the ops are those after the plan's passes. A loop's time includes the time of its ops. If
/// a loop is cut into row blocks, its ops' times are scaled to it. Dataflow: the ops are
/// the nodes that pass tokens; a loop's time is the time during which any of its iterations was in
/// flight.
class RunProfile {
 public:
  /// parts: one for the function; under a tape, more for the function and its gradient. For jit
  /// only.
  explicit RunProfile(std::vector<Picture> parts);

  /// Returns a table of the ten ops and loops that took most time, one line each: time per run,
  /// share of the whole, executions per run, name, enclosing loop, and the line of code. Time
  /// besides the ops has lines, so that all add up. The time is the mean of all runs except the
  /// first, which plans loops; for the dataflow executor, the last run. A last line says how to get
  /// lines of code if the program was built without debug information.
  std::string summary() const;

  /// Writes the last run as a time line in the trace event format of chrome://tracing and Perfetto:
  /// a row for each thread, and loops as spans that contain their iterations and ops.
  ///
  /// Dataflow: loops have rows of their own, because iterations overlap: as many rows as iterations
  /// were in flight at once, with inner loops inside each iteration. Long loops are truncated to
  /// the first 16384 spans; dataflow runs to the first 131072 and the last 16384. The file contains
  /// the number of omitted spans. Throws IoError if the file cannot be written; an existing file is
  /// then unchanged. Source: "Trace Event Format", Google, 2016: complete events, in microseconds.
  void write_chrome_trace(const std::string& path) const;

 private:
  std::shared_ptr<const std::vector<Picture>> parts_;
};

}  // namespace reel
REEL_API_END
