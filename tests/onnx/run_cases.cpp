#include "reel/tests/onnx/run_cases.h"

#include <cmath>
#include <filesystem>
#include <functional>

#include "reel/core/base/str.h"
#include "reel/onnx.h"
#include "reel/reel.h"

namespace reel {
namespace {

using Inputs = std::map<std::string, OnnxValue>;
using Function = std::function<Inputs(const Inputs&)>;

/// A difference between a result and its expected value.
struct Difference {
  std::string text;
};

// As in ONNX's own runner.
constexpr double kRelative = 1e-3, kAbsolute = 1e-7;

void compare(const std::string& name, const Tensor& actual, const Tensor& expected, bool is_drawn) {
  if (actual.dtype() != expected.dtype() || actual.shape() != expected.shape())
    throw Difference{str(name, " is ", actual.type(), " instead of ", expected.type())};
  if (is_drawn) return;
  const auto a = cast(actual, f64).to_vector<double>(), e = cast(expected, f64).to_vector<double>();
  for (std::size_t i = 0; i < a.size(); ++i) {
    const bool is_close = a[i] == e[i] || (std::isnan(a[i]) && std::isnan(e[i])) ||
                          std::abs(a[i] - e[i]) <= kAbsolute + kRelative * std::abs(e[i]);
    if (!is_close) throw Difference{str(name, " differs at ", i, ": ", a[i], " instead of ", e[i])};
  }
}

void compare(const std::string& name, const OnnxValue& actual, const OnnxValue& expected,
             bool is_drawn) {
  if (actual.tensor.has_value() != expected.tensor.has_value() ||
      actual.sequence.has_value() != expected.sequence.has_value())
    throw Difference{str(name, " is of another kind")};
  if (expected.tensor) return compare(name, *actual.tensor, *expected.tensor, is_drawn);
  if (!expected.sequence) return;
  if (actual.sequence->size() != expected.sequence->size())
    throw Difference{str(name, " has ", actual.sequence->size(), " elements instead of ",
                         expected.sequence->size())};
  for (std::size_t i = 0; i < expected.sequence->size(); ++i)
    compare(str(name, '[', i, ']'), (*actual.sequence)[i], (*expected.sequence)[i], is_drawn);
}

void run(const Function& function, const std::vector<CaseData>& data, bool is_drawn) {
  for (const CaseData& run : data) {
    const Inputs outputs = function(run.inputs);
    for (const auto& [name, expected] : run.outputs) {
      const auto found = outputs.find(name);
      if (found == outputs.end()) throw Difference{str("there is no output ", name)};
      compare(name, found->second, expected, is_drawn);
    }
  }
}

/// Makes another form of a function on inputs, for inputs like the given ones.
using Form = std::function<Function(const Function&, const Inputs&)>;

Function traced(const Function& function, const Inputs&) { return jit(function); }

/// Returns the tensors of a tree of values, in the order of the inputs and outputs of its model.
std::vector<Tensor> tensors_in(const Inputs& values) {
  std::vector<Tensor> tensors;
  for (const TreeLeaf& leaf : flatten(values))
    if (leaf.kind == TreeLeaf::Kind::tensor && leaf.tensor.is_defined())
      tensors.push_back(leaf.tensor);
  return tensors;
}

/// Returns the function as save_onnx writes it and load_onnx reads it.
Function saved(const Function& function, const Inputs& example) {
  const OnnxModel model =
      load_onnx_bytes(onnx_bytes(function, std::tuple{example}, {.arguments = {""}}));
  return [model, function](const Inputs& given) {
    const std::vector<std::string> inputs = model.input_names(), outputs = model.output_names();
    std::map<std::string, Tensor> arguments;
    for (const Tensor& tensor : tensors_in(given)) arguments[inputs.at(arguments.size())] = tensor;
    const auto made = model(arguments);
    Inputs result = function(given);  // its structure
    TreeLeaves leaves = flatten(result);
    std::size_t next = 0;
    for (TreeLeaf& leaf : leaves)
      if (leaf.kind == TreeLeaf::Kind::tensor && leaf.tensor.is_defined())
        leaf.tensor = made.at(outputs.at(next++));
    return unflatten(result, leaves);
  };
}

/// Returns a form of the function that captures inputs that may give sizes.
Function with_captured_integers(const Form& form, const Function& function) {
  return [=](const Inputs& given) {
    Inputs captured, arguments;
    for (const auto& [name, value] : given)
      (may_give_sizes(name, value) ? captured : arguments)[name] = value;
    const auto of_others = [&](const Inputs& inputs) {
      Inputs all = captured;
      all.insert(inputs.begin(), inputs.end());
      return function(all);
    };
    return form(of_others, arguments)(arguments);
  };
}

/// Random numbers differ between implementations.
bool is_drawn(const CaseFiles& files) {
  const std::string name = std::filesystem::path(files.folder).filename().string();
  for (const char* drawn : {"test_bernoulli", "test_training_dropout_default",
                            "test_training_dropout_mask", "test_training_dropout"}) {
    if (!name.starts_with(drawn)) continue;
    return name.find("zero_ratio") == std::string::npos;
  }
  return false;
}

/// Runs fn and returns the result that it means; sets the reason if it is no success.
CaseResult outcome_of(std::string& reason, CaseResult success, const std::function<void()>& fn) {
  try {
    fn();
    return success;
  } catch (const Difference& difference) {
    reason = difference.text;
  } catch (const TraceError& error) {
    reason = error.message();
    return CaseResult::refused;
  } catch (const Error& error) {
    reason = error.message();
  } catch (const std::exception& error) {
    reason = error.what();
  }
  return CaseResult::failed;
}

}  // namespace

CaseOutcome run_case(const CaseFiles& files) {
  CaseOutcome outcome;
  OnnxModel model;
  std::vector<CaseData> data;
  try {
    model = load_onnx(files.folder + "/model.onnx");
    data = case_data(files);
  } catch (const std::exception& error) {
    outcome.eager = outcome.traced = outcome.saved = CaseResult::not_supported;
    outcome.reason = error.what();
    return outcome;
  }
  const bool drawn = is_drawn(files);
  const CaseResult success = drawn ? CaseResult::drawn : CaseResult::passed;
  const Function eager = [&](const Inputs& inputs) { return model.run(inputs); };
  outcome.eager = outcome_of(outcome.reason, success, [&] { run(eager, data, drawn); });
  if (outcome.eager == CaseResult::failed) {
    outcome.traced = CaseResult::failed;
    return outcome;
  }
  const auto result_of = [&](const Form& form) {
    const Function function = [&](const Inputs& inputs) { return form(eager, inputs)(inputs); };
    const CaseResult result =
        outcome_of(outcome.reason, success, [&] { run(function, data, drawn); });
    if (result != CaseResult::refused) return result;
    return outcome_of(outcome.reason, drawn ? CaseResult::drawn : CaseResult::passed_fixed,
                      [&] { run(with_captured_integers(form, eager), data, drawn); });
  };
  outcome.traced = result_of(traced);
  if (outcome.traced != CaseResult::failed) outcome.saved = result_of(saved);
  return outcome;
}

}  // namespace reel
