// tests/onnx/saved/saved_case.h — SavedCase, a function saved as a model, with an example call.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "reel/onnx.h"
#include "reel/reel.h"

namespace reel {

/// A model, inputs by name, and the outputs of the function that was saved. Outputs have plain
/// dims; `valid` has a mask for each of them, false for padding.
struct SavedCase {
  std::string name, bytes;
  std::map<std::string, Tensor> inputs, outputs, valid;
  double tolerance = 1e-5;
  std::string failure;  ///< the error of the saving or of the call; empty if there was none
};

namespace saved_case_detail {

/// Returns the case without its bytes. result: of the function itself.
SavedCase make_case(const std::string& name, std::string bytes, const TreeLeaves& arguments,
                    const std::vector<std::size_t>& argument_of_leaf, const TreeLeaves& result,
                    const SaveOnnxOptions& options);

SavedCase failed_case(const std::string& name, const std::string& failure);

}  // namespace saved_case_detail

/// Saves f for arguments, and calls it on them. Draws are not supported.
template <class F, class... Args>
SavedCase saved_case(const std::string& name, const F& f, const std::tuple<Args...>& arguments,
                     const SaveOnnxOptions& options = {}) {
  std::vector<std::size_t> argument_of_leaf;
  std::size_t position = 0;
  const auto count = [&](const auto& argument) {
    argument_of_leaf.insert(argument_of_leaf.end(), flatten(argument).size(), position++);
  };
  std::apply([&](const auto&... argument) { (count(argument), ...); }, arguments);
  try {
    return saved_case_detail::make_case(name, onnx_bytes(f, arguments, options), flatten(arguments),
                                        argument_of_leaf, flatten(std::apply(f, arguments)),
                                        options);
  } catch (const std::exception& error) {
    return saved_case_detail::failed_case(name, error.what());
  }
}
/// Saves f for its only argument.
template <class F>
SavedCase saved_case(const std::string& name, const F& f, const Tensor& argument,
                     const SaveOnnxOptions& options = {}) {
  return saved_case(name, f, std::tuple{argument}, options);
}

/// Expects that these are the outputs of the case, by name. what: describes them in messages.
void expect_outputs(const SavedCase& saved, const std::map<std::string, Tensor>& actual,
                    const std::string& what);

// Functions of each kind, as models.
std::vector<SavedCase> plain_cases();
std::vector<SavedCase> loop_cases();
std::vector<SavedCase> ragged_cases();
std::vector<SavedCase> recurrent_cases();
std::vector<SavedCase> training_cases();
std::vector<SavedCase> example_cases();
std::vector<SavedCase> edge_cases();
std::vector<SavedCase> transform_cases();
std::vector<SavedCase> short_form_cases();
std::vector<SavedCase> layer_cases();
std::vector<SavedCase> sequence_cases();
std::vector<SavedCase> op_set_cases();
std::vector<SavedCase> function_cases();
std::vector<SavedCase> unrun_cases();
std::vector<SavedCase> program_cases();
std::vector<SavedCase> policy_cases();
std::vector<SavedCase> frontend_cases();
std::vector<SavedCase> uneven_cases();
/// Returns all cases that are saved.
const std::vector<SavedCase>& all_saved_cases();

/// Returns the samples of the ops that have a writer, without those that ONNX cannot express.
/// dtype: of floating inputs, f32 or f64.
std::vector<SavedCase> sample_cases(DType dtype);
/// Returns the models of ONNX's test data, in a folder, that Reel computes.
std::vector<SavedCase> data_cases(const std::string& data);

}  // namespace reel
