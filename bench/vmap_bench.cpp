// Measures functions of one row under vmap, against the same function of all rows, written by hand.
#include "harness.h"
#include "reel/reel.h"

namespace reel::bench {
namespace {

constexpr int kRows = 2000, kColumns = 64;

/// A function of values along an axis, 0 in a row and 1 in all rows. b: values like a's, for
/// functions of two operands.
struct Case {
  std::string name;
  std::function<Tensor(const Tensor& a, const Tensor& b, int axis)> f;
  bool has_gradient = true;
};

std::vector<Case> cases() {
  const auto ints = [](const Tensor& a) { return cast(a * 8., i32); };
  const Tensor places = cast(random_uniform({kColumns}) * double{kColumns}, i32);
  return {
      {"cumsum", [](const Tensor& a, const Tensor&, int axis) { return cumsum(a, axis); }},
      {"cumprod", [](const Tensor& a, const Tensor&, int axis) { return cumprod(a, axis); }},
      {"prod", [](const Tensor& a, const Tensor&, int axis) { return prod(a, axis); }},
      {"any", [](const Tensor& a, const Tensor&, int axis) { return any(a > 1., axis); }, false},
      {"all", [](const Tensor& a, const Tensor&, int axis) { return all(a > -1., axis); }, false},
      {"argmax", [](const Tensor& a, const Tensor&, int axis) { return argmax(a, axis); }, false},
      {"argmin", [](const Tensor& a, const Tensor&, int axis) { return argmin(a, axis); }, false},
      {"reverse", [](const Tensor& a, const Tensor&, int axis) { return reverse(a, axis); }},
      {"sort", [](const Tensor& a, const Tensor&, int axis) { return sort(a, axis); }},
      {"argsort", [](const Tensor& a, const Tensor&, int axis) { return argsort(a, axis); }, false},
      {"top_k", [](const Tensor& a, const Tensor&, int axis) { return top_k(a, axis, 8).values; }},
      {"pad", [](const Tensor& a, const Tensor&, int axis) { return pad(a, axis, 3, 5, 1.); }},
      {"shift", [](const Tensor& a, const Tensor&, int axis) { return shift(a, axis, 3); }},
      {"one_hot", [ints](const Tensor& a, const Tensor&, int) { return one_hot(ints(a), Dim(16)); },
       false},
      {"stack",
       [](const Tensor& a, const Tensor& b, int axis) {
         return stack({a, b}, axis);
       }},
      {"unstack",
       [](const Tensor& a, const Tensor&, int axis) {
         const Tensors parts = unstack(a, axis);
         return parts[0] * parts[1] + parts[2];
       }},
      {"concat",
       [](const Tensor& a, const Tensor& b, int axis) {
         return concat({a, b}, axis);
       }},
      {"slice by step",
       [](const Tensor& a, const Tensor&, int axis) { return slice(a, axis, 1, {}, 3); }},
      {"gather",
       [places](const Tensor& a, const Tensor&, int axis) { return gather(a, places, axis); }},
      {"scatter_add", [places](const Tensor& a, const Tensor& b,
                               int axis) { return scatter_add(a, places, b, axis); }},
      {"scatter_max", [places](const Tensor& a, const Tensor& b,
                               int axis) { return scatter_max(a, places, b, axis); }},
      {"linear_scan",
       [](const Tensor& a, const Tensor& b, int axis) { return linear_scan(a * 0.1, b, axis); }},
  };
}

void compare(Group& group, const Case& of, bool is_gradient) {
  const std::string name =
      str(of.name, is_gradient ? ", gradient" : "", " rows=", kRows, " columns=", kColumns);
  if (!group.wants(name)) return;
  const auto row = [f = of.f](const Tensor& a, const Tensor& b) { return f(a, b, 0); };
  const auto all = [f = of.f](const Tensor& a, const Tensor& b) { return f(a, b, 1); };
  const auto mapped = [row](const Tensor& a, const Tensor& b) { return vmap(row)(a, b); };
  const Tensor a = random_normal({kRows, kColumns}), b = random_normal({kRows, kColumns});
  const auto contender = [&](const std::string& name, const auto& f) -> Contender {
    if (!is_gradient) return {name, [=, traced = jit(f)] { traced(a, b); }};
    const auto loss = [f](const Tensor& a, const Tensor& b) { return sum(square(f(a, b))); };
    return {name, [=, traced = jit(grad(loss))] { traced(a, b); }};
  };
  group.compare(name, milliseconds(), {contender("reel", mapped), contender("direct", all)},
                Clock::processor);
}

}  // namespace
}  // namespace reel::bench

int main(int argc, char** argv) {
  using namespace reel::bench;
  Group group("vmap", argc, argv);
  reel::set_threads(1);
  reel::manual_seed(1);
  note("reel: jit(vmap(f)) with f of one row; direct: jit of the same function of all rows");
  for (const Case& of : cases())
    for (const bool is_gradient : {false, true})
      if (!is_gradient || of.has_gradient) compare(group, of, is_gradient);
  return group.finish();
}
