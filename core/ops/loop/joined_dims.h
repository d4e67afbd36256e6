// core/ops/loop/joined_dims.h — JoinedDims, the dims of outputs of graphs that one record runs.
#pragma once

#include <vector>

#include "reel/core/dims/dim_env.h"

namespace reel {

/// Finds the outer dim for each pair of dims that two branches return at one place. A dim that both
/// have from outside stays. Dims that each branch makes become a new symbol, plain axes that differ
/// an unknown dim. One pair always gives one dim. A graph that runs alone is paired with itself.
class JoinedDims {
 public:
  /// env: the outer dims for symbols of the graph's captures.
  explicit JoinedDims(DimEnv& env) : env_(env) {}

  Dim of(const Dim& yes, const Dim& no);
  TensorType of(const TensorType& yes, const TensorType& no);

 private:
  Dims all(const Dims& yes, const Dims& no);
  Dim join(const Dim& yes, const Dim& no);

  struct Joined {
    Dim yes, no, dim;
  };
  std::vector<Joined> joined_;
  DimEnv& env_;
};

}  // namespace reel
