// Models of ONNX's test data, loaded and saved again.
#include <filesystem>

#include "reel/tests/onnx/case_files.h"
#include "reel/tests/onnx/saved/saved_case.h"

namespace reel {
namespace {

using Inputs = std::map<std::string, OnnxValue>;

/// Draws, which differ from run to run, and sizes that a trace does not know.
bool is_left_out(const std::string& name) {
  for (const char* part : {"bernoulli", "training_dropout", "unique"})
    if (name.find(part) != std::string::npos) return true;
  return false;
}

/// Calls the model on the data of a case. Returns false if it has an op without a rule, or if the
/// data does not fit.
bool runs(const CaseFiles& files, OnnxModel& model, Inputs& inputs) {
  try {
    model = load_onnx(files.folder + "/model.onnx");
    inputs = case_data(files).at(0).inputs;
    model.run(inputs);
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

std::vector<SavedCase> data_cases(const std::string& data) {
  std::vector<SavedCase> cases;
  for (const char* set : {"node", "simple", "pytorch-converted", "pytorch-operator"})
    for (const CaseFiles& files : case_files(data, set)) {
      const std::string name = std::filesystem::path(files.folder).filename().string();
      OnnxModel model;
      Inputs inputs;
      if (is_left_out(name) || !runs(files, model, inputs)) continue;
      // Where an op reads sizes or positions from an integer, this input is a constant.
      for (const bool captures : {false, true}) {
        Inputs captured, arguments;
        for (const auto& [input, value] : inputs)
          (captures && may_give_sizes(input, value) ? captured : arguments)[input] = value;
        const auto f = [&](const Inputs& given) {
          Inputs all = captured;
          all.insert(given.begin(), given.end());
          return model.run(all);
        };
        SavedCase saved = saved_case(name, f, std::tuple{arguments}, {.arguments = {""}});
        saved.tolerance = 1e-3;
        const bool is_saved = saved.failure.empty();
        if (is_saved || captures) cases.push_back(std::move(saved));
        if (is_saved) break;
      }
    }
  return cases;
}

}  // namespace reel
