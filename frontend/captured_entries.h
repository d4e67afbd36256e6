// frontend/captured_entries.h — CapturedEntries, what a body of eager mode reads while some entries
// have ended.
#pragma once

#include <cstdint>
#include <vector>

#include "reel/core/leaf.h"
#include "reel/core/mode.h"
#include "reel/core/ops/shown_dims.h"

namespace reel {

/// Ops of the body read what was made before the loop as ended entries may see it: with the values
/// of a live entry, and along dims that are as long.
class CapturedEntries final : public EntryScope {
 public:
  /// kept: dims that stay as they are. loop_begin: the newest block id before the loop.
  CapturedEntries(const Tensor& live, Dims kept, std::uint64_t loop_begin);

  Tensor visible(const Tensor& input) override;
  Dim visible(const Dim& dim) override;
  bool shows(const Dim& dim) const override {
    return dims_.is_shown(dim) || (outer_ && outer_->shows(dim));
  }

  /// A leaf that the body is given.
  Tensor filled(const Tensor& x);
  /// Leaves that it returned, as it would read them, with the dims that they have outside.
  void restore(TreeLeaves& leaves);
  /// The same of a state, with what no live entry shows of it as it was before.
  void restore_state(TreeLeaves& state, const TreeLeaves& before);

 private:
  struct Known {
    std::uint64_t id;
    const Recorder* tape;  ///< one that was opened later has not seen how it was filled
    Tensor filled;
  };
  bool is_made_inside(std::uint64_t id) const;
  bool is_captured(const Dim& dim) const;

  EntryScope* outer_;
  std::uint64_t loop_begin_, begin_;
  ShownDims dims_;
  std::vector<Known> cache_;
};

}  // namespace reel
