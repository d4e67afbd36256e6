// frontend/loops/state/finished_capture_view.h — FinishedCaptureView, an eager body's view of
// captured tensors while some entries have finished.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "reel/core/ops/loop/substitute_dims.h"
#include "reel/core/types/leaf.h"
#include "reel/core/types/mode.h"

namespace reel {

/// The filled captures of one run of a scan, by block id. An iteration in which the same entries
/// run as before shares their elements.
using FilledCaptures = std::unordered_map<std::uint64_t, std::shared_ptr<FilledEntries>>;

/// Replaces the finished entries of tensors that the body captures: with the values of a running
/// entry, and along dims of the same length. Finished entries then compute harmless values.
class FinishedCaptureView final : public EntryScope {
 public:
  /// running: the running entries. kept: dims that stay unchanged. loop_begin: the newest block id
  /// before the loop. filled: captures that earlier iterations of the run filled; must outlive this
  /// object.
  FinishedCaptureView(const Tensor& running, Dims kept, std::uint64_t loop_begin,
                      FilledCaptures& filled);

  Tensor visible(const Tensor& input) override;
  Dim visible(const Dim& dim) override;
  bool shows(const Dim& dim) const override {
    return dims_.is_shown(dim) || (outer_ && outer_->shows(dim));
  }

  /// Returns an argument of the body with its finished entries filled.
  Tensor filled(const Tensor& x);
  /// Converts leaves that the body returned: as the body would read them, with their dims from
  /// outside.
  void restore(TreeLeaves& leaves);
  /// Converts a state as restore() does. Entries that the view does not show keep their values from
  /// `before`.
  void restore_state(TreeLeaves& state, const TreeLeaves& before);

 private:
  struct Known {
    std::uint64_t id;
    const Recorder* tape;  ///< a tape opened later has not recorded how it was filled
    Tensor filled;
  };
  bool is_made_inside(std::uint64_t id) const;
  bool is_captured(const Dim& dim) const;

  EntryScope* outer_;
  std::uint64_t loop_begin_, begin_;
  SubstituteDims dims_;
  std::vector<Known> cache_;
  FilledCaptures& filled_;
};

}  // namespace reel
