// core/dims/dim_changes.h — DimChanges, a substitution of Dims.
#pragma once

#include <utility>
#include <vector>

#include "reel/core/base/visibility.h"
#include "reel/core/types/tensor_type.h"

REEL_API_BEGIN
namespace reel {

/// A list of substitutions of one Dim by another, applied at once: a substitute is not substituted
/// again. If a Dim is added twice, the first substitution counts.
class DimChanges {
 public:
  /// Adds a substitution. Does nothing if both are the same object, or plain sizes that are equal.
  void add(const Dim& from, const Dim& to);
  bool empty() const { return changes_.empty(); }
  // Pairs of a dim and its substitute.
  auto begin() const { return changes_.begin(); }
  auto end() const { return changes_.end(); }

  /// Returns true if the dim is substituted, or is computed from a substituted one (time + 1).
  bool affects(const Dim& dim) const;
  bool affects(const TensorType& type) const;
  /// Returns the substitute for the dim; the dim itself if it is not affected.
  Dim operator()(const Dim& dim) const;
  Dims operator()(const Dims& dims) const;
  /// Substitutes the dims of a type, also of a list's elements.
  TensorType operator()(const TensorType& type) const;

 private:
  std::vector<std::pair<Dim, Dim>> changes_;
};

}  // namespace reel
REEL_API_END
