// core/dim_changes.h — DimChanges, Dims and what stands in their place.
#pragma once

#include <utility>
#include <vector>

#include "reel/core/tensor_type.h"

namespace reel {

/// Some Dims, and another one for each.
class DimChanges {
 public:
  /// Nothing for equal dims.
  void add(const Dim& from, const Dim& to);
  bool empty() const { return changes_.empty(); }

  /// It is one of them, or computed from one (time + 1).
  bool affects(const Dim& dim) const;
  bool affects(const TensorType& type) const;
  /// What stands in its place; itself where nothing does.
  Dim operator()(const Dim& dim) const;
  Dims operator()(const Dims& dims) const;
  /// Of a list, too.
  TensorType operator()(const TensorType& type) const;

 private:
  std::vector<std::pair<Dim, Dim>> changes_;
};

}  // namespace reel
