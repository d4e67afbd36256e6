// What the first call of a traced function takes, recording, passes and plan together, by how many
// outputs, parameters or loops the function has; and what a later call takes besides its ops.
#include <vector>

#include "harness.h"
#include "reel/reel.h"

namespace reel::bench {
namespace {

using List = std::vector<Tensor>;

List scalars(int n) {
  List result;
  for (int i = 0; i < n; ++i) result.push_back(scalar(0.5 * i));
  return result;
}

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
  first_call(
      group, "scalar outputs", n,
      [n](const Tensor& x) {
        List result;
        for (int i = 0; i < n; ++i) result.push_back(x * double(i) + 1.);
        return result;
      },
      scalar(1.));
  const List parameters = scalars(n);
  first_call(
      group, "adam over scalars", n,
      [](List parameters, Adam<List> adam, const List& gradient) {
        adam.update(parameters, gradient);
        return std::pair{parameters, adam};
      },
      parameters, Adam<List>(parameters), parameters);
  first_call(
      group, "one chain", n,
      [n](Tensor x) {
        for (int i = 0; i < n; ++i) x = x * 1.01 + double(i);
        return x;
      },
      scalar(1.));
  first_call(
      group, "captures", n,
      [&parameters](Tensor x) {
        for (const Tensor& y : parameters) x = x + y;
        return x;
      },
      scalar(1.));
  first_call(
      group, "loops", n / 10,
      [n](const Tensor& xs) {
        List result;
        for (int i = 0; i < n / 10; ++i)
          result.push_back(scan(Scan{.initial = zeros({2}) + double(i),
                                     .xs = xs,
                                     .body =
                                         [](const Tensor& x, const Tensor& h) {
                                           return std::pair{None{}, tanh(h + x)};
                                         }})
                               .state);
        return result;
      },
      ones({5, 2}));
}

/// What comes before the graph runs: the leaves of the arguments, and the search for the trace.
void later_calls(Group& group) {
  for (const int n : {1, 100}) {
    const std::string name = "later call, tensors=" + std::to_string(n);
    if (!group.wants(name)) continue;
    const List list(static_cast<std::size_t>(n), ones({2}));
    const auto f = jit([](const List& list) { return list[0] + 1.f; });
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
