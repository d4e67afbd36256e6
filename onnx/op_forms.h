// onnx/op_forms.h — OpForm, the inputs, outputs and attributes of each op of ONNX in each version.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace reel::imported {

/// The inputs of an op, or its outputs.
struct ValueForms {
  std::vector<bool> is_required;  ///< of each one that has a place of its own
  bool any_number = false;        ///< of further ones behind these
  std::size_t fewest = 0;         ///< how many a node lists at least
};

struct AttributeForm {
  char type = 0;  ///< f, i, s, t, g, p, y; a capital letter for a list
  bool is_required = false;
};

/// A version of an op.
struct OpForm {
  std::int64_t since = 0;   ///< the op set that defined this version
  bool is_removed = false;  ///< from this version on
  ValueForms inputs, outputs;
  std::map<std::string, AttributeForm> attributes;
};

/// Returns the form of an op in a version of its op set, or null if the table has none.
/// domain: "" for ONNX itself.
const OpForm* find_form(const std::string& domain, const std::string& op, std::int64_t version);

}  // namespace reel::imported
