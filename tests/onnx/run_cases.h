// tests/onnx/run_cases.h — runs the cases of ONNX's test data, eagerly and traced.
#pragma once

#include <string>

#include "reel/tests/onnx/case_files.h"

namespace reel {

enum class CaseResult {
  passed,         ///< values within the tolerance of ONNX's own runner
  passed_fixed,   ///< passed with captured integers, booleans and single numbers
  drawn,          ///< random: sizes and dtypes are right
  refused,        ///< a trace does not know the sizes of a result
  not_supported,  ///< the model has an op or a type without a rule
  failed
};

struct CaseOutcome {
  CaseResult eager = CaseResult::failed, traced = CaseResult::failed;
  CaseResult saved = CaseResult::failed;  ///< of the model that save_onnx makes of the loaded one
  std::string reason;                     ///< of the worst of them
};

/// Returns the outcome of a case in both modes, and saved and loaded again. Throws nothing.
CaseOutcome run_case(const CaseFiles& files);

}  // namespace reel
