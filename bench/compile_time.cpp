#include "compile_time.h"

#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>

#include "reel/core/base/errors.h"
#include "reel/core/base/str.h"

namespace reel::bench {
namespace {

double seconds_of(const timeval& time) {
  return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

/// Runs a program to its end. Returns the processor time that it used.
rusage run(const std::vector<std::string>& command) {
  std::vector<char*> argv;
  for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  pid_t process;
  if (posix_spawn(&process, argv[0], nullptr, nullptr, argv.data(), environ) != 0)
    throw Error(str("cannot start ", argv[0]));
  int status;
  rusage usage;
  if (wait4(process, &status, 0, &usage) != process || status != 0)
    throw Error(str("failed: ", join(command, " ")));
  return usage;
}

}  // namespace

CompileTimes compile(const std::string& source, int times) {
  setenv("CCACHE_DISABLE", "1", 1);  // in case the compiler is a link to ccache
  const std::vector<std::string> command{
      REEL_BENCH_CXX,           "-std=c++20", "-O2",      "-I", REEL_BENCH_INCLUDE, "-c",
      REEL_BENCH_ROOT + source, "-o",         "/dev/null"};
  CompileTimes result;
  for (int i = 0; i < times; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    const rusage usage = run(command);
    result.seconds.push_back(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    result.cpu_seconds.push_back(seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime));
  }
  return result;
}

}  // namespace reel::bench
