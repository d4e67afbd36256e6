// Sums of very many f32 terms: updates of one element, the gradient of a table, and the gradient of
// a parameter that a loop reads in every iteration. No term is lost, and sums of few terms keep
// their bits.
#include <cmath>

#include "reel/tests/modes.h"

namespace reel {
namespace {

using LongSumsTest = InEveryMode;
REEL_IN_EVERY_MODE(LongSumsTest);

constexpr std::int64_t kMany = 3000000;

/// Returns numbers from 0.1 to 1.1 without exact sums.
Tensor uneven(std::int64_t count) { return mod(range(count, f32) * 0.618034, 1.) + 0.1; }

TEST_P(LongSumsTest, ManyUpdatesOfOnePlace) {
  const auto f =
      run([](const Tensor& x, const Tensor& i) { return scatter_add(zeros({2}), i, x, 0); });
  const Tensor sums = f(full({kMany}, 0.1), cast(range(kMany) == 7, i32));
  expect_values(sums, {0.1 * (kMany - 1), 0.1}, 1e-7);
  expect_values(f(ones({kMany}), zeros({kMany}, i32)), {double(kMany), 0}, 0);
}

TEST_P(LongSumsTest, TheGradientOfATable) {
  const auto f = run(
      grad([](const Tensor& table, const Tensor& i) { return sum(gather(table, i, 0) * 0.1); }));
  const Tensor got = f(ones({3, 2}), mod(range(kMany / 3), 2));
  const double half = 0.1 * kMany / 6;
  expect_values(got, {half, half, half, half, 0, 0}, 1e-7);
}

TEST_P(LongSumsTest, RowsOfOneIndexAddUp) {
  const auto f = run([](const Tensor& table, const Tensor& i) {
    const auto g = grad([&](const EmbeddingTable& t) { return sum(gather(t, i) * 0.1); })(
        EmbeddingTable(table));
    return std::pair{g.to_dense(), global_norm(g)};
  });
  const auto [dense, norm] = f(ones({2, 1}), zeros({kMany / 3}, i32));
  expect_values(dense, {0.1 * kMany / 3, 0}, 1e-7);
  expect_values(norm, {0.1 * kMany / 3}, 1e-7);
}

TEST_P(LongSumsTest, FewUpdatesHaveTheBitsOfFloatsInOrder) {
  const std::int64_t count = 32;
  const Tensor x = uneven(count);
  const std::vector<float> terms = x.to_vector<float>();
  float sum = 0;
  for (const float term : terms) sum += term;
  const auto f =
      run([](const Tensor& x) { return scatter_add(zeros({1}), zeros({x.numel()}, i32), x, 0); });
  expect_same_bits(f(x), tensor({sum}));
}

/// Returns the gradient by a parameter that each iteration multiplies by its element.
Tensor gradient_of_iterations(const Tensor& w, const Tensor& xs) {
  return grad([&](const Tensor& w) {
    const auto body = [&](const Tensor& x, const Tensor& s) { return std::pair{w * x, s}; };
    return sum(scan(Scan{.initial = scalar(0.f), .xs = xs, .body = body}).ys);
  })(w);
}

TEST_P(LongSumsTest, TheGradientOfAParameterOfALoop) {
  const std::int64_t count = is_exact() ? 20000 : 200000;
  const auto f =
      run([](const Tensor& w, const Tensor& xs) { return gradient_of_iterations(w, xs); });
  expect_values(f(ones({2}), full({count}, 0.1)), {0.1 * count, 0.1 * count}, 1e-6);
}

TEST_P(LongSumsTest, IterationsHaveTheSameBitsInEveryMode) {
  if (!is_exact()) return;
  for (const std::int64_t count : {1, 31, 32, 33, 64, 65, 200}) {
    const Tensor xs = uneven(count), w = tensor({0.3, 0.7});
    const auto loss = [](const Tensor& w, const Tensor& xs) {
      const auto body = [&](const Tensor& x, const Tensor& s) {
        const Tensor next = tanh(s * w + x);
        return std::pair{next, next};
      };
      return sum(scan(Scan{.initial = zeros({2}), .xs = xs, .body = body}).ys);
    };
    expect_same_bits(run(grad(loss))(w, xs), grad(loss)(w, xs));
    const auto cubes = [](const Tensor& w, const Tensor& n) {
      const auto cond = [&](const Tensor& i, const Tensor&) { return i < n; };
      const auto step = [&](const Tensor& i, const Tensor& s) {
        return std::tuple{i + 1, sin(s * w) + 0.3};
      };
      return sum(std::get<1>(while_loop(cond, step, std::tuple{scalar(0), ones({2})})));
    };
    expect_same_bits(run(grad(cubes))(w, scalar(count)), grad(cubes)(w, scalar(count)));
  }
}

TEST_P(LongSumsTest, UnchangedStateHasTheBitsOfEagerMode) {
  if (!is_exact()) return;
  const auto loss = [](const Tensor& w, const Tensor& xs) {
    const auto body = [&](const Tensor& x, const std::pair<Tensor, Tensor>& s) {
      return std::pair{None{}, std::pair{s.first, tanh(s.second * s.first + x)}};
    };
    return sum(
        scan(Scan{.initial = std::pair{w, zeros({2})}, .xs = xs, .body = body}).state.second);
  };
  const Tensor xs = uneven(100), w = tensor({0.3, 0.7});
  expect_same_bits(run(grad(loss))(w, xs), grad(loss)(w, xs));
}

// The cotangent that comes first is so large that a one added to it in f32 is lost.
constexpr double kLarge = 1 << 24;
constexpr int kReads = 320;
void expect_ones_count(const Tensor& got) { expect_values(got, {kLarge + kReads}, 40 / kLarge); }

/// Reads w many times, once with a large factor. The last reader gives the first cotangent.
Tensor read_often(const Tensor& w) {
  Tensor result = w * 1.0;
  for (int i = 1; i < kReads; ++i) result = result + w * 1.0;
  return result + w * kLarge;
}

TEST_P(LongSumsTest, AParameterThatAPlainLoopReads) {
  expect_ones_count(run(grad(read_often))(scalar(1.f)));
}

TEST_P(LongSumsTest, AParameterThatAPlainLoopInABodyReads) {
  const auto loss = [](const Tensor& w) {
    const auto body = [&](const Tensor&, const Tensor& s) { return s + read_often(w); };
    return fori_loop(0, 1, body, scalar(0.f));
  };
  expect_ones_count(run(grad(loss))(scalar(1.f)));
}

TEST_P(LongSumsTest, AStateThatAPlainLoopInABodyReads) {
  const auto loss = [](const Tensor& w) {
    const auto body = [](const Tensor&, const Tensor& s) { return read_often(s * 1.0); };
    return fori_loop(0, 1, body, w);
  };
  expect_ones_count(run(grad(loss))(scalar(1.f)));
}

TEST_P(LongSumsTest, FewReadsHaveTheBitsOfFloatsInOrder) {
  const std::vector<float> factors = uneven(32).to_vector<float>();
  const auto loss = [&](const Tensor& w) {
    Tensor total = w * factors[31];
    for (int i = 30; i >= 0; --i) total = total + w * factors[static_cast<std::size_t>(i)];
    return total;
  };
  float sum = 0;
  for (const float factor : factors) sum += factor;
  expect_same_bits(run(grad(loss))(scalar(1.f)), scalar(sum));
}

TEST_P(LongSumsTest, ReadsOfF64HaveTheBitsOfDoublesInOrder) {
  const auto loss = [](const Tensor& w) {
    Tensor total = w * 0.1;
    for (int i = 1; i < 100; ++i) total = total + w * 0.1;
    return total;
  };
  double sum = 0;
  for (int i = 0; i < 100; ++i) sum += 0.1;
  expect_same_bits(run(grad(loss))(scalar(1., f64)), scalar(sum, f64));
}

TEST_P(LongSumsTest, SecondGradientsOfManyReads) {
  const auto loss = [](const Tensor& w) {
    Tensor total = w;
    for (int i = 0; i < 100; ++i) total = total + w * w * w * 0.1;
    return total;
  };
  expect_values(run(grad(grad(loss)))(scalar(0.7f)), {100 * 0.6 * 0.7}, 1e-5);
}

/// 1, 1, ..., and the large one, last or first.
Tensor ones_and_large(bool is_last) {
  const Tensor large = full({1}, kLarge), rest = ones({kReads});
  return is_last ? concat({rest, large}, 0) : concat({large, rest}, 0);
}

TEST_P(LongSumsTest, AnElementOfAListThatIterationsRead) {
  const auto loss = [](const Tensor& w, const Tensor& xs) {
    const TensorArray list = TensorArray(w.type()).push_back(w);
    const auto body = [&](const Tensor& x, const Tensor& s) {
      return std::pair{None{}, s + x * list.read(0)};
    };
    return scan(Scan{.initial = scalar(0.f), .xs = xs, .body = body}).state;
  };
  expect_ones_count(run(grad(loss))(scalar(1.f), ones_and_large(true)));
}

TEST_P(LongSumsTest, AnElementOfAListAtManyIndices) {
  const auto loss = [](const Tensor& w, const Tensor& xs) {
    const TensorArray list = TensorArray(w.type()).push_back(w);
    return sum(list.gather(zeros({kReads + 1}, i32)) * xs);
  };
  expect_ones_count(run(grad(loss))(scalar(1.f), ones_and_large(false)));
}

TEST_P(LongSumsTest, SecondGradientsOfManyIterations) {
  const auto loss = [](const Tensor& w) {
    const auto body = [&](const Tensor&, const Tensor& s) { return s + w * w * w * 0.1; };
    return fori_loop(0, 100, body, scalar(0., f32));
  };
  const auto second = run(grad(grad(loss)));
  expect_values(second(scalar(0.7f)), {100 * 0.6 * 0.7}, 1e-5);
}

}  // namespace
}  // namespace reel
