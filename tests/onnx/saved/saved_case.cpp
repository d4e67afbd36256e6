#include "reel/tests/onnx/saved/saved_case.h"

#include <algorithm>

#include "reel/core/ops/list/list.h"
#include "reel/tests/check.h"

namespace reel {
namespace {

/// Returns x with plain dims.
Tensor plain(const Tensor& x) { return reshape(x, x.type().sizes()); }

/// Returns a TensorArray as one tensor, and other tensors unchanged.
Tensor dense(const Tensor& x) {
  if (!x.type().is_list()) return x;
  return stack(list_elements(x), 0);
}

bool is_sized_by_runs(const Dim& dim) {
  return dim.node() && (dim.is_ragged() || dim.node()->kind == DimKind::dynamic);
}

/// Returns the lengths of the dim of this name in the arguments.
Tensor lengths_of(const std::string& name, const TreeLeaves& arguments) {
  for (const TreeLeaf& leaf : arguments) {
    if (leaf.kind == TreeLeaf::Kind::dim && leaf.dim.name() == name) return leaf.dim.lengths();
    if (leaf.kind != TreeLeaf::Kind::tensor) continue;
    for (const Dim& dim : leaf.tensor.dims())
      if (dim.is_named() && dim.name() == name) return dim.lengths();
  }
  throw std::runtime_error("no argument has the dim " + name);
}

}  // namespace

SavedCase saved_case_detail::make_case(const std::string& name, std::string bytes,
                                       const TreeLeaves& arguments,
                                       const std::vector<std::size_t>& argument_of_leaf,
                                       const TreeLeaves& result, const SaveOnnxOptions& options) {
  SavedCase saved;
  saved.name = name;
  saved.bytes = std::move(bytes);
  const OnnxModel model = load_onnx_bytes(saved.bytes);
  const std::vector<std::string> inputs = model.input_names(), outputs = model.output_names();
  std::size_t next = 0;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].kind != TreeLeaf::Kind::tensor) continue;
    if (std::count(options.parameters.begin(), options.parameters.end(), argument_of_leaf[i]))
      continue;
    saved.inputs[inputs.at(next++)] = plain(dense(arguments[i].tensor));
  }
  constexpr std::string_view kLengths = "_lengths";
  for (; next < inputs.size(); ++next)
    saved.inputs[inputs[next]] =
        plain(lengths_of(inputs[next].substr(0, inputs[next].size() - kLengths.size()), arguments));
  next = 0;
  for (const TreeLeaf& leaf : result) {
    const bool is_dim = leaf.kind == TreeLeaf::Kind::dim && is_sized_by_runs(leaf.dim);
    if (!is_dim && leaf.kind != TreeLeaf::Kind::tensor) continue;
    const Tensor value = dense(is_dim ? leaf.dim.lengths() : leaf.tensor);
    const std::string& output = outputs.at(next++);
    saved.outputs[output] = plain(value);
    saved.valid[output] = plain(mask_padding(ones(value.dims(), boolean), false));
  }
  return saved;
}

SavedCase saved_case_detail::failed_case(const std::string& name, const std::string& failure) {
  SavedCase saved;
  saved.name = name;
  saved.failure = failure;
  return saved;
}

void expect_outputs(const SavedCase& saved, const std::map<std::string, Tensor>& actual,
                    const std::string& what) {
  ASSERT_EQ(actual.size(), saved.outputs.size()) << saved.name << ' ' << what;
  for (const auto& [name, expected] : saved.outputs) {
    ASSERT_TRUE(actual.count(name)) << saved.name << ' ' << what << " has no output " << name;
    const Tensor& value = actual.at(name);
    EXPECT_EQ(value.type(), expected.type()) << saved.name << ' ' << what << ' ' << name;
    const std::vector<double> got = values_of(value), wanted = values_of(expected),
                              valid = values_of(saved.valid.at(name));
    ASSERT_EQ(got.size(), wanted.size()) << saved.name << ' ' << what << ' ' << name;
    for (std::size_t i = 0; i < got.size(); ++i)
      if (valid[i] != 0 && !is_close(got[i], wanted[i], saved.tolerance)) {
        ADD_FAILURE() << saved.name << ' ' << what << ": element " << i << " of " << name << " is "
                      << got[i] << " instead of " << wanted[i];
        break;
      }
  }
}

const std::vector<SavedCase>& all_saved_cases() {
  static const std::vector<SavedCase>& cases = *[] {
    auto* all = new std::vector<SavedCase>;
    for (const auto make : {plain_cases, loop_cases, ragged_cases, recurrent_cases, training_cases,
                            example_cases, edge_cases})
      for (SavedCase& saved : make()) all->push_back(std::move(saved));
    return all;
  }();
  return cases;
}

}  // namespace reel
