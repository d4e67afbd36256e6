// tests/frontend/errors/failed_attempts.h — makes the allocations of a call fail, one after the
// other.
#pragma once

#include <gtest/gtest.h>

#include <climits>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "reel/reel.h"
#include "reel/tests/check.h"
#include "reel/tests/failing_memory.h"

namespace reel {

using Fails = FailingMemory::Fails;
using Values = std::vector<std::vector<float>>;

inline Values values_of(const Tensors& tensors) {
  Values result;
  for (const Tensor& tensor : tensors) result.push_back(cast(tensor, f32).to_vector<float>());
  return result;
}

/// The call under test, made anew for every attempt.
struct Attempt {
  std::function<void()> call;
  std::function<Tensors()> result;
  /// Returns the arguments, and all else that a failed call must leave unchanged.
  std::function<Tensors()> state;
  /// C++ code of the call itself allocates, so std::bad_alloc may come out of it.
  bool is_plain_code = false;
};

/// Tries each of a call's first 150 allocations, and ever fewer of the later ones.
inline long next_number(long n) { return n < 150 ? n + 1 : n + n / 8; }

/// Makes one allocation after the other fail, until the call succeeds without a failure.
///
/// Every attempt runs on its own thread. The thread's pools of freed blocks are empty, so all
/// blocks come from the system.
inline void expect_no_harm(const std::string& what, const std::function<Attempt()>& make,
                           Fails fails = Fails::once) {
  SCOPED_TRACE(what);
  std::optional<Values> expected;
  const auto attempt = [&](long n) {
    bool has_failed = false;
    const std::int64_t bytes_before = memory().all.current;
    const auto run = [&] {
      const Attempt made = make();
      const Values before = values_of(made.state());
      bool is_done = false;
      {
        const FailingMemory failing(n, fails);
        try {
          made.call();
          is_done = true;
        } catch (const MemoryError&) {
        } catch (const std::bad_alloc&) {
          if (!made.is_plain_code) throw;
        }
        has_failed = failing.has_failed();
      }
      if (!is_done) {
        EXPECT_EQ(values_of(made.state()), before) << "allocation " << n;
        made.call();
      }
      const Values values = values_of(made.result());
      if (!expected) expected = values;
      EXPECT_EQ(values, *expected) << "allocation " << n;
    };
    std::thread([&] { EXPECT_NO_THROW(run()) << "allocation " << n; }).join();
    EXPECT_EQ(memory().all.current, bytes_before) << "allocation " << n;
    return has_failed;
  };
  make().call();      // caches of the process are full
  attempt(LONG_MAX);  // sets the expected values
  long n = 1;
  while (attempt(n) && !testing::Test::HasFailure()) n = next_number(n);
  EXPECT_GT(n, 1);
}

}  // namespace reel
