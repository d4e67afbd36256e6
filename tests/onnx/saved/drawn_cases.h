// tests/onnx/saved/drawn_cases.h — programs of the fuzzer as saved models.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "reel/tests/onnx/saved/saved_case.h"

namespace reel {

/// The models of drawn programs, and the programs without one.
struct DrawnCases {
  std::vector<SavedCase> cases;
  int programs = 0;                    ///< that were drawn
  int drawing = 0;                     ///< programs that draw random numbers
  std::map<std::string, int> refused;  ///< programs by the first op that ONNX cannot express
  std::vector<std::string> errors;     ///< of these programs
};

/// Saves the programs of seeds first to first + count - 1: their results, for odd seeds with the
/// gradient. Padding of arguments is NaN or a large number. Any other error than an op that ONNX
/// cannot express is the failure of a case.
DrawnCases drawn_cases(std::uint64_t first, int count);

}  // namespace reel
