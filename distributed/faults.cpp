#include "reel/distributed/faults.h"

#include <sched.h>
#include <unistd.h>

#include <cstdlib>
#include <exception>
#include <utility>

#include "reel/core/base/str.h"
#include "reel/distributed/transport.h"

namespace reel {
namespace {

std::terminate_handler handler_before = nullptr;
bool is_registered = false, is_active = false, is_expected = false;

[[noreturn]] void end_all(const std::string& reason) {
  is_active = false;
  Transport& transport = Transport::active("World");
  print_with_rank(transport.rank(), reason);
  transport.abort();
}

/// Returns the text of the current exception: one line, unless the message itself has several.
std::string text_of_exception() {
  try {
    throw;
  } catch (const std::exception& error) {
    std::string text = error.what();  // ends with "at file:line" on a line of its own
    const std::size_t place = text.rfind("\nat ");
    if (place != std::string::npos && text.find('\n') == place) text[place] = ' ';
    return text;
  } catch (...) {
    return "an exception that is no std::exception";
  }
}

[[noreturn]] void at_terminate() {
  if (is_active && Transport::is_active())
    end_all(std::current_exception() ? text_of_exception() : "std::terminate() was called");
  if (handler_before) handler_before();
  std::abort();
}

void at_exit() {
  if (!is_active || !Transport::is_active()) return;
  if (is_expected) Transport::active("World").abort();
  end_all("the program ended in the scope of its World");
}

}  // namespace

FaultHandlers::FaultHandlers() {
  handler_before = std::set_terminate(at_terminate);
  if (!std::exchange(is_registered, true)) std::atexit(at_exit);
  is_active = true;
}

FaultHandlers::~FaultHandlers() {
  is_active = false;
  std::set_terminate(handler_before);
}

void FaultHandlers::expect_end() { is_expected = true; }

void print_with_rank(int rank, const std::string& text) {
  std::string line = str("reel: rank ", rank, ": ", text, '\n');
  for (std::size_t begin = 0; begin < line.size();) {
    const ::ssize_t written = ::write(STDERR_FILENO, line.data() + begin, line.size() - begin);
    if (written <= 0) return;
    begin += static_cast<std::size_t>(written);
  }
}

void print_binding(int rank, int size) {
  cpu_set_t bound;
  if (rank != 0 || size == 1 || ::sched_getaffinity(0, sizeof bound, &bound) != 0) return;
  const long all = ::sysconf(_SC_NPROCESSORS_ONLN);
  if (CPU_COUNT(&bound) != 1 || all == 1) return;
  print_with_rank(rank, str("mpirun gives each rank 1 of ", all,
                            " processors, so threads() is 1; mpirun --bind-to none gives it all, "
                            "--map-by slot:PE=N gives it N"));
}

}  // namespace reel
