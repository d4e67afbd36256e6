// trace/executors/plan/in_place.h — which arguments of a run gave their memory to results, in
// words.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "reel/core/tensor.h"

namespace reel {

class Plan;

/// Where arguments and results of a run lay: addresses only, to be compared.
struct RunPlaces {
  std::vector<const void*> arguments;  ///< null: somebody else held it
  std::vector<const void*> results;

  void note_arguments(std::span<const Tensor> inputs, std::size_t formal_count);
  void note_results(std::span<const Tensor> outputs);
};

/// Lines that say which arguments with the type of a result were updated in place in that run of
/// the plan, and which were not, and why.
std::string in_place_text(const Plan& plan, const RunPlaces& places);

}  // namespace reel
