// Rows of moved-in arguments that a jitted function replaces in place, although later ops may fail.
#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "reel/tests/modes.h"

namespace reel {
namespace {

const void* place_of(const Tensor& x) { return x.data<void>(); }

/// Returns a table of 8 rows of 64 numbers: row i has the number i.
Tensor rows_of_numbers() {
  return transpose(cast(expand(range(8), {Dim(64), Dim(8)}), f32), {1, 0}) * 1.0;
}
Tensor row(double value) { return full({64}, value, f32); }

std::vector<double> numbers_of(const Tensor& x) { return cast(x, f64).to_vector<double>(); }

/// Calls a function in all modes that jit has.
class ChangedRowsTest : public testing::TestWithParam<RunMode> {
 protected:
  template <class F>
  auto jitted(const F& f) const {
    return jit(f, options_of(GetParam()));
  }
  bool is_plan() const { return GetParam() == RunMode::plan || GetParam() == RunMode::chunks; }
};
INSTANTIATE_TEST_SUITE_P(InEveryMode, ChangedRowsTest,
                         testing::Values(RunMode::interpreter, RunMode::plan, RunMode::chunks,
                                         RunMode::dataflow10, RunMode::dataflow_threads),
                         name_of_mode);

/// Replaces a row, and then reads an element that may not exist.
std::pair<Tensor, Tensor> replaced_then_read(Tensor x, const Tensor& at, const Tensor& index) {
  const Tensor y = set_at(std::move(x), at, row(-1), 0);
  return {y, gather(sum(y, 1), index, 0)};
}

TEST_P(ChangedRowsTest, RowsAreWrittenInPlaceBeforeAnOpThatMayFail) {
  const auto f = jitted(replaced_then_read);
  Tensor x = rows_of_numbers();
  const void* const place = place_of(x);
  for (int call = 0; call < 3; ++call) {
    Tensor total;
    std::tie(x, total) = f(std::move(x), scalar(call), scalar(7 - call));
    EXPECT_EQ(total.item<float>(), 64 * (7 - call));
    EXPECT_TRUE(!is_plan() || place_of(x) == place) << call;
  }
  expect_values(sum(x, 1), {-64, -64, -64, 192, 256, 320, 384, 448});
}

TEST_P(ChangedRowsTest, RowsAreAsBeforeIfALaterOpFails) {
  const auto f = jitted(replaced_then_read);
  Tensor x = rows_of_numbers();
  const void* const place = place_of(x);
  for (int call = 0; call < 3; ++call) {
    EXPECT_THROW(f(std::move(x), scalar(call), scalar(9)), IndexError);
    EXPECT_EQ(place_of(x), place) << call;
    expect_values(x, numbers_of(rows_of_numbers()));
    EXPECT_THROW(f(std::move(x), scalar(99), scalar(0)), IndexError);  // before the row is written
    expect_values(x, numbers_of(rows_of_numbers()));
  }
  const auto [y, total] = f(std::move(x), scalar(2), scalar(2));
  expect_values(total, {-64});
  expect_values(sum(y, 1), {0, 64, -64, 192, 256, 320, 384, 448});
}

TEST_P(ChangedRowsTest, RowsOfEqualNumbersAreAsBeforeIfALaterOpFails) {
  const auto f = jitted([](Tensor x, const Tensor& at, const Tensor& index) {
    const Tensor y = set_at(std::move(x), at, stack({row(10), row(11), row(12)}, 0), 0);
    return std::pair{y, gather(sum(y, 1), index, 0)};
  });
  Tensor x = rows_of_numbers();
  const Tensor at = tensor({5, 1, 5}, {3}, i32);
  EXPECT_THROW(f(std::move(x), at, scalar(9)), IndexError);
  expect_values(x, numbers_of(rows_of_numbers()));
  expect_values(sum(f(std::move(x), at, scalar(0)).first, 1),
                {0, 64 * 11, 128, 192, 256, 64 * 12, 384, 448});
}

TEST_P(ChangedRowsTest, AHeldTableStays) {
  const auto f = jitted(replaced_then_read);
  Tensor x = rows_of_numbers();
  const Tensor held = x, view = reshape(held, {512});
  expect_values(sum(f(std::move(x), scalar(1), scalar(1)).first, 1),
                {0, -64, 128, 192, 256, 320, 384, 448});
  expect_values(held, numbers_of(rows_of_numbers()));
  expect_values(view, numbers_of(rows_of_numbers()));
}

TEST_P(ChangedRowsTest, ATableThatIsReadLaterStaysUntilThen) {
  const auto f = jitted([](const Tensor& x, const Tensor& index) {
    const Tensor y = set_at(x, 3, row(-1), 0);
    return std::tuple{y, sum(x), gather(sum(y, 1), index, 0)};
  });
  const auto [y, before, total] = f(rows_of_numbers(), scalar(3));
  expect_values(before, {64 * 28});
  expect_values(total, {-64});
}

TEST_P(ChangedRowsTest, TheNextOpsChangeRowsOnceMore) {
  const auto f = jitted([](Tensor x, const Tensor& index) {
    Tensor y = set_at(std::move(x), 3, row(-1), 0);
    y = set_at(std::move(y), index, row(2), 0);  // may fail
    y = y * gather(sum(y, 1), index, 0);
    return set_slice(std::move(y), 6, stack({row(5), row(6)}, 0), 0);
  });
  Tensor x = rows_of_numbers();
  EXPECT_THROW(f(std::move(x), scalar(9)), IndexError);
  expect_values(x, numbers_of(rows_of_numbers()));
  expect_values(slice(f(std::move(x), scalar(4)), 1, 0, 1), {0, 128, 256, -128, 256, 640, 5, 6});
}

TEST_P(ChangedRowsTest, SeveralTablesAreWrittenBeforeLoops) {
  const auto f = jitted([](std::vector<Tensor> tables, const Tensor& at, const Tensor& index) {
    Tensor total = scalar(0.0, f32);
    for (Tensor& x : tables) {
      x = set_at(std::move(x), at, row(-1), 0);
      total = fori_loop(
          0, at + 1, [&](const Tensor& i, const Tensor& t) { return t + gather(sum(x, 1), i, 0); },
          total);
    }
    return std::pair{tables, gather(reshape(total, {1}), index, 0)};
  });
  std::vector<Tensor> tables{rows_of_numbers(), rows_of_numbers()};
  const std::vector<const void*> places{place_of(tables[0]), place_of(tables[1])};
  EXPECT_THROW(f(std::move(tables), scalar(2), scalar(1)), IndexError);
  ASSERT_EQ(tables.size(), 2u);
  for (const Tensor& x : tables) expect_values(x, numbers_of(rows_of_numbers()));
  const auto [next, total] = f(std::move(tables), scalar(2), scalar(0));
  expect_values(total, {0});
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(!is_plan() || place_of(next[i]) == places[i]) << i;
    expect_values(sum(next[i], 1), {0, 64, -64, 192, 256, 320, 384, 448});
  }
}

TEST_P(ChangedRowsTest, MoreThanHalfTheTableIsCopied) {
  const auto f = jitted([](Tensor x, const Tensor& index) {
    const Tensor y = set_slice(std::move(x), 1, full({7, 64}, 3, f32), 0);
    return std::pair{y, gather(sum(y, 1), index, 0)};
  });
  Tensor x = rows_of_numbers();
  EXPECT_THROW(f(std::move(x), scalar(9)), IndexError);
  expect_values(x, numbers_of(rows_of_numbers()));
  expect_values(sum(f(std::move(x), scalar(1)).first, 1), {0, 192, 192, 192, 192, 192, 192, 192});
}

TEST_P(ChangedRowsTest, RowsAlongAnInnerAxisAreWrittenInPlace) {
  const Dim batch("batch", 2), place("place", 8), feature("feature", 64);
  const auto f = jitted([&](Tensor x, const Tensor& at, const Tensor& value, const Tensor& index) {
    const Tensor y = set_at(std::move(x), at, value, place);
    return std::pair{y, gather(sum(y, {batch, feature}), index, place)};
  });
  const Tensor start = expand(cast(range(place), f32), {batch, place, feature}) * 1.0;
  const Tensor value = expand(tensor({10.f, 20.f}, {batch}), {batch, feature}) * 1.0;
  Tensor x = start * 1.0;
  const void* const address = place_of(x);
  EXPECT_THROW(f(std::move(x), scalar(3), value, scalar(8)), IndexError);
  expect_values(x, numbers_of(start));
  const auto [y, total] = f(std::move(x), scalar(3), value, scalar(3));
  EXPECT_TRUE(!is_plan() || place_of(y) == address);
  expect_values(total, {64 * 30});
  expect_values(sum(y, feature) / 64.0, {0, 1, 2, 10, 4, 5, 6, 7, 0, 1, 2, 20, 4, 5, 6, 7});
}

TEST(EagerRowsTest, RowsAlongAnInnerAxisAreWrittenInPlace) {
  Tensor x = zeros({2, 3, 2});
  const void* const address = place_of(x);
  x = set_at(std::move(x), tensor({2, 0, 2}, {3}, i32), reshape(cast(range(12), f32), {2, 3, 2}),
             1);
  EXPECT_EQ(place_of(x), address);
  expect_values(x, {2, 3, 0, 0, 4, 5, 8, 9, 0, 0, 10, 11});
}

}  // namespace
}  // namespace reel
