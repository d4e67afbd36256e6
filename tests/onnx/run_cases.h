// tests/onnx/run_cases.h — runs the cases of ONNX's test data, eagerly and traced.
#pragma once

#include <string>

#include "reel/tests/onnx/case_files.h"

namespace reel {

enum class CaseResult {
  passed,         ///< values within the tolerance of ONNX's own runner
  passed_fixed,   ///< traced: passed with captured integers, booleans and single numbers
  drawn,          ///< random: sizes and dtypes are right
  refused,        ///< traced: the sizes of a result are known only when the graph runs
  not_supported,  ///< the model has an op or a type without a rule
  failed
};

struct CaseOutcome {
  CaseResult eager = CaseResult::failed, traced = CaseResult::failed;
  std::string reason;  ///< of the worse of both
};

/// Returns the outcome of a case in both modes. Throws nothing.
CaseOutcome run_case(const CaseFiles& files);

}  // namespace reel
