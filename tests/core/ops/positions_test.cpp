// spread, search_sorted, repeat, and slices at positions that a run computes.
#include "reel/core/functions/positions.h"

#include <algorithm>
#include <array>
#include <limits>

#include "reel/tests/gradients.h"
#include "reel/tests/modes.h"

namespace reel {
namespace {

const double kNan = std::numeric_limits<double>::quiet_NaN();

class PositionsTest : public InEveryMode {
 protected:
  const Dim batch{"batch", 3}, time{"time", tensor({4, 0, 2}, {batch})};
  /// Elements 0 ... of all entries, NaN in padding.
  Tensor numbered() const {
    return where(mask(time), tensor({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, {batch, time}, f64),
                 scalar(kNan, f64));
  }
};
REEL_IN_EVERY_MODE(PositionsTest);

TEST_P(PositionsTest, SpreadGivesOuterSums) {
  const Dim a("a", 2), b("b", 3);
  const auto f = run([](const Tensor& x, const Tensor& y) {
    const auto [p, q] = spread(x, y);
    return p + q * 10;
  });
  const Tensor x = tensor({1, 2}, {a}), y = tensor({3, 4, 5}, {b});
  EXPECT_EQ(f(x, y).dims(), (Dims{a, b}));
  expect_values(f(x, y), {31, 41, 51, 32, 42, 52});
  expect_values(f(x, x), {11, 22});
  expect_values(f(scalar(1), y), {31, 41, 51});
  expect_values(run([](const Tensor& x, const Tensor& y) { return matmul(x, y, Dims{}); })(x, y),
                {3, 4, 5, 6, 8, 10});
  EXPECT_EQ(message_of<ShapeError>([] { spread(ones({2}), ones({3})); }),
            "spread: f32[2] and f32[3] have plain sizes; name the axes, or call broadcast_to");
}

TEST_P(PositionsTest, SearchesCountTheElementsBelow) {
  const auto left = run([](const Tensor& s, const Tensor& v) { return search_sorted(s, v, 0); });
  const auto right =
      run([](const Tensor& s, const Tensor& v) { return search_sorted(s, v, 0, {.right = true}); });
  for (const int size : {0, 1, 2, 3, 4, 7, 8, 9}) {
    std::vector<double> sorted, values{kNan, -1, 100};
    for (int i = 0; i < size; ++i) sorted.push_back(i / 2 * 2);
    if (size > 3) sorted.back() = kNan;
    for (int i = -1; i < size + 1; ++i) values.push_back(i);
    const Tensor s = tensor(sorted, {size}, f64), v = tensor(values, {}, f64);
    std::vector<double> below, not_above;
    const auto is_less = [](double a, double b) {
      return a < b || (std::isnan(b) && !std::isnan(a));
    };
    for (const double value : values) {
      below.push_back(static_cast<double>(
          std::lower_bound(sorted.begin(), sorted.end(), value, is_less) - sorted.begin()));
      not_above.push_back(static_cast<double>(
          std::upper_bound(sorted.begin(), sorted.end(), value, is_less) - sorted.begin()));
    }
    EXPECT_EQ(left(s, v).dtype(), i32);
    EXPECT_EQ(values_of(left(s, v)), below) << size;
    EXPECT_EQ(values_of(right(s, v)), not_above) << size;
  }
}

TEST_P(PositionsTest, SearchesInEachEntryOfARaggedAxis) {
  const Dim query("query", 3);
  const auto f = run([&](const Tensor& s, const Tensor& v) { return search_sorted(s, v, time); });
  const Tensor y = f(numbered(), tensor({-1., 2., 8.5}, {query}, f64));
  EXPECT_EQ(y.dims(), (Dims{query, batch}));
  expect_values(transpose(y, {batch, query}), {0, 2, 4, 0, 0, 0, 0, 0, 1});
  expect_values(f(numbered(), tensor({1.5, 1.5, 9.5}, {batch}, f64)), {2, 0, 2});
}

TEST_P(PositionsTest, SearchesForRaggedValuesIgnorePadding) {
  const Dim line("line", 4);
  const auto f = run([&](const Tensor& v) {
    return search_sorted(tensor({0., 2., 4., 6.}, {line}, f64), v, line);
  });
  const Tensor y = f(numbered());
  EXPECT_EQ(y.dims(), (Dims{batch, time}));
  expect_values(mask_padding(y), {0, 1, 1, 2, 0, 0, 0, 0, 4, 4, 0, 0});
}

/// Entries, lengths and positions that differ need no second trace.
TEST_P(PositionsTest, EachEntryHasTheResultsThatItHasAlone) {
  const auto f = run([](const Tensor& x, const Tensor& counts, const Tensor& at, const Dim& time) {
    return std::tuple{repeat(x, counts, time), slice(x, time, at, -1),
                      search_sorted(x, cast(at, f64), time)};
  });
  const Tensor counts = tensor({2, 0, 1, 3, 9, 9, 9, 9, 0, 2, 9, 9}, {batch, time});
  const Tensor at = tensor({-3, 0, 1}, {batch});
  const auto [repeated, sliced, found] = f(numbered(), counts, at, time);
  for (int b = 0; b < 3; ++b) {
    const int size = std::array{4, 0, 2}[static_cast<std::size_t>(b)];
    const Dim one("batch", 1), own("time", tensor({size}, {one}));
    const auto alone = [&](const Tensor& x) {
      const Tensor row = reshape(slice(x, 0, b, b + 1), {1, -1});
      return reshape(slice(row, 1, 0, size), Dims{one, own});
    };
    const auto [r, s, i] =
        f(alone(numbered()), alone(counts), reshape(slice(at, batch, b, b + 1), Dims{one}), own);
    const auto valid = [](const Tensor& x, int row) {
      const auto length = static_cast<std::ptrdiff_t>(values_of(x.dims()[1].lengths())[row]);
      const std::vector<double> all = values_of(x);
      const auto begin = all.begin() + row * x.dims()[1].size();
      return std::vector<double>(begin, begin + length);
    };
    EXPECT_EQ(valid(repeated, b), valid(r, 0));
    EXPECT_EQ(valid(sliced, b), valid(s, 0));
    EXPECT_EQ(values_of(found)[static_cast<std::size_t>(b)], values_of(i)[0]);
  }
}

TEST_P(PositionsTest, PositionsMayComeFromALoop) {
  const Dim line("line", 5), window("window", 2);
  const auto f = run([&](const Tensor& x) {
    return scan(Scan{.spatial_dim = line,
                     .initial = scalar(0),
                     .xs = x,
                     .body =
                         [&](const Tensor& x_t, const Tensor& at) {
                           return std::pair{sum(slice(x, line, at, window)) * x_t, at + 1};
                         }})
        .ys;
  });
  const Tensor x = tensor({1., 2., 3., 4., 5.}, {line}, f64);
  expect_values(f(x), {3, 10, 21, 36, 25});
  const auto loss = [&](const Tensor& x) { return sum(square(f(x))); };
  expect_gradient_of(loss, x, grad(loss)(x));
}

TEST_P(PositionsTest, RowsOfVmapHaveTheirOwnPositions) {
  const Dim line("line", 4), window("window", 2), row("row", 3);
  const Tensor x = reshape(range(12, f64), Dims{row, line}), at = tensor({0, 1, -1}, {row});
  const auto f = run([&](const Tensor& x, const Tensor& at) {
    return vmap(
        [&](const Tensor& x, const Tensor& at) {
          return std::pair{slice(x, line, at, window),
                           search_sorted(x, sum(slice(x, line, at, window)), line)};
        },
        row)(x, at);
  });
  const auto [elements, found] = f(x, at);
  expect_values(elements, {0, 1, 5, 6, 11, 0});
  expect_values(found, {1, 4, 3});
}

TEST_P(PositionsTest, SearchesInPlainRows) {
  const auto f = run([](const Tensor& s, const Tensor& v) { return search_sorted(s, v, -1); });
  expect_values(f(tensor({{1, 3, 5}, {2, 4, 6}}), tensor({{3, 9}, {3, 1}})), {1, 3, 1, 0});
  expect_values(f(tensor({1, 3, 5}), tensor({{3, 9}, {0, 5}})), {1, 3, 0, 2});
}

TEST_P(PositionsTest, RepeatsElementsByCounts) {
  const Tensor counts = tensor({2, 0, 1, 3, 9, 9, 9, 9, 0, 2, 9, 9}, {batch, time});
  const auto f =
      run([&](const Tensor& x, const Tensor& counts) { return repeat(x, counts, time); });
  const Tensor y = f(numbered(), counts);
  EXPECT_TRUE(y.dims()[1].is_ragged());
  expect_values(y.dims()[1].lengths(), {6, 0, 2});
  expect_values(mask_padding(y), {0, 0, 2, 3, 3, 3, 0, 0, 0, 0, 0, 0, 9, 9, 0, 0, 0, 0});
  const Dim row("row", 3);
  expect_values(run([&](const Tensor& x, const Tensor& n) { return repeat(x, n, row); })(
                    tensor({5, 6, 7}, {row}), tensor({1, -4, 2}, {row})),
                {5, 7, 7});
  // One number for each entry.
  const Tensor z = f(numbered(), tensor({2, 5, 1}, {batch}));
  expect_values(mask_padding(z),
                {0, 0, 1, 1, 2, 2, 3, 3, 0, 0, 0, 0, 0, 0, 0, 0, 8, 9, 0, 0, 0, 0, 0, 0});
}

TEST_P(PositionsTest, SlicesOfEachEntryAtItsOwnPositions) {
  const Dim line("line", 5), feature("feature", 2);
  const Tensor x = reshape(range(30), Dims{batch, line, feature});
  const Tensor begin = tensor({1, -2, 4}, {batch}), end = tensor({3, 9, 2}, {batch});
  const auto f =
      run([&](const Tensor& x, const Tensor& b, const Tensor& e) { return slice(x, line, b, e); });
  const Tensor y = f(x, begin, end);
  expect_values(y.dims()[1].lengths(), {2, 2, 0});
  expect_values(mask_padding(y), {2, 3, 4, 5, 16, 17, 18, 19, 0, 0, 0, 0});
  expect_values(run([&](const Tensor& x, const Tensor& e) { return slice(x, line, 1, e); })(
                    tensor({5, 6, 7, 8, 9}, {line}), scalar(3)),
                {6, 7});
}

TEST_P(PositionsTest, SlicesOfARaggedAxisStayWithinTheirEntries) {
  const auto f = run([&](const Tensor& x, const Tensor& b) {
    return slice(x, time, b, std::numeric_limits<std::int32_t>::max());
  });
  const Tensor y = f(numbered(), tensor({1, 0, -1}, {batch}));
  expect_values(y.dims()[1].lengths(), {3, 0, 1});
  expect_values(mask_padding(y), {1, 2, 3, 0, 0, 0, 9, 0, 0});
}

TEST_P(PositionsTest, SlicesOfOneSizeHaveZerosBehindTheEnd) {
  const Dim window("window", 3);
  const auto f = run([&](const Tensor& x, const Tensor& b) { return slice(x, time, b, window); });
  expect_values(f(numbered(), tensor({2, 0, -1}, {batch})), {2, 3, 0, 0, 0, 0, 9, 0, 0});
  expect_values(f(numbered(), scalar(1)), {1, 2, 3, 0, 0, 0, 9, 0, 0});
}

TEST_P(PositionsTest, PositionsFarOutOfRangeAreClamped) {
  constexpr std::int64_t kFar = std::int64_t{1} << 32,
                         kLast = std::numeric_limits<std::int64_t>::max();
  const auto f =
      run([&](const Tensor& x, const Tensor& b, const Tensor& e) { return slice(x, time, b, e); });
  const Tensor begin = tensor({1, 0, -1}, {batch}, i64);
  for (const std::int64_t end : {kFar, kLast, kLast - 1}) {
    const Tensor y = f(numbered(), begin, scalar(end, i64));
    expect_values(y.dims()[1].lengths(), {3, 0, 1});
    expect_values(mask_padding(y), {1, 2, 3, 0, 0, 0, 9, 0, 0});
    expect_values(f(numbered(), scalar(-end, i64), scalar(1, i64)).dims()[1].lengths(), {1, 0, 1});
  }
  const auto g = run([&](const Tensor& x, const Tensor& b) { return slice(x, time, b, kLast); });
  expect_values(mask_padding(g(numbered(), begin)), {1, 2, 3, 0, 0, 0, 9, 0, 0});
  const auto none = run([&](const Tensor& x, const Tensor& n) { return repeat(x, n, time); });
  expect_values(none(numbered(), scalar(-kFar + 1, i64)).dims()[1].lengths(), {0, 0, 0});
}

TEST_P(PositionsTest, WindowsOfAnAxisWithoutElementsAreZeros) {
  const Dim none("none", 0), window("window", 2), feature("feature", 2);
  const auto f = run([&](const Tensor& x, const Tensor& b) { return slice(x, none, b, window); });
  const Tensor x = zeros({batch, none, feature}, f64);
  const Tensor y = f(x, tensor({0, -1, 5}, {batch}));
  EXPECT_EQ(y.type(), TensorType(f64, {batch, window, feature}));
  expect_values(y, std::vector<double>(12, 0.));
  EXPECT_EQ(
      run(grad([&](const Tensor& x) { return sum(slice(x, none, scalar(1), window)); }))(x).type(),
      x.type());
}

TEST_P(PositionsTest, PadsWithTheValuesOfATensor) {
  const auto f =
      run([&](const Tensor& x, const Tensor& value) { return pad(x, time, 1, 2, value); });
  const Tensor y = f(numbered(), tensor({-1., -2., -3.}, {batch}, f64));
  EXPECT_EQ(y.dims(), (Dims{batch, y.dims()[1]}));
  expect_values(y.dims()[1].lengths(), {7, 3, 5});
  expect_values(mask_padding(y),
                {-1, 0, 1, 2, 3, -1, -1, -2, -2, -2, 0, 0, 0, 0, -3, 8, 9, -3, -3, 0, 0});
  expect_values(mask_padding(f(numbered(), scalar(5., f64))),
                {5, 0, 1, 2, 3, 5, 5, 5, 5, 5, 0, 0, 0, 0, 5, 8, 9, 5, 5, 0, 0});
  const auto plain =
      run([](const Tensor& x, const Tensor& value) { return pad(x, 1, 1, 0, value); });
  expect_values(plain(tensor({{1, 2}, {3, 4}}), tensor({{7}, {8}})), {7, 1, 2, 8, 3, 4});
  expect_values(plain(tensor({{1, 2}, {3, 4}}), scalar(9)), {9, 1, 2, 9, 3, 4});
  const auto loss = [&](const Tensor& value) {
    return sum(square(square(pad(numbered(), time, 1, 2, value))));
  };
  const Tensor value = tensor({0.5, -1., 2.}, {batch}, f64);
  expect_gradient_of(loss, value, run(grad(loss))(value));
  EXPECT_EQ(message_of<DTypeError>([&] { pad(numbered(), time, 1, 0, scalar(1)); }),
            "pad: dtypes differ: x f64[batch=3,time[batch=3]], value i32[]");
}

TEST_P(PositionsTest, GradientsReachTheElementsThatAreRead) {
  const Dim window("window", 2), line("line", 4);
  const Tensor x = tensor({0.5, -1., 2., 0.3}, {line}, f64);
  const Tensor counts = tensor({2, 0, 1, 3}, {line}), at = scalar(1);
  const auto of_repeat = [&](const Tensor& x) {
    return sum(square(square(repeat(x, counts, line))));
  };
  const auto of_slice = [&](const Tensor& x) {
    return sum(square(square(slice(x, line, at, -1)))) + sum(exp(slice(x, line, at, window)));
  };
  expect_gradient_of(of_repeat, x, run(grad(of_repeat))(x));
  expect_gradient_of(of_slice, x, run(grad(of_slice))(x));
  const auto second = [&](const auto& f) {
    return [=](const Tensor& x) { return sum(grad(f)(x)); };
  };
  expect_gradient_of(second(of_repeat), x, run(grad(second(of_repeat)))(x));
  expect_gradient_of(second(of_slice), x, run(grad(second(of_slice)))(x));
}

TEST(PositionsErrorsTest, NameTheFunction) {
  const Dim line("line", 4);
  EXPECT_EQ(message_of<ArgumentError>([] {
              repeat(ones({3}), tensor({1, 2, 3}), 0);
            }),
            "repeat: axis 0 of f32[3] has a plain size, which cannot depend on values; name the "
            "axes");
  EXPECT_EQ(message_of<ArgumentError>([] { slice(ones({3}), 0, scalar(1), scalar(2)); }),
            "slice: axis 0 of f32[3] has a plain size, which cannot depend on values; name the "
            "axes");
  EXPECT_EQ(message_of<DTypeError>([&] { repeat(ones({line}), ones({line}), line); }),
            "repeat: counts are integers, got f32[line=4]");
  EXPECT_EQ(message_of<DTypeError>([&] { search_sorted(ones({line}), scalar(1), line); }),
            "search_sorted: dtypes differ, or are boolean: f32[line=4] and i32[]; cast them to one "
            "dtype of numbers");
  EXPECT_EQ(message_of<ShapeError>([&] { search_sorted(ones({line}), ones({line}), line); }),
            "search_sorted: values f32[line=4] have the dim line=4 of sorted elements; rename it");
}

}  // namespace
}  // namespace reel
