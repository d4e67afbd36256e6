#include "reel/tests/fuzz/isolation.h"

#include <poll.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <mutex>
#include <stdexcept>
#include <string>

#include "reel/tests/fuzz/drafter.h"

namespace reel::fuzz {
namespace {

/// Real time after which a silent child is killed: one that waits uses no processor time.
constexpr int kSecondsOfTheClock = 600;

/// Sends a message from a child to its parent: a letter, a number, and two texts, each ended by a
/// 0.
void tell(int pipe, char what, std::uint64_t number, const std::string& kind = {},
          const std::string& message = {}) {
  std::string text(1, what);
  text += std::to_string(number) + '\0' + kind + '\0' + message + '\0';
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t wrote = write(pipe, text.data() + done, text.size() - done);
    if (wrote <= 0) _exit(3);
    done += wrote;
  }
}

struct Told {
  char what;
  std::uint64_t number;
  std::string kind, message;
};

/// Calls hear() for each message of a child until it exits. Returns the way in which it failed;
/// empty if it succeeded.
std::string listen(int pipe, pid_t child, const std::function<void(const Told&)>& hear) {
  std::string text;
  char buffer[4096];
  bool waited_too_long = false;
  while (true) {
    pollfd ready{.fd = pipe, .events = POLLIN, .revents = 0};
    if (poll(&ready, 1, kSecondsOfTheClock * 1000) == 0) {
      waited_too_long = true;
      kill(child, SIGKILL);
    }
    const ssize_t got = read(pipe, buffer, sizeof buffer);
    if (got <= 0) break;
    text.append(buffer, got);
    while (true) {
      const std::size_t first = text.find('\0');
      const std::size_t second = first == text.npos ? first : text.find('\0', first + 1);
      const std::size_t third = second == text.npos ? second : text.find('\0', second + 1);
      if (third == text.npos) break;
      hear({text[0], std::stoull(text.substr(1, first - 1)),
            text.substr(first + 1, second - first - 1),
            text.substr(second + 1, third - second - 1)});
      text.erase(0, third + 1);
    }
  }
  close(pipe);
  int status = 0;
  waitpid(child, &status, 0);
  if (waited_too_long || (WIFSIGNALED(status) && WTERMSIG(status) == SIGPROF)) return "never ends";
  if (WIFSIGNALED(status)) return std::string("crashes: ") + strsignal(WTERMSIG(status));
  if (WEXITSTATUS(status)) return "exits";
  return "";
}

/// Tells the parent which relation begins: a crash is a finding of it.
std::function<void(const std::string&)> telling_relations(int pipe) {
  return [pipe](const std::string& relation) { tell(pipe, 'b', 0, relation); };
}

void allow_time(int seconds) {
  const itimerval time{.it_interval = {}, .it_value = {.tv_sec = seconds, .tv_usec = 0}};
  setitimer(ITIMER_PROF, &time, nullptr);
}

/// Runs work(pipe) in a child, and returns the result of listen().
std::string in_child(const std::function<void(int)>& work,
                     const std::function<void(const Told&)>& hear) {
  // A child of another thread must not inherit the end that this child writes to: the parent reads
  // until all copies are closed.
  static std::mutex mutex;
  int ends[2];
  pid_t child = 0;
  {
    const std::lock_guard lock(mutex);
    if (pipe(ends) != 0) throw std::runtime_error("no pipe");
    child = fork();
    if (child < 0) throw std::runtime_error("no process");
    if (child != 0) close(ends[1]);
  }
  if (child == 0) {
    close(ends[0]);
    work(ends[1]);
    _exit(0);
  }
  return listen(ends[0], child, hear);
}

}  // namespace

std::optional<Finding> check_isolated(const Program& program, const Checks& checks, int seconds) {
  std::optional<Finding> finding;
  std::string relation;
  const std::string end = in_child(
      [&](int pipe) {
        allow_time(seconds);
        Statistics statistics{.begins = telling_relations(pipe)};
        if (const auto found = checks(program, &statistics))
          tell(pipe, 'f', program.seed, found->kind, found->message);
      },
      [&](const Told& told) {
        if (told.what == 'b')
          relation = told.kind + ": ";
        else
          finding = {told.kind, told.message};
      });
  if (!end.empty()) return Finding{relation + end, end};
  return finding;
}

Statistics check_many(std::uint64_t first, int count, const Rules& rules, const Checks& checks,
                      const std::function<void(const Found&)>& report) {
  Statistics all;
  const std::uint64_t end = first + count;
  while (first < end) {
    std::uint64_t current = first;
    std::string relation;
    const std::string how = in_child(
        [&](int pipe) {
          for (std::uint64_t seed = first; seed < end; ++seed) {
            tell(pipe, 'p', seed);
            allow_time(kSeconds);
            Statistics statistics{.begins = telling_relations(pipe)};
            if (const auto found = checks(generate(seed, rules), &statistics))
              tell(pipe, 'f', seed, found->kind, found->message);
            if (statistics.compared_with_differences) tell(pipe, 'd', seed);
            if (statistics.second_compared) tell(pipe, 's', seed);
            for (int i = 0; i < statistics.relations; ++i) tell(pipe, 'r', seed);
          }
        },
        [&](const Told& told) {
          if (told.what == 'f') report({told.number, {told.kind, told.message}});
          if (told.what == 'd') ++all.compared_with_differences;
          if (told.what == 's') ++all.second_compared;
          if (told.what == 'r') ++all.relations;
          if (told.what == 'b') relation = told.kind + ": ";
          if (told.what != 'p') return;
          current = told.number;
          relation.clear();
          ++all.programs;
        });
    first = how.empty() ? end : current + 1;
    if (!how.empty()) report({current, {relation + how, how}});
  }
  return all;
}

}  // namespace reel::fuzz
