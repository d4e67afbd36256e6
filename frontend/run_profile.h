// frontend/run_profile.h — RunProfile, what the runs of a traced function took, and when.
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace reel {

struct Picture;  // frontend/pictures/picture.h

/// Times of the ops and loops of a traced function, as they were when it was made: Jitted::profile.
///
/// The ops are those that the plan runs, after its passes. What a loop took holds what its ops
/// took; those of a loop that is cut into blocks of rows are added up over the threads that ran
/// them. Of the dataflow executor they are the nodes that pass tokens, and a loop took as long as
/// any of its iterations was in flight.
class RunProfile {
 public:
  /// One for the function; under a tape, more for it and its gradient. (For jit.)
  explicit RunProfile(std::vector<Picture> parts);

  /// The ten ops and loops that took most time, a line each: time in a run (the mean of all but the
  /// first, which plans loops; of the dataflow executor the last one), its part of the whole, how
  /// often it ran in a run, what it is, in which loop, and the line of code that it comes from.
  std::string summary() const;

  /// Writes the last run as a time line in the trace event format, which chrome://tracing and
  /// Perfetto show: a row for each thread, loops as spans with their iterations and ops inside. Of
  /// the dataflow executor, whose iterations lie beside each other, loops have rows of their own:
  /// in each iteration the loops inside, and as many rows as were in flight at once. Of a loop
  /// whose body ran long, the first 16384 spans are there (of a dataflow run 131072 and the last
  /// 16384); the file says how many are not. Throws IoError when the file cannot be written; it is
  /// then as it was. Source: "Trace Event Format", Google, 2016: complete events, in microseconds.
  void write_chrome_trace(const std::string& path) const;

 private:
  std::shared_ptr<const std::vector<Picture>> parts_;
};

}  // namespace reel
