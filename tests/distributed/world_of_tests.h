// tests/distributed/world_of_tests.h — the World of the tests that mpirun starts.
#pragma once

#include "reel/distributed.h"
#include "reel/reel.h"
#include "reel/tests/modes.h"

namespace reel {

/// Returns the one World of the program. Every rank runs every test.
const World& world();

/// Returns f(0) + f(1) + ... over the numbers of all ranks.
template <class F>
double sum_over_ranks(const F& f) {
  double sum = 0;
  for (int r = 0; r < world().size(); ++r) sum += f(r);
  return sum;
}

/// Returns the message of the error that f throws; empty if it throws none.
template <class F>
std::string error_of(const F& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.message();
  }
  return "";
}

}  // namespace reel
