// core/ops/joined_dims.h — JoinedDims, the dims of what graphs that are run by one record return.
#pragma once

#include <vector>

#include "reel/core/dim_env.h"

namespace reel {

/// For each pair of dims that two branches return at one place, what it is outside of them: what
/// both have from there, a new symbol for what each of them makes, an unknown one for plain axes
/// that differ. A graph that runs alone has itself as the other.
class JoinedDims {
 public:
  /// env: what the symbols of the graph's captures are outside.
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
