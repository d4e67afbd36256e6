// Growth of time with size: a case runs for one size and for a multiple of it. ratio_to_small
// equals that multiple if time is linear. One thread.
#include <functional>
#include <string>

#include "harness.h"
#include "libtorch.h"
#include "reel/core/graph/graph_builder.h"
#include "reel/reel.h"
#include "reel/trace/passes/fusion/fuse_pointwise.h"

namespace reel::bench {
namespace {

using Unrolled = std::function<Tensor(const Tensor&, const Tensor&)>;

Unrolled chain(int steps) {
  return [=](Tensor x, const Tensor& y) {
    for (int i = 0; i < steps; ++i) x = i % 2 ? tanh(x) : x + y;
    return x;
  };
}

/// A running sum that `count` values read in turn.
Unrolled mixed(int count) {
  return [=](const Tensor& x, const Tensor& y) {
    Tensor sum = y;
    Tensors each(static_cast<std::size_t>(count), x);
    for (int i = 0; i < 8; ++i)
      for (Tensor& one : each) one = tanh(sum = sum + one) * one;
    return sum + each.back();
  };
}

/// Returns the pass on the graph of f. For three times the graph, a pass that compares all records
/// with all others takes nine times as long. A pass that scans them at each merge takes 27 times as
/// long.
std::function<void()> fuse(const Unrolled& f) {
  const TensorType type(f32, {2});
  const RecordedGraph recorded =
      record_graph("f", {type, type}, [&](const Tensors& in) { return Tensors{f(in[0], in[1])}; });
  return [graph = recorded.graph] { fuse_pointwise(*graph); };
}

void compare(Group& group, const std::string& name, const std::function<void()>& large,
             const std::function<void()>& small) {
  group.compare(name, milliseconds(), {{"large", large}, {"small", small}}, Clock::processor);
}

Tensor loss(const Tensor& w, const Tensor& x) {
  const auto body = [&](const Tensor& x, const Tensor& state) {
    return std::pair{None{}, tanh(w * state + x)};
  };
  return sum(
      scan(Scan{.spatial_dim = x.dim("time"), .initial = zeros(w.dims()), .xs = x, .body = body})
          .state);
}

template <class F>
void compare_steps(Group& group, const std::string& name, const F& gradient) {
  const Tensor w = full({Dim("hidden", 512)}, 0.5);
  const auto of_steps = [&](int steps) {
    return [=, x = full({Dim("time", steps)}, 0.1)] { gradient(w, x); };
  };
  compare(group, name, of_steps(10'000), of_steps(5'000));
}

}  // namespace
}  // namespace reel::bench

int main(int argc, char** argv) {
  using namespace reel;
  using namespace reel::bench;
  Group group("growth", argc, argv);
  start_on_one_thread();
  note("processor time; linear is 3 for what is fused, 2 for steps");
  if (group.wants("fuse a chain of 15000 ops over 5000"))
    compare(group, "fuse a chain of 15000 ops over 5000", fuse(chain(15'000)), fuse(chain(5'000)));
  if (group.wants("fuse sums of 900 values over 300"))
    compare(group, "fuse sums of 900 values over 300", fuse(mixed(900)), fuse(mixed(300)));
  compare_steps(group, "gradient of 10000 steps over 5000, eager", grad(loss));
  compare_steps(group, "gradient of 10000 steps over 5000, traced", jit(grad(loss)));
  return group.finish();
}
