#include "reel/onnx/node_form.h"

#include <algorithm>

namespace reel::exported {
namespace {

constexpr const char* kReductions[] = {"ReduceL1",  "ReduceL2",        "ReduceLogSum",
                                       "ReduceMax", "ReduceLogSumExp", "ReduceMean",
                                       "ReduceMin", "ReduceProd",      "ReduceSumSquare"};
constexpr std::int64_t kAxesOfReductionsAreInputs = 18, kAxisOfDftIsInput = 20;

}  // namespace

void use_form_of_op_set(Node& node, ModelWriter& model) {
  const std::int64_t op_set = model.options().op_set;
  const auto is_reduction = [&] {
    return std::find(std::begin(kReductions), std::end(kReductions), node.op) !=
           std::end(kReductions);
  };
  if (op_set >= kAxesOfReductionsAreInputs && node.attributes.count("axes") && is_reduction()) {
    node.inputs.push_back(model.integers(node.attributes.at("axes").integers));
    node.attributes.erase("axes");
  }
  if (op_set >= kAxisOfDftIsInput && node.op == "DFT") {
    node.inputs.resize(2);  // without a length
    node.inputs.push_back(model.integer(node.attributes.at("axis").integer));
    node.attributes.erase("axis");
  }
}

// Source: ONNX, docs/Versioning.md.
std::int64_t ir_version_of(std::int64_t op_set) {
  if (op_set <= 18) return 8;
  if (op_set <= 20) return 9;
  if (op_set <= 22) return 10;
  if (op_set == 23) return 11;
  if (op_set == 24) return 12;
  return 13;
}

}  // namespace reel::exported
