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

/// Returns the lengths of a dim in the arguments. input: "time_lengths" for the first dim called
/// "time", "time_lengths_1" for the second one.
Tensor lengths_of(const std::string& input, const TreeLeaves& arguments) {
  constexpr std::string_view kLengths = "_lengths";
  const std::size_t end = input.rfind(kLengths), number = end + kLengths.size() + 1;
  const std::string name = input.substr(0, end);
  const std::size_t place = number < input.size() ? std::stoul(input.substr(number)) : 0;
  Dims found;
  const auto add = [&](const Dim& dim) {
    if (is_sized_by_runs(dim) && dim.name() == name && !contains(found, dim)) found.push_back(dim);
  };
  for (const TreeLeaf& leaf : arguments) {
    if (leaf.kind == TreeLeaf::Kind::dim) add(leaf.dim);
    if (leaf.kind != TreeLeaf::Kind::tensor) continue;
    for (const Dim& dim : leaf.tensor.dims()) add(dim);
  }
  if (place >= found.size()) throw std::runtime_error("no argument has the lengths " + input);
  return found[place].lengths();
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
  for (; next < inputs.size(); ++next)
    saved.inputs[inputs[next]] = plain(lengths_of(inputs[next], arguments));
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
    // ONNX gives no sizes to the elements of a stack if the loop does not run.
    if (expected.numel() == 0 && value.numel() == 0) {
      EXPECT_EQ(value.dtype(), expected.dtype()) << saved.name << ' ' << what << ' ' << name;
      EXPECT_EQ(value.rank(), expected.rank()) << saved.name << ' ' << what << ' ' << name;
      continue;
    }
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
    for (const auto make :
         {plain_cases, loop_cases, short_form_cases, ragged_cases, recurrent_cases, layer_cases,
          training_cases, transform_cases, example_cases, sequence_cases, edge_cases, op_set_cases,
          function_cases, unrun_cases, program_cases, policy_cases, frontend_cases, uneven_cases})
      for (SavedCase& saved : make()) all->push_back(std::move(saved));
    return all;
  }();
  return cases;
}

}  // namespace reel
