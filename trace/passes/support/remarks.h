// trace/passes/support/remarks.h — LoopRemark, a pass's remark about a loop for explain().
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "reel/core/op/op.h"

namespace reel {

/// A remark about the work of a pass on a part of a loop. Remarks are kept in the loop's attributes
/// (LoopDebug::remarks), so that they survive later passes.
struct LoopRemark {
  enum class Kind {
    apart,    ///< which part of the user's loop this loop is
    joined,   ///< which other loop runs in it
    hoisted,  ///< moved before the loop
    sunk,     ///< moved behind the loop
    stays,    ///< why something stays in the loop
  };
  Kind kind;
  std::string text;
};

/// Collects remarks about one loop.
class LoopRemarks {
 public:
  using Kind = LoopRemark::Kind;
  using All = std::shared_ptr<const std::vector<LoopRemark>>;
  /// before: remarks of earlier passes; may be null.
  explicit LoopRemarks(const All& before = {}) {
    if (before) remarks_ = *before;
  }
  void say(Kind kind, std::string text) { remarks_.push_back({kind, std::move(text)}); }
  /// Adds a remark about an op of the body: with its types if it gains by leaving the loop,
  /// otherwise as part of a count by name. how: how it is done, or why it stays.
  void say(Kind kind, const Op& op, const std::vector<TensorType>& in,
           const std::vector<TensorType>& out, const std::string& how);
  bool has(Kind kind) const {
    return std::any_of(remarks_.begin(), remarks_.end(),
                       [&](const LoopRemark& note) { return note.kind == kind; });
  }
  All finish();

 private:
  std::vector<LoopRemark> remarks_;
  /// Ops that are counted, by name.
  std::map<std::pair<Kind, std::string>, std::map<std::string, int>> counted_;
};

}  // namespace reel
