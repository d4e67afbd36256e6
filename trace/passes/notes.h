// trace/passes/notes.h — LoopNote, what a pass says of a loop.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "reel/core/op.h"

namespace reel {

/// What became of a part of a loop, in words, for explain(). Kept with the loop's attributes
/// (LoopAttrs::notes), so that it stays with it whatever other passes do.
struct LoopNote {
  enum class Kind {
    apart,    ///< which part of the loop that a user wrote it is
    joined,   ///< what else runs in it
    hoisted,  ///< done before the loop
    sunk,     ///< done after it
    stays,    ///< why something is not
  };
  Kind kind;
  std::string text;
};

/// Collects notes about one loop.
class LoopNotes {
 public:
  using Kind = LoopNote::Kind;
  using All = std::shared_ptr<const std::vector<LoopNote>>;
  /// before: what other passes said; may be null.
  explicit LoopNotes(const All& before = {}) {
    if (before) notes_ = *before;
  }
  void say(Kind kind, std::string text) { notes_.push_back({kind, std::move(text)}); }
  /// An op of the body: with its types where it gains by it, else it is counted. how: what is done
  /// with it, or why not.
  void say(Kind kind, const Op& op, const std::vector<TensorType>& in,
           const std::vector<TensorType>& out, const std::string& how);
  bool has(Kind kind) const {
    return std::any_of(notes_.begin(), notes_.end(),
                       [&](const LoopNote& note) { return note.kind == kind; });
  }
  All finish();

 private:
  std::vector<LoopNote> notes_;
  /// Ops that are counted, by name.
  std::map<std::pair<Kind, std::string>, std::map<std::string, int>> counted_;
};

}  // namespace reel
