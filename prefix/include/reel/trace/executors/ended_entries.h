// trace/executors/ended_entries.h — EndedEntries, what ended entries of a loop see and what comes
// of it.
#pragma once

#include "reel/core/ops/loop.h"
#include "reel/core/ops/shown_dims.h"

namespace reel {

/// Iterations of one run of a loop in which some entries have ended (core/ops/entries.h).
class EndedEntries {
 public:
  /// inputs: types of the op's.
  EndedEntries(const LoopAttrs& attrs, std::span<const TensorType> inputs);

  /// The entries that run in this iteration.
  void set_live(const Tensor& live);

  /// Input i of the body, the position not counted, as it sees it.
  Tensor seen(const Tensor& x, std::size_t input) const;
  /// What the body's dims stand for in this iteration.
  SubGraph body() const;
  /// Output k of the body, as it is outside.
  Tensor made(const Tensor& x, std::size_t output) const;
  /// What a stack or sum takes of it.
  Tensor term(const Tensor& made, std::size_t output) const;
  /// What a carry is after the iteration.
  Tensor next(const Tensor& made, const Tensor& before, int carry) const;

 private:
  const LoopAttrs& attrs_;
  ShownDims dims_;
  Tensor live_;
};

}  // namespace reel
