#include "machine.h"

#include <dnnl.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <thread>

#include "reel/core/base/str.h"
#include "reel/reel.h"

namespace reel::bench {
namespace {

std::string processor() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);)
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  return "unknown processor";
}

/// Returns the instruction sets by which libraries choose kernels.
std::string instruction_sets() {
  std::string sets;
  if (__builtin_cpu_supports("avx2")) sets += " AVX2";
  if (__builtin_cpu_supports("fma")) sets += " FMA";
  if (__builtin_cpu_supports("avx512f")) sets += " AVX-512";
  if (__builtin_cpu_supports("avx512bf16")) sets += " AVX-512-BF16";
  return sets.empty() ? " no AVX2" : sets;
}

/// Returns how many products of matrices that fit the second-level cache one thread computes per
/// second.
double products() {
  const Tensor a = full({256, 256}, 0.01f);
  const auto begin = std::chrono::steady_clock::now();
  std::chrono::duration<double> took{};
  std::int64_t count = 0;
  for (; took.count() < 0.1; took = std::chrono::steady_clock::now() - begin, count += 4)
    for (int i = 0; i < 4; ++i) matmul(a, a);
  return static_cast<double>(count) / took.count();
}

/// Near 1 if two of the processors share a core, or another program uses one: then a second thread
/// cannot make a product faster.
double products_of_two_threads_over_one() {
  const int before = threads();
  set_threads(1);  // threads in a product
  double one = 0, two = 0;
  for (int i = 0; i < 3; ++i) {
    one = std::max(one, products());
    double other = 0;
    std::thread beside([&] { other = products(); });
    const double own = products();
    beside.join();
    two = std::max(two, own + other);
  }
  set_threads(before);
  return two / one;
}

}  // namespace

std::vector<std::string> describe_machine() {
  const dnnl_version_t& dnnl = *dnnl_version();
  return {
      str("processor: ", processor(), ", ", std::thread::hardware_concurrency(), " cores,",
          instruction_sets()),
      str("two threads at once: ", std::round(100 * products_of_two_threads_over_one()) / 100,
          " times the products of one"),
      str("reel: ", REEL_BENCH_VERSION, " by ", REEL_BENCH_COMPILER, ", kernels ",
          instruction_set(), ", oneDNN ", dnnl.major, '.', dnnl.minor, '.', dnnl.patch),
  };
}

}  // namespace reel::bench
