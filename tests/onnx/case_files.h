// tests/onnx/case_files.h — reads a case of ONNX's test data: a model, its inputs and its outputs.
#pragma once

#include <string>
#include <vector>

#include "reel/onnx.h"

namespace reel {

/// The inputs and the expected outputs of one run.
struct CaseData {
  std::map<std::string, OnnxValue> inputs, outputs;
};

/// One folder: model.onnx, test_data_set_0/input_0.pb, ..., test_data_set_0/output_0.pb, ...
struct CaseFiles {
  std::string folder;
  std::string op;                ///< of the only node; empty if there are several
  std::vector<std::string> ops;  ///< of all nodes of the main graph, in order
  std::int64_t op_set = 0;       ///< of ONNX itself
};

/// Returns the cases of a set ("node", "simple"), sorted by name. Empty if the data is not there.
std::vector<CaseFiles> case_files(const std::string& data, const std::string& set);
/// Returns the runs of a case. Throws OnnxError for types without a dtype.
std::vector<CaseData> case_data(const CaseFiles& files);
/// Returns true for inputs that may give sizes: integers, booleans, single numbers, and the numbers
/// by which Resize scales.
bool may_give_sizes(const std::string& name, const OnnxValue& value);

}  // namespace reel
