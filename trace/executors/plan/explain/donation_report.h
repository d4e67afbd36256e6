// trace/executors/plan/explain/donation_report.h — reports which arguments of a run gave their
// memory to results.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "reel/core/types/tensor.h"

namespace reel {

class Plan;

/// The blocks of a run's arguments and results, only to be compared.
struct RunPlaces {
  std::vector<const TensorBlock*> arguments;  ///< null: another reference held it
  std::vector<const TensorBlock*> results;
  std::vector<std::uint8_t> are_copies;  ///< by argument: true if the run had a sorted copy of it

  /// Records the blocks of the formal inputs, before the run.
  void note_arguments(std::span<const Tensor> inputs, std::size_t formal_count);
  /// Records the blocks of the outputs, after the run. Allocates nothing if `results` has the
  /// capacity.
  void note_results(std::span<const Tensor> outputs);
};

/// Returns lines about the arguments of a run that have the type of a result: which were updated in
/// place, which were not, and why.
std::string in_place_text(const Plan& plan, const RunPlaces& places);

}  // namespace reel
