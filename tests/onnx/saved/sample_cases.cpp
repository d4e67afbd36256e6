// The samples of the ops that have a writer, as models.
#include "reel/core/op/bind.h"
#include "reel/onnx/writer_registry.h"
#include "reel/tests/core/sample_values.h"
#include "reel/tests/onnx/saved/saved_case.h"

namespace reel {
namespace {

/// Results that the inputs do not determine, tokens instead of results, and printing.
bool is_left_out(std::string_view op) {
  for (const std::string_view other :
       {"truncated_normal", "fold_key", "define_dim", "dim_token", "print"})
    if (op == other) return true;
  return op.starts_with("random_");
}

/// onnxruntime computes the circle of sizes that are no powers of 2 in f32, also for f64.
bool is_transform(std::string_view op) { return op == "rfft" || op == "irfft" || op == "fft"; }

/// A trace has other dims in place of the ragged ones that the attributes of some samples name.
bool is_refused(const SavedCase& saved) {
  return saved.failure.find("ONNX cannot express") != std::string::npos;
}

}  // namespace

std::vector<SavedCase> sample_cases(DType dtype) {
  std::vector<SavedCase> cases;
  for (const Op* op : all_ops()) {
    if (!exported::find_writer(op->name) || !op->samples || is_left_out(op->name)) continue;
    if (dtype == f64 && op->name == "sum_to") continue;  // its attributes name f32
    int number = 0;
    for (const OpSample& sample : op->samples()) {
      const auto f = [&](const Tensors& x) { return bind_all(*op, x, sample.attrs); };
      SavedCase saved =
          saved_case(str(op->name, ", sample ", number++), f,
                     std::tuple{draw_sample(sample, dtype == f64)}, {.arguments = {"x"}});
      if (dtype == f64) saved.tolerance = is_transform(op->name) ? 1e-6 : 1e-9;
      if (!is_refused(saved)) cases.push_back(std::move(saved));
    }
  }
  return cases;
}

}  // namespace reel
