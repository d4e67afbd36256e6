// REEL_MAX_ISA, which is read once: every check starts a process of its own.
#include "reel/core/runtime/instruction_set.h"

#include <dnnl.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <string>

#include "reel/core/ops/elementwise/pointwise_code.h"
#include "reel/core/ops/elementwise/pointwise_kernels.h"
#include "reel/reel.h"

namespace reel {
namespace {

/// Runs a disabled test from below in another process, with these variables set, and returns the
/// line that it prints.
std::string line_of(const std::string& variables, const std::string& test) {
  const std::string program = std::filesystem::read_symlink("/proc/self/exe");
  const std::string command =
      "env -u REEL_MAX_ISA -u ONEDNN_MAX_CPU_ISA -u DNNL_MAX_CPU_ISA "
      "-u GTEST_TOTAL_SHARDS -u GTEST_SHARD_INDEX " +
      variables + " '" + program +
      "' --gtest_also_run_disabled_tests "
      "--gtest_filter=InstructionSetTest.DISABLED_" +
      test;
  FILE* const pipe = ::popen(command.c_str(), "r");
  std::string text;
  for (std::array<char, 256> part; std::fgets(part.data(), part.size(), pipe);) text += part.data();
  EXPECT_EQ(::pclose(pipe), 0) << text;
  const std::size_t begin = text.find("said: ");
  if (begin == std::string::npos) return text;
  return text.substr(begin + 6, text.find('\n', begin) - begin - 6);
}

std::string name_of_onednn_set() {
  switch (dnnl_get_effective_cpu_isa()) {
    case dnnl_cpu_isa_sse41:
      return "SSE41";
    case dnnl_cpu_isa_avx:
      return "AVX";
    case dnnl_cpu_isa_avx2:
      return "AVX2";
    default:
      return "more";
  }
}

/// Computes a product that is large enough for oneDNN.
void multiply_by_onednn() {
  const Tensor x = ones({600, 250});
  matmul(x, ones({250, 100}));
}

TEST(InstructionSetTest, DISABLED_SaysItself) {
  try {
    multiply_by_onednn();
    Chain sum{.repeats = {false, false}, .steps = {}, .results = {}};
    sum.results = {sum.append(Binary::add, 0, 1)};
    std::cout << "said: " << instruction_set() << ' ' << pointwise_table().name
              << (find_pointwise_table("avx512") ? " avx512 runs" : "")
              << (code_of(sum) ? " with code, " : ", ") << name_of_onednn_set() << '\n';
  } catch (const Error& error) {
    std::cout << "said: " << error.what() << '\n';
  }
}

TEST(InstructionSetTest, DISABLED_CallsOneDnnFirst) {
  const float a[4] = {1, 2, 3, 4};
  float c[4];
  dnnl_sgemm('N', 'N', 2, 2, 2, 1, a, 2, a, 2, 0, c, 2);
  try {
    zeros({2}) + 1.f;
    std::cout << "said: " << instruction_set() << '\n';
  } catch (const Error& error) {
    std::cout << "said: " << error.what() << '\n';
  }
}

/// Returns the instruction set of this processor. Checks of higher sets have no meaning here.
std::string best() {
  const std::string line = line_of("", "SaysItself");
  return line.substr(0, line.find(' '));
}

TEST(InstructionSetTest, TheEnvironmentLowersAllKernelsAndOneDnn) {
  EXPECT_EQ(line_of("REEL_MAX_ISA=sse42", "SaysItself"), "sse42 sse42, SSE41");
  if (best() == "sse42") GTEST_SKIP() << "this processor has no AVX2";
  for (const char* name : {"avx2", "AVX2"})
    EXPECT_EQ(line_of(std::string("REEL_MAX_ISA=") + name, "SaysItself"),
              "avx2 avx2 with code, AVX2");
}

TEST(InstructionSetTest, NoValueAndASetAboveTheProcessorsChangeNothing) {
  const std::string as_it_is = line_of("", "SaysItself");
  EXPECT_EQ(line_of("REEL_MAX_ISA=", "SaysItself"), as_it_is);
  EXPECT_EQ(line_of("REEL_MAX_ISA=avx512", "SaysItself"), as_it_is);
  EXPECT_EQ(as_it_is.find(" with code") != std::string::npos, best() != "sse42");
}

TEST(InstructionSetTest, ALowerLimitOfOneDnnStays) {
  EXPECT_EQ(line_of("REEL_MAX_ISA=sse42 ONEDNN_MAX_CPU_ISA=AVX2", "SaysItself"),
            "sse42 sse42, SSE41");
  if (best() == "sse42") GTEST_SKIP() << "this processor has no AVX2";
  for (const char* name : {"SSE41", "AVX", "AVX2"}) {
    const std::string line = std::string("avx2 avx2 with code, ") + name;
    EXPECT_EQ(line_of(std::string("REEL_MAX_ISA=avx2 ONEDNN_MAX_CPU_ISA=") + name, "SaysItself"),
              line);
    EXPECT_EQ(line_of(std::string("REEL_MAX_ISA=avx2 DNNL_MAX_CPU_ISA=") + name, "SaysItself"),
              line);
  }
}

TEST(InstructionSetTest, AnUnknownNameIsAnError) {
  EXPECT_EQ(line_of("REEL_MAX_ISA=avx1024", "SaysItself"),
            "REEL_MAX_ISA=avx1024 is no instruction set of Reel: there are sse42, avx2 and avx512");
}

TEST(InstructionSetTest, OneDnnThatWasCalledBeforeIsAnError) {
  EXPECT_EQ(line_of("REEL_MAX_ISA=sse42 ONEDNN_MAX_CPU_ISA=SSE41", "CallsOneDnnFirst"), "sse42");
  if (best() == "sse42") GTEST_SKIP() << "this processor has no AVX2";
  EXPECT_EQ(line_of("REEL_MAX_ISA=sse42", "CallsOneDnnFirst"),
            "REEL_MAX_ISA=sse42 cannot limit oneDNN, which was called before the first op of Reel: "
            "set ONEDNN_MAX_CPU_ISA=SSE41 as well");
}

}  // namespace
}  // namespace reel
