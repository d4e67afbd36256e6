#include "reel/tests/fuzz/relations/orders.h"

#include "reel/core/ops.h"
#include "reel/frontend/transforms/grad.h"
#include "reel/frontend/transforms/jvp.h"
#include "reel/tests/fuzz/shrinking/variants.h"

namespace reel::fuzz {
namespace {

Tensor total_of(const Function& f, const Tensors& x) { return sum(f(x)[0]); }

Tensors gradients(const Function& f, const Tensors& x) {
  const auto [results, gradient] = value_and_grad([&](const Tensors& y) {
    const Tensors all = f(y);
    return std::pair{sum(all[0]), all};
  })(x);
  Tensors both = results.second;
  both.insert(both.end(), gradient.begin(), gradient.end());
  return both;
}

Tensors second_gradients(const Function& f, const Tensors& arguments, const Tensors& directions) {
  return grad([&](const Tensors& x) {
    const Tensors gradient = grad([&](const Tensors& y) { return total_of(f, y); })(x);
    Tensor slope = scalar(0.0, f64);
    for (std::size_t i = 0; i < x.size(); ++i)
      if (is_float(x[i].dtype())) slope = slope + sum(gradient[i] * directions[i]);
    return slope;
  })(arguments);
}

Tensors reals(const Tensors& tensors) {
  Tensors result;
  for (const Tensor& tensor : tensors)
    if (is_float(tensor.dtype())) result.push_back(tensor);
  return result;
}

}  // namespace

const char* name_of(Order order) {
  static const char* const names[] = {"values", "gradients", "second gradients", "tangents",
                                      "tangents of gradients"};
  return names[static_cast<int>(order)];
}

Order draw_order(const Program& program, Random& random) {
  if (program.real != f64 || has_derivatives(program))
    return random.chance(50) ? Order::values : Order::gradients;
  return static_cast<Order>(random.below(5));
}

bool takes_directions(Order order) { return order > Order::gradients; }

Function of_order(Order order, const Function& f) {
  return [order, f](const Tensors& x) -> Tensors {
    // With floats among the captured tensors alone, there is no derivative.
    if (order == Order::values || reals(x).empty()) return f(x);
    if (order == Order::gradients) return gradients(f, x);
    const auto [arguments, directions] = arguments_and_directions(x);
    if (order == Order::second_gradients) return second_gradients(f, arguments, directions);
    if (order == Order::tangents)
      return jvp([&](const Tensors& y) { return reals(f(y)); }, arguments, directions).second;
    const auto gradient = grad([&](const Tensors& y) { return total_of(f, y); });
    return jvp(gradient, arguments, directions).second;
  };
}

}  // namespace reel::fuzz
