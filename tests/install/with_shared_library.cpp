// A program that uses the shared library: exceptions, per-thread state and lines of code across its
// border.
#include <reel/reel.h>

#include <cstdio>
#include <cstdlib>
#include <stop_token>
#include <string>

namespace {

using namespace reel;

/// Ends the program with code 1, and prints the line, unless the condition holds.
void expect(bool holds, int line = __builtin_LINE()) {
  if (holds) return;
  std::fprintf(stderr, "%s:%d: does not hold\n", __FILE__, line);
  std::exit(1);
}

/// Expects that `call` throws an E from `line` of this file.
template <class E>
void expect_error_at(int line, const auto& call) {
  std::string where = "no error";
  try {
    call();
  } catch (const E& error) {
    where = error.where();
  } catch (const Error& error) {
    where = "another type of error";
  }
  const std::string place = "with_shared_library.cpp:" + std::to_string(line);
  if (!where.ends_with(place)) std::fprintf(stderr, "%s, not %s\n", where.c_str(), place.c_str());
  expect(where.ends_with(place), line);
}

class OwnError : public Error {
 public:
  using Error::Error;
};

struct Model {
  Tensor weights, bias;
};

}  // namespace

int main() {
  // Errors of the library, eager and from a traced function.
  const Tensor x = zeros({2, 3});
  expect_error_at<ShapeError>(__builtin_LINE(), [&] { matmul(x, x); });
  expect_error_at<NumericsError>(__builtin_LINE() + 1, [&] {
    const auto f = jit([](const Tensor& y) { return check_numerics(log(y), "logarithm"); });
    f(x);
  });
  // An error of this program, through frames of the library.
  bool is_caught = false;
  try {
    jit([](const Tensor& y) -> Tensor {
      throw OwnError("own");
      return y;
    })(x);
  } catch (const OwnError& error) {
    is_caught = error.message().starts_with("own");
  }
  expect(is_caught);

  // State of this thread, which headers set and the library reads, and the other way round.
  {
    const DetectNan guard;
    expect_error_at<NumericsError>(__builtin_LINE(), [&] { sqrt(scalar(-1.)); });
  }
  {
    std::stop_source source;
    const CancellationScope scope(source.get_token());
    source.request_stop();
    expect_error_at<CancelledError>(__builtin_LINE(), [] { check_cancellation(); });
  }

  // A model of this program: trees, gradients, loops, optimiser.
  const Dim time("time", 4), in("in", 3);
  const Model model{.weights = ones({in}), .bias = scalar(0.)};
  const auto loss = [&](const Model& m, const Tensor& xs) {
    const auto step = [&](const Tensor& x_t, const Tensor& s) {
      const Tensor next = s + sum(x_t * m.weights) + m.bias;
      return std::pair{next, next};
    };
    const auto result =
        scan(Scan{.spatial_dim = time, .initial = scalar(0.), .xs = xs, .body = step});
    return result.state;
  };
  const Tensor xs = ones({time, in});
  const auto [value, gradient] = value_and_grad(loss)(model, xs);
  const auto [traced, traced_gradient] = jit(value_and_grad(loss))(model, xs);
  expect(value.item<float>() == 12 && traced.item<float>() == 12);
  expect(gradient.bias.item<float>() == 4 && traced_gradient.bias.item<float>() == 4);
  return 0;
}
