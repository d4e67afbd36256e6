// Fused ops on plain axes of equal sizes: only positions tell which axis a value has.
#include <gtest/gtest.h>

#include "reel/reel.h"
#include "reel/tests/trace/passes/fused_ops.h"

namespace reel {
namespace {

/// Returns a tensor with axes of two elements, all different.
Tensor cube(int rank) {
  std::vector<float> values;
  for (int i = 0; i < 1 << rank; ++i) values.push_back(static_cast<float>(i * i % 7 + i) / 4);
  return reshape(tensor(values), Dims(static_cast<std::size_t>(rank), 2));
}

/// Returns x with a new axis of two elements at this position, along which it repeats.
Tensor repeated(const Tensor& x, int axis) {
  Dims one = x.dims(), all = x.dims();
  one.insert(one.begin() + axis, Dim(1));
  all.insert(all.begin() + axis, Dim(2));
  return expand(reshape(x, one), all);
}

// A sum of [2,2] over its rows, repeated along a new first axis, came out transposed.
TEST(FusedEqualSizesTest, SumsRepeatAlongTheirNewAxis) {
  const Tensor x = tensor({{1., 2.}, {3., 5.}});
  const auto f = [](const Tensor& x) { return expand(sum(x * x, 1), {2, 2}); };
  const Tensor expected = tensor({{5., 34.}, {5., 34.}});
  expect_same_bits(f(x), expected);
  expect_same_bits(jit(f)(x), expected);
}

TEST(FusedEqualSizesTest, EachAxisIsSummedAndRepeated) {
  for (const int rank : {2, 3})
    for (int summed = 0; summed < rank; ++summed)
      for (int added = 0; added < rank; ++added)
        for (int second = 0; second < rank; ++second) {
          const auto f = [=](const Tensor& x) {
            const Tensor rows = repeated(tanh(sum(x * x, summed)), added);
            return rows + x * repeated(sum(rows - x, second), added);
          };
          expect_same(f, cube(rank));
          expect_same(grad([=](const Tensor& x) { return sum(f(x) * x); }), cube(rank));
        }
}

}  // namespace
}  // namespace reel
