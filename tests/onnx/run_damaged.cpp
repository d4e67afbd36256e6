#include "reel/tests/onnx/run_damaged.h"

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <iostream>
#include <mutex>
#include <optional>
#include <thread>

#include "reel/core/functions/creation.h"
#include "reel/core/functions/elementwise.h"
#include "reel/core/functions/shape.h"
#include "reel/core/runtime/cancellation.h"
#include "reel/onnx/model.h"
#include "reel/onnx/program.h"

namespace reel {
namespace {

constexpr std::int64_t kUnknownSize = 3;        // of an axis whose size the model does not state
constexpr std::int64_t kMaxElements = 1 << 16;  // of an input

/// Returns an input as declared: 0, 1, 2, 0, ... Returns nothing if it would be large.
std::optional<OnnxValue> input_of(const imported::Declared& declared) {
  const auto dtype = imported::dtype_of(declared.type);
  if (declared.is_optional) return OnnxValue{};
  if (!dtype) return {};
  Dims dims;
  std::int64_t count = 1;
  if (declared.shape)
    for (const auto& [size, name] : *declared.shape) {
      if (size > kMaxElements) return {};
      dims.emplace_back(size < 0 ? kUnknownSize : size);
      count *= dims.back().size();
      if (count > kMaxElements) return {};
    }
  const Tensor x = cast(broadcast_to(scalar(0, i64), dims) + (count ? count % 3 : 0), *dtype);
  if (declared.is_sequence) return OnnxValue{{}, std::vector<Tensor>{x}};
  return OnnxValue{x, {}};
}

/// Requests a stop after a second, and aborts the process after kMaxSeconds.
class Deadline {
 public:
  std::stop_token token() const { return source_.get_token(); }

 private:
  void wait(std::stop_token over) {
    using std::chrono::seconds;
    std::mutex mutex;
    std::unique_lock lock(mutex);
    std::condition_variable_any finish;
    const auto never = [] { return false; };
    finish.wait_for(lock, over, seconds(1), never);
    source_.request_stop();
    finish.wait_for(lock, over, seconds(kMaxSeconds), never);
    if (over.stop_requested()) return;
    std::cerr << "run_damaged: the call does not end\n";
    std::abort();
  }

  std::stop_source source_;
  std::jthread thread_{[this](std::stop_token over) { wait(std::move(over)); }};
};

}  // namespace

DamagedResult run_damaged(std::string_view bytes) {
  const Deadline deadline;
  const CancellationScope scope(deadline.token());
  OnnxModel model;
  try {
    model = load_onnx_bytes(bytes, {.max_bytes = std::int64_t{1} << 30});
  } catch (const Error&) {
    return DamagedResult::refused;
  }
  try {
    std::map<std::string, OnnxValue> inputs;
    const imported::Program& program = *model.program();
    for (const imported::Declared& declared : program.graph.inputs) {
      if (program.graph.parameters.count(declared.name) ||
          program.graph.constants.count(declared.name))
        continue;
      const std::optional<OnnxValue> input = input_of(declared);
      if (!input) return DamagedResult::failed;
      inputs[declared.name] = *input;
    }
    model.run(inputs);
    return DamagedResult::ran;
  } catch (const Error&) {
    return DamagedResult::failed;
  }
}

}  // namespace reel
