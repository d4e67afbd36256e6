// Tests of loops that move their state into a body which takes it by value: set_at then writes in
// place in eager mode, unless something else reads the state.
#include <utility>
#include <vector>

#include "reel/reel.h"
#include "reel/tests/check.h"

namespace reel {
namespace {

class OwnedStateTest : public ::testing::Test {
 protected:
  OwnedStateTest() { manual_seed(3); }

  /// Writes a row of each entry, and notes where the result lies.
  Tensor write(Tensor h, const Tensor& i, const Tensor& x) {
    Tensor next = set_at(std::move(h), range(batch_) * 2 + i, x, positions_);
    if (!next.is_traced()) addresses_.push_back(next.data<float>());
    return next;
  }
  /// Returns how often a result lay elsewhere than the one before.
  std::size_t count_moves() {
    std::size_t moves = 0;
    for (std::size_t i = 1; i < addresses_.size(); ++i) moves += addresses_[i] != addresses_[i - 1];
    addresses_.clear();
    return moves;
  }
  Tensor scanned(const Tensor& table, const Tensor& xs) {
    return scan(Scan{.spatial_dim = time_,
                     .initial = table,
                     .xs = xs,
                     .body =
                         [&](const Tensor& i, const Tensor& x, Tensor h) {
                           return std::pair{None{}, write(std::move(h), i, tanh(x))};
                         }})
        .state;
  }
  /// As scanned(), with a body that does not own its state.
  Tensor copied(const Tensor& table, const Tensor& xs) {
    return scan(Scan{.spatial_dim = time_,
                     .initial = table,
                     .xs = xs,
                     .body =
                         [&](const Tensor& i, const Tensor& x, const Tensor& h) {
                           return std::pair{None{}, write(h, i, tanh(x))};
                         }})
        .state;
  }

  Dim batch_{"batch", 2}, positions_{"positions", 6}, width_{"width", 3}, time_{"time", 4};
  Tensor table_ = random_normal({batch_, positions_, width_});
  Tensor xs_ = random_normal({time_, batch_, width_});
  std::vector<const void*> addresses_;
};

TEST_F(OwnedStateTest, ScanWritesInPlaceFromTheSecondIterationOn) {
  const std::vector<float> before = table_.to_vector<float>();
  const Tensor expected = copied(table_, xs_);
  EXPECT_EQ(count_moves(), 3u);
  expect_same_bits(scanned(table_, xs_), expected);
  EXPECT_EQ(count_moves(), 0u);
  EXPECT_EQ(table_.to_vector<float>(), before);
  expect_same_bits(
      jit([&](const Tensor& h, const Tensor& xs) { return scanned(h, xs); })(table_, xs_),
      expected);
}

TEST_F(OwnedStateTest, WhileLoopAndForiLoopAndFoldlWriteInPlace) {
  const Tensor expected = copied(table_, xs_);
  count_moves();
  const auto [i, last] =
      while_loop([](const Tensor& i, const Tensor&) { return i < 4; },
                 [&](const Tensor& i, Tensor h) {
                   return std::pair{i + 1, write(std::move(h), i, tanh(gather(xs_, i, time_)))};
                 },
                 std::pair{0, table_});
  expect_same_bits(last, expected);
  EXPECT_EQ(count_moves(), 0u);
  const Tensor after = fori_loop(
      0, 4,
      [&](const Tensor& i, Tensor h) {
        return write(std::move(h), i, tanh(gather(xs_, i, time_)));
      },
      table_);
  expect_same_bits(after, expected);
  EXPECT_EQ(count_moves(), 0u);
  const Tensor folded =
      foldl([&](Tensor h, const Tensor& x) { return write(std::move(h), scalar(1), x); }, xs_,
            table_, {.spatial_dim = time_});
  EXPECT_EQ(count_moves(), 0u);
  expect_same_bits(gather(folded, scalar(1), positions_).at(batch_, 0),
                   xs_.at(time_, 3).at(batch_, 0));
}

TEST_F(OwnedStateTest, BodiesMayBeMutable) {
  const Tensor after = fori_loop(
      0, 4, [n = 0](const Tensor&, const Tensor& h) mutable { return h + ++n; }, scalar(0));
  EXPECT_EQ(after.item<std::int32_t>(), 10);
  const Tensor last = while_loop([](const Tensor& h) { return h < 6; },
                                 [n = 0](Tensor h) mutable { return h + ++n; }, scalar(0));
  EXPECT_EQ(last.item<std::int32_t>(), 6);
  const Tensor folded =
      foldl([n = 0](Tensor h, const Tensor&) mutable { return h + ++n; }, ones({4}), scalar(0));
  EXPECT_EQ(folded.item<std::int32_t>(), 10);
}

TEST_F(OwnedStateTest, BodyThatIsNotConstIsCalledAsSuch) {
  struct Body {
    Tensor operator()(const Tensor&, const Tensor& h) { return h + 1; }
    Tensor operator()(const Tensor&, const Tensor& h) const { return h - 1; }
  };
  EXPECT_EQ(fori_loop(0, 4, Body(), scalar(0)).item<std::int32_t>(), 4);
}

TEST_F(OwnedStateTest, StatesThatAreResultsTooKeepTheirValues) {
  const auto [ys, last, dim] = scan(Scan{.spatial_dim = time_,
                                         .initial = table_,
                                         .xs = xs_,
                                         .body = [&](const Tensor& i, const Tensor& x, Tensor h) {
                                           const Tensor next = write(std::move(h), i, x);
                                           return std::pair{next, next};
                                         }});
  EXPECT_EQ(count_moves(), 3u);
  Tensor h = table_;
  for (int i = 0; i < 4; ++i) {
    h = set_at(h, range(batch_) * 2 + i, xs_.at(time_, i), positions_);
    expect_same_bits(ys.at(time_, i), h);
  }
}

TEST_F(OwnedStateTest, GradientsAreThoseOfCopiedStates) {
  const auto gradients = [&](auto&& loop) {
    const auto loss = [=](const std::pair<Tensor, Tensor>& in) {
      return sum(square(loop(in.first, in.second)));
    };
    const auto slope = [=](const std::pair<Tensor, Tensor>& in) {
      const auto [of_table, of_xs] = grad(loss)(in);
      return sum(sin(of_table)) + sum(square(of_xs));
    };
    const std::pair in{table_, xs_};
    const auto [a, b] = grad(loss)(in);
    const auto [c, d] = grad(slope)(in);
    const auto [e, f] = jit(grad(slope))(in);
    return Tensors{a, b, c, d, e, f};
  };
  const Tensors expected =
      gradients([&](const Tensor& h, const Tensor& xs) { return copied(h, xs); });
  const Tensors actual =
      gradients([&](const Tensor& h, const Tensor& xs) { return scanned(h, xs); });
  for (std::size_t i = 0; i < expected.size(); ++i) expect_all_close(actual[i], expected[i], 1e-6);
}

TEST_F(OwnedStateTest, FinishedEntriesKeepTheirStates) {
  const Dim time("time", tensor({1, 3}, {batch_}, i32));
  const Tensor xs = random_normal({batch_, time, width_});
  const auto run = [&](auto&& body) {
    return scan(Scan{.spatial_dim = time, .initial = table_, .xs = xs, .body = body}).state;
  };
  const Tensor owned = run([&](const Tensor& i, const Tensor& x, Tensor h) {
    return std::pair{None{}, write(std::move(h), i, x)};
  });
  const Tensor expected = run([&](const Tensor& i, const Tensor& x, const Tensor& h) {
    return std::pair{None{}, write(h, i, x)};
  });
  expect_same_bits(owned, expected);
  // Entry 0 has one element: only its first place changes.
  const Dim rest("rest", 5);
  expect_same_bits(slice(owned.at(batch_, 0), positions_, 1, {}, rest),
                   slice(table_.at(batch_, 0), positions_, 1, {}, rest));
}

TEST_F(OwnedStateTest, ArraysOfStatesAreTakenToo) {
  const auto [i, arrays] =
      while_loop([](const auto& s) { return s.first < 3; },
                 [&](std::pair<Tensor, TensorArray> s) {
                   s.second = s.second.push_back(cast(s.first, f32));
                   return std::pair{s.first + 1, s.second};
                 },
                 std::pair{Tensor(scalar(0)), TensorArray(TensorType(f32, {}))});
  expect_values(arrays.stack(), {0, 1, 2});
}

/// An attention cell that notes where its keys lie.
struct NotingCell {
  using State = MultiHeadAttention::State;

  MultiHeadAttention cell;
  std::vector<const void*>* addresses;

  const Dim& in_dim() const { return cell.in_dim(); }
  const Dim& out_dim() const { return cell.out_dim(); }
  State initial_state(const Dims& dims) const { return cell.initial_state(dims); }
  std::pair<Tensor, State> operator()(const Tensor& x, State state) const {
    auto result = cell(x, std::move(state));
    addresses->push_back(result.second.keys.data<float>());
    return result;
  }
};

TEST_F(OwnedStateTest, CellsOwnTheirCachesInRecur) {
  const Dim model("model", 4);
  const auto attention = MultiHeadAttention::init(model, 2, {.is_causal = true});
  const Tensor xs = random_normal({batch_, time_, model});
  const auto [ys, state] = recur(NotingCell{attention, &addresses_}, xs, time_,
                                 {.initial = attention.initial_state({batch_}, positions_)});
  EXPECT_EQ(addresses_.size(), 4u);
  EXPECT_EQ(count_moves(), 0u);
  const auto whole = attention(xs, time_);
  expect_all_close(transpose(ys, Axes(whole.dims())), whole, 1e-5);
}

TEST_F(OwnedStateTest, StacksOfCellsMoveTheStatesIntoTheirCells) {
  const Dim model("model", 4);
  const auto attention = MultiHeadAttention::init(model, 2, {.is_causal = true});
  const Tensor xs = random_normal({batch_, time_, model});
  const auto initial = attention.initial_state({batch_}, positions_);
  std::vector<const void*> others;
  const NotingCell first{attention, &addresses_}, second{attention, &others};
  recur(stack_cells(with_dropout(first, 0.), second), xs, time_,
        {.initial = std::tuple{initial, initial}});
  EXPECT_EQ(addresses_.size(), 4u);
  EXPECT_EQ(count_moves(), 0u);
  std::swap(addresses_, others);
  EXPECT_EQ(count_moves(), 0u);
  recur(stack_cells(std::vector{first, second}), xs, time_,
        {.initial = std::vector{initial, initial}});
  EXPECT_EQ(count_moves(), 0u);
  std::swap(addresses_, others);
  EXPECT_EQ(count_moves(), 0u);
}

}  // namespace
}  // namespace reel
