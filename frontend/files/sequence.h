// frontend/files/sequence.h — Sequence, an array in a file that is read in windows.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "reel/core/base/visibility.h"
#include "reel/core/types/tensor.h"

REEL_API_BEGIN
namespace reel {

/// A sequence that may be longer than memory: an .npy file, read along its first axis.
///
/// A thread reads the next window ahead. If no thread can be started, each window is read when it
/// is requested. Not thread-safe.
///
///   Sequence text("text.npy", {batch});
///   for (State state = start; text.left() >= 100;)
///     std::tie(model, state) = step(std::move(model), state, text.next(Dim("time", 100)));
///
/// The state that one step passes to the next is a constant to gradients: they are exact within a
/// window and stop at its beginning, as with scan's `truncate`.
class Sequence {
 public:
  /// step_dims: the dims of one time step, or none for plain sizes. Throws the exceptions of
  /// load_npy; ShapeError for a scalar; IoError for an array of several axes in Fortran order.
  explicit Sequence(const std::string& path, const Dims& step_dims = {});
  ~Sequence();
  Sequence(Sequence&&) noexcept;
  Sequence& operator=(Sequence&&) noexcept;

  /// Returns the number of time steps in the file.
  std::int64_t steps() const;
  std::int64_t position() const;  ///< of the next time step
  /// Returns the number of time steps behind the position.
  std::int64_t left() const { return steps() - position(); }
  /// Continues at this time step. Throws IndexError unless 0 <= position <= steps().
  void seek(std::int64_t position);
  /// Returns the next time steps, as many as the dim has: {time, step_dims...}. Throws IndexError
  /// if fewer are left, ArgumentError for a dim without a size or with lengths, or IoError; the
  /// position is then unchanged.
  Tensor next(const Dim& time);
  /// Returns the given time steps in their order, {rows, step_dims...}; the position stays. rows: a
  /// dim with a place for each. Throws IndexError for a step that is not there, ArgumentError for
  /// another dim, or IoError.
  Tensor take(const std::vector<std::int64_t>& steps, const Dim& rows) const;

 private:
  struct Reader;
  std::unique_ptr<Reader> reader_;
};

}  // namespace reel
REEL_API_END
