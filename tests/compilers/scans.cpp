// scan with deduced template arguments, which clang before 17 does not take.
#include "expect.h"

using namespace reel;

namespace {

struct Counter {
  Tensor count, total;
};

void known_length() {
  const Dim batch("batch", 2), time("time", tensor({3, 1}, {batch}));
  const Tensor x = tensor({1, 2, 3, 10, 0, 0}, {batch, time}, f32);
  const auto running_sum = [&](const Tensor& from) {
    return scan(Scan{
        .spatial_dim = time,
        .initial = zeros({batch}),
        .xs = from,
        .body =
            [](const Tensor& x_t, const Tensor& s) {
              return std::pair{s + x_t, s + x_t};
            },
    });
  };
  const auto [ys, last, dim] = running_sum(x);
  expect_values(last, {6, 10});
  expect_values(grad([&](const Tensor& from) { return sum(running_sum(from).ys); })(x),
                {3, 2, 1, 1, 0, 0});
  const auto fast = jit([&](const Tensor& from) { return running_sum(from).state; });
  expect_values(fast(x), {6, 10});
}

void condition() {
  const Dim batch("batch", 3);
  const Tensor target = tensor({0, 1, 3}, {batch});
  const auto [ys, last, dim] = scan(Scan{
      .cond_dims = {batch},
      .initial = Counter{zeros({batch}, i32), zeros({batch})},
      .cond = [&](const Counter& s) { return s.count < target; },
      .body =
          [](const Counter& s) {
            return std::pair{s.count * 10, Counter{s.count + 1, s.total + 0.5}};
          },
  });
  expect_values(last.count, {0, 1, 3});
  expect_values(dim.lengths(), {0, 1, 3});
  expect_values(last.total, {0, 0.5, 1.5});
}

void tensor_arrays() {
  const Dim time("time", 3);
  const TensorArray all = scan(Scan{
                                   .spatial_dim = time,
                                   .xs = tensor({1., 2., 3.}, {time}),
                                   .body = [](const Tensor& x) { return x * x; },
                                   .return_tensor_arrays = std::true_type{},
                               })
                              .ys;
  expect_values(all[-1], {9});
}

}  // namespace

int main() {
  known_length();
  condition();
  tensor_arrays();
}
