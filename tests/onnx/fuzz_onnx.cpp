// fuzz_onnx — loads and runs damaged models: every one gives values or an Error, without a crash.
//
//   fuzz_onnx SECONDS [SEED [FOLDER]]   damages models for this long, or those below a folder;
//                                       prints how many were loaded and ran
//   fuzz_onnx --loads SECONDS [SEED]    loads only
//   fuzz_onnx FILE                      one file, such as fuzz_onnx.last after a crash
//
// A crash ends the program; the model is then in the file fuzz_onnx.last. The fuzz target
// tests/fuzz/files/fuzz_models.cpp does the same with coverage.
#include <sys/resource.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>

#include "reel/onnx.h"
#include "reel/tests/onnx/damage.h"
#include "reel/tests/onnx/model_seeds.h"
#include "reel/tests/onnx/run_damaged.h"

namespace reel {
namespace {

std::string contents_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream bytes;
  bytes << in.rdbuf();
  return bytes.str();
}

DamagedResult load(const std::string& bytes) {
  try {
    load_onnx_bytes(bytes);
    return DamagedResult::failed;
  } catch (const Error&) {
    return DamagedResult::refused;
  }
}

/// Lists that ops fill may not take the machine's memory: beyond 8 GiB they find none. Sanitizers
/// need the address space.
void limit_memory() {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  const rlimit limit{rlim_t{8} << 30, rlim_t{8} << 30};
  setrlimit(RLIMIT_AS, &limit);
#endif
}

int main_of(std::vector<std::string> arguments) {
  const bool runs = arguments.empty() || arguments[0] != "--loads";
  if (!runs) arguments.erase(arguments.begin());
  if (arguments.empty() || arguments.size() > 3) {
    std::cout << "usage: fuzz_onnx [--loads] SECONDS [SEED [FOLDER]] | FILE\n";
    return 2;
  }
  limit_memory();
  if (std::filesystem::exists(arguments[0])) {
    constexpr const char* kTexts[] = {"an error", "a model whose call is an error", "a model"};
    std::cout << kTexts[static_cast<int>(run_damaged(contents_of(arguments[0])))] << '\n';
    return 0;
  }
  const std::vector<std::string> all =
      model_seeds(arguments.size() > 2 ? arguments[2] : REEL_ONNX_DATA);
  if (all.empty()) {
    std::cout << "there is no test data of ONNX (Debian: libonnx-testdata)\n";
    return 77;
  }
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(std::stol(arguments[0]));
  ModelDamage damage(arguments.size() > 1 ? std::stoull(arguments[1]) : 0);
  const auto any = [&] { return all[damage.below(all.size())]; };
  std::int64_t count = 0, counts[3] = {};
  for (; std::chrono::steady_clock::now() < end; ++count) {
    const std::string bytes = damage.damaged(any(), any());
    std::ofstream("fuzz_onnx.last", std::ios::binary | std::ios::trunc) << bytes;
    ++counts[static_cast<int>(runs ? run_damaged(bytes) : load(bytes))];
  }
  std::cout << count << " damaged models, of which " << count - counts[0] << " were loaded";
  if (runs) std::cout << ", and " << counts[2] << " ran";
  std::cout << '\n';
  return 0;
}

}  // namespace
}  // namespace reel

int main(int count, char** arguments) { return reel::main_of({arguments + 1, arguments + count}); }
