// frontend/sequence.h — Sequence, an array in a file that is read piece by piece.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "reel/core/tensor.h"

namespace reel {

/// A sequence that may be longer than memory: an .npy file, read along its first axis. The piece
/// behind the one that was asked for is read ahead, by a thread of its own; where no thread can be
/// started, each piece is read when it is asked for.
///
///   Sequence text("text.npy", {batch});
///   for (State state = start; text.left() >= 100;)
///     std::tie(model, state) = step(std::move(model), state, text.next(Dim("time", 100)));
///
/// The state that a step hands on is a constant to the next one: gradients are exact inside a piece
/// and reach no further, as with scan's `truncate`.
class Sequence {
 public:
  /// step_dims: those of a step, or none for plain ones. Throws what load_npy throws, ShapeError
  /// for a scalar, and IoError for an array of several axes in Fortran's order.
  explicit Sequence(const std::string& path, const Dims& step_dims = {});
  ~Sequence();
  Sequence(Sequence&&) noexcept;
  Sequence& operator=(Sequence&&) noexcept;

  std::int64_t steps() const;
  std::int64_t position() const;  ///< of the next step
  std::int64_t left() const { return steps() - position(); }
  /// Goes on with that step. Throws IndexError unless 0 <= position <= steps().
  void seek(std::int64_t position);
  /// The next steps, as many as the dim has -> {time, dims of a step}. Throws IndexError where so
  /// many are not left, ArgumentError for a dim without a size or with lengths, IoError; then the
  /// position is as it was.
  Tensor next(const Dim& time);

 private:
  struct Reader;
  std::unique_ptr<Reader> reader_;
};

}  // namespace reel
