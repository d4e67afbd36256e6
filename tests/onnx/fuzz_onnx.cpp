// fuzz_onnx — loads damaged models: every one gives a model or an Error, without a crash.
//
//   fuzz_onnx SECONDS [SEED]   damages models for this long; prints how many were loaded
//   fuzz_onnx FILE             loads one file, such as fuzz_onnx.last after a crash
//
// A crash ends the program; the model is then in the file fuzz_onnx.last. The fuzz target
// tests/fuzz/files/fuzz_models.cpp does the same with coverage.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>

#include "reel/onnx.h"
#include "reel/tests/onnx/damage.h"

namespace reel {
namespace {

constexpr std::size_t kLargestSeed = 1 << 14;  // bytes of a model that is damaged

std::string contents_of(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream bytes;
  bytes << in.rdbuf();
  return bytes.str();
}

/// Returns the small models of ONNX's test data.
std::vector<std::string> seeds(const std::string& data) {
  std::vector<std::string> seeds;
  std::error_code error;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(data, error)) {
    if (entry.path().filename() != "model.onnx" || entry.file_size() > kLargestSeed) continue;
    seeds.push_back(contents_of(entry.path()));
  }
  std::sort(seeds.begin(), seeds.end());
  return seeds;
}

/// Returns true if the bytes give a model.
bool loads(const std::string& bytes) {
  try {
    load_onnx_bytes(bytes);
    return true;
  } catch (const Error&) {
    return false;
  }
}

int main_of(const std::vector<std::string>& arguments) {
  if (arguments.empty() || arguments.size() > 2) {
    std::cout << "usage: fuzz_onnx SECONDS [SEED] | FILE\n";
    return 2;
  }
  if (std::filesystem::exists(arguments[0])) {
    std::cout << (loads(contents_of(arguments[0])) ? "a model\n" : "an error\n");
    return 0;
  }
  const std::vector<std::string> all = seeds(REEL_ONNX_DATA);
  if (all.empty()) {
    std::cout << "there is no test data of ONNX (Debian: libonnx-testdata)\n";
    return 77;
  }
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(std::stol(arguments[0]));
  ModelDamage damage(arguments.size() > 1 ? std::stoull(arguments[1]) : 0);
  const auto any = [&] { return all[damage.below(all.size())]; };
  std::int64_t count = 0, models = 0;
  for (; std::chrono::steady_clock::now() < end; ++count) {
    const std::string bytes = damage.damaged(any(), any());
    std::ofstream("fuzz_onnx.last", std::ios::binary | std::ios::trunc) << bytes;
    models += loads(bytes);
  }
  std::cout << count << " damaged models, of which " << models << " were loaded\n";
  return 0;
}

}  // namespace
}  // namespace reel

int main(int count, char** arguments) { return reel::main_of({arguments + 1, arguments + count}); }
