// Measures the first call of a traced function (recording, passes and plan) by its number of
// outputs, parameters or loops. Also measures the cost of a later call besides its ops.
#include <vector>

#include "harness.h"
#include "reel/tests/trace/plan/recorded_models.h"

namespace reel::bench {
namespace {

template <class F, class... Args>
void first_call(Group& group, const std::string& what, int n, const F& f, const Args&... args) {
  const std::string name = what + " n=" + std::to_string(n);
  if (!group.wants(name)) return;
  const auto run = [&](Executor executor) {
    return [&f, &args..., executor] { jit(f, {.executor = executor})(args...); };
  };
  group.compare(name, milliseconds(),
                {{"plan", run(Executor::plan)},
                 {"interpreter", run(Executor::interpreter)},
                 {"dataflow", run(Executor::dataflow)}},
                Clock::processor);
}

void first_calls(Group& group, int n) {
  const auto named = [&group](const char* what, int size) {
    return [&group, what, size](const auto& f, const auto&... args) {
      first_call(group, what, size, f, args...);
    };
  };
  recorded::scalar_outputs(n, named("scalar outputs", n));
  recorded::adam_over_scalars(n, named("adam over scalars", n));
  recorded::one_chain(n, named("one chain", n));
  recorded::captures(n, named("captures", n));
  recorded::loops(n / 10, named("loops", n / 10));
  recorded::captures_of_a_loop(n, named("captures of a loop", n));
  recorded::chain_of_carries(n / 4, named("chain of carries", n / 4));
}

/// The cost before the graph runs: flattening the arguments, and finding the trace.
void later_calls(Group& group) {
  for (const int n : {1, 100}) {
    const std::string name = "later call, tensors=" + std::to_string(n);
    if (!group.wants(name)) continue;
    const recorded::List list(static_cast<std::size_t>(n), ones({2}));
    const auto f = jit([](const recorded::List& list) { return list[0] + 1.f; });
    group.compare(name, nanoseconds_per_op(1), {{"plan", [&] { f(list); }}}, Clock::processor);
  }
}

}  // namespace
}  // namespace reel::bench

int main(int argc, char** argv) {
  using namespace reel::bench;
  Group group("recording", argc, argv);
  for (const int n : {1000, 4000}) first_calls(group, n);
  later_calls(group);
  return group.finish();
}
