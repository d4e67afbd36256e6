// trace/executors/loop/finished_entries.h — FinishedEntries: how finished entries read and write a
// loop's values.
#pragma once

#include <memory>

#include "reel/core/ops/loop/loop.h"
#include "reel/core/ops/loop/substitute_dims.h"

namespace reel {

/// Converts values between a loop and its body for iterations in which some entries have finished
/// (core/ops/loop/entries.h).
class FinishedEntries {
 public:
  /// inputs: types of the op's inputs. `attrs` must outlive this object.
  FinishedEntries(const LoopAttrs& attrs, std::span<const TensorType> inputs);

  /// Sets the entries that run in this iteration: a boolean mask. Must be called before the methods
  /// below.
  void set_running(const Tensor& running);
  /// Returns true if set_running() was last called with an equal mask.
  bool has_running(const Tensor& running) const;

  /// Returns input `input` of the body, the position not counted, as the body reads it. Finished
  /// entries read the values that fill_of() tells. A capture is filled once, and again only after
  /// other entries were set. Requires the same captures in all calls. Thread-safe.
  Tensor seen(const Tensor& x, std::size_t input) const;
  /// Returns the body with bindings for the dims of this iteration.
  SubGraph body() const;
  /// Returns output `output` of the body with the dims that it has outside.
  Tensor made(const Tensor& x, std::size_t output) const;
  /// Returns the term that a stack or sum takes of output `output`: finished entries are zero,
  /// except in residuals and in outputs that add finished entries to running ones.
  Tensor term(const Tensor& made, std::size_t output) const;
  /// Returns the carry behind the iteration: finished entries keep the value `before`, unless the
  /// carry's fill is as_is.
  Tensor next(const Tensor& made, const Tensor& before, std::size_t carry) const;

 private:
  class SeenCaptures;
  Tensor filled(const Tensor& x, FinishedFill fill) const;
  Tensor relabelled(const Tensor& x) const;

  const LoopAttrs& attrs_;
  SubstituteDims dims_;
  Tensor running_;
  std::shared_ptr<SeenCaptures> captures_;  ///< shared by copies until one sets other entries
};

}  // namespace reel
