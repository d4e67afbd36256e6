// tests/frontend/policies/swapping.h — a loop that saves some MiB of residuals, and a search for
// the spill file that holds them.
#pragma once

#include <filesystem>
#include <string>
#include <utility>

#include "reel/reel.h"

namespace reel {

/// Returns a spill with the smallest window: two blocks of a MiB of each residual.
inline Spill small(const std::string& folder = {}) {
  return {.folder = folder, .bytes_in_memory = 1};
}

struct SwappingProblem {
  Tensor w, x;
};
inline constexpr int kSteps = 1200;  // each saves 4 KiB of every residual

inline auto loss(const SwapMemory& swap, bool reverse = false) {
  return [swap, reverse](const SwappingProblem& p) {
    const auto body = [&](const Tensor& x, const Tensor& h) {
      const Tensor next = tanh(matmul(h, p.w) + x);
      return std::pair{sum(square(next)), next};
    };
    return sum(scan(Scan{.initial = zeros({16, 64}),
                         .xs = p.x,
                         .body = body,
                         .reverse = reverse,
                         .swap_memory = swap})
                   .ys);
  };
}
inline SwappingProblem problem() {
  manual_seed(9);
  return {random_normal({64, 64}) * 0.1, random_normal({kSteps, 1, 64})};
}

/// Returns the descriptor of an unnamed file that this program has open in `folder`, or -1 if there
/// is none.
inline int file_in(const std::filesystem::path& folder) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code error;
    const std::string to = std::filesystem::read_symlink(entry.path(), error).string();
    if (to.rfind(std::filesystem::canonical(folder).string(), 0) == 0 && to.ends_with("(deleted)"))
      return std::stoi(entry.path().filename().string());
  }
  return -1;
}

}  // namespace reel
