// tests/onnx/run_damaged.h — loads and runs a model that may be damaged, within limits.
#pragma once

#include <cstdint>
#include <string_view>

namespace reel {

enum class DamagedResult {
  refused,  ///< load_onnx threw an Error
  failed,   ///< the model was loaded, and its call threw an Error
  ran
};

/// Loads the model and calls it eagerly with small inputs. A call gets a second, after which its
/// loops are cancelled, and 1 GiB for its values. Aborts the process if it does not end within
/// kMaxSeconds. Throws exceptions that are no Error.
inline constexpr std::int64_t kMaxSeconds = 60;
DamagedResult run_damaged(std::string_view bytes);

}  // namespace reel
