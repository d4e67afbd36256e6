// Arguments that are moved into a traced function: results reuse their memory if no other reference
// holds it.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <optional>
#include <stop_token>

#include "reel/tests/modes.h"

namespace reel {
namespace {

/// Calls a function in a mode and forwards its arguments, which InMode would copy.
template <class F, class... Args>
auto call(RunMode mode, const F& f, Args&&... args) {
  if (mode == RunMode::eager) return f(std::forward<Args>(args)...);
  return jit(f, options_of(mode))(std::forward<Args>(args)...);
}

const void* place_of(const Tensor& x) { return x.data<void>(); }

Tensor numbers(std::int64_t count) { return cast(range(count), f32); }

/// Applies a function of numbers to 0, 1, 2, ...
template <class F>
std::vector<double> mapped(std::int64_t count, F f) {
  std::vector<double> result;
  for (std::int64_t i = 0; i < count; ++i) result.push_back(f(static_cast<double>(i)));
  return result;
}

/// x: [n, 500]. The result shares x's storage.
Tensor first_row(const Tensor& x) { return reshape(slice(x, 0, 0, 1), {500}); }

struct Model {
  Tensor weight;
  std::vector<Tensor> biases;
};

using JitInPlaceTest = InEveryMode;
REEL_IN_EVERY_MODE(JitInPlaceTest);

// ---- Values, in every mode ----------------------------------------------------------------------

TEST_P(JitInPlaceTest, HeldArgumentStaysUnchanged) {
  Tensor x = numbers(1000);
  const Tensor held = x;
  const Tensor y = call(
      GetParam(), [](const Tensor& x) { return x * 2.0 + 1.0; }, std::move(x));
  expect_values(held, mapped(1000, [](double v) { return v; }));
  expect_values(y, mapped(1000, [](double v) { return 2 * v + 1; }));
}

TEST_P(JitInPlaceTest, AViewOfAnArgumentStaysAsItWas) {
  Tensor x = numbers(1000);
  const Tensor view = reshape(x, {10, 100});
  const Tensor y = call(
      GetParam(), [](const Tensor& x) { return x * 2.0 + 1.0; }, std::move(x));
  expect_values(view, mapped(1000, [](double v) { return v; }));
  expect_values(y, mapped(1000, [](double v) { return 2 * v + 1; }));
}

TEST_P(JitInPlaceTest, AnArgumentThatIsAResultTooStaysAsItWas) {
  const auto [y, same, view] = call(
      GetParam(),
      [](const Tensor& x) {
        return std::tuple{x * 2.0 + 1.0, x, reshape(x, {10, 100})};
      },
      numbers(1000));
  expect_values(y, mapped(1000, [](double v) { return 2 * v + 1; }));
  expect_values(same, mapped(1000, [](double v) { return v; }));
  expect_values(view, mapped(1000, [](double v) { return v; }));
}

TEST_P(JitInPlaceTest, AnArgumentThatIsReadLaterStaysUntilThen) {
  const auto [y, total] = call(
      GetParam(),
      [](const Tensor& x) {
        const Tensor y = x * 2.0 + 1.0;
        return std::tuple{y, sum(x * y)};
      },
      numbers(10));
  expect_values(y, mapped(10, [](double v) { return 2 * v + 1; }));
  expect_values(total, {615});
}

TEST_P(JitInPlaceTest, AViewThatAnOpReadsBesideTheArgumentSeesTheArgument) {
  const Tensor y = call(
      GetParam(), [](const Tensor& x) { return (x + first_row(x)) * 2.0; },
      reshape(numbers(2000) + 1.0, {4, 500}) * 1.0);
  const auto row = [](double v) { return std::fmod(v, 500) + 1; };
  expect_values(y, mapped(2000, [&](double v) { return 2 * (v + 1 + row(v)); }));
}

TEST_P(JitInPlaceTest, GatesThatChangePlacesAreReadBeforeTheyAreWritten) {
  const Dim batch("batch", 3), part("part", 200), whole("whole", 400);
  const Tensor x = reshape(numbers(1200), {batch, whole}) * 1.0;
  const Tensor y = call(
      GetParam(),
      [&](const Tensor& x) {
        auto [a, b] = split<2>(x, whole, part);
        return concat({b * 2.0, a * 3.0}, part, whole);
      },
      x * 1.0);
  std::vector<double> expected;
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 400; ++j)
      expected.push_back(j < 200 ? 2 * (400 * i + j + 200) : 3 * (400 * i + j - 200));
  expect_values(y, expected);
}

TEST_P(JitInPlaceTest, UnderATapeTheArgumentStaysAsItWas) {
  Tensor x = numbers(100);
  const auto [value, slope] = [&] {
    Tape tape;
    tape.watch(x);
    const Tensor watched = x;
    const Tensor y = call(
        GetParam(), [](const Tensor& x) { return sum(square(x * 2.0)); }, std::move(x));
    return std::pair{y, tape.gradient(y, watched)};
  }();
  expect_values(slope, mapped(100, [](double v) { return 8 * v; }));
}

TEST_P(JitInPlaceTest, AFailingCallNamesItsPlaceAndLeavesHeldValues) {
  Tensor x = numbers(4), index = tensor({0, 1, 9}, {3}, i32);
  const Tensor held = x;
  const auto f = [](const Tensor& x, const Tensor& index) {
    const Tensor y = x * 2.0 + 1.0;
    const Tensor total = std::get<1>(
        while_loop([](Tensor i, Tensor) { return i < 3; },
                   [&](Tensor i, Tensor total) {
                     return std::tuple{i + 1, total + gather(y, gather(index, i, 0), 0)};
                   },
                   std::tuple{0, scalar(0.0, f32)}));
    return std::tuple{y, total};
  };
  const std::string eager =
      message_of<IndexError>([&] { call(RunMode::eager, f, Tensor(x), Tensor(index)); });
  EXPECT_EQ(message_of<IndexError>([&] { call(GetParam(), f, std::move(x), std::move(index)); }),
            eager);
  expect_values(held, {0, 1, 2, 3});
}

TEST_P(JitInPlaceTest, AnArgumentIsUpdatedBehindADimOfALengthThatOnlyTheRunKnows) {
  const auto f = [](const Tensor& x, const Tensor& length) {
    const Dim keys("keys", length);
    return x * sum(cast(range(keys), f32));
  };
  Tensor x = numbers(100);
  const void* const place = place_of(x);
  const Tensor y = call(GetParam(), f, std::move(x), scalar(4));
  EXPECT_TRUE(GetParam() != RunMode::plan || place_of(y) == place);
  expect_values(y, mapped(100, [](double v) { return 6 * v; }));
}

// ---- Calls that fail, by all executors ----------------------------------------------------------

/// Jits functions in each mode that jit has.
class FailedCallTest : public testing::TestWithParam<RunMode> {
 protected:
  template <class F>
  auto jitted(const F& f) const {
    return jit(f, options_of(GetParam()));
  }
};
INSTANTIATE_TEST_SUITE_P(InEveryMode, FailedCallTest,
                         testing::Values(RunMode::interpreter, RunMode::plan, RunMode::chunks,
                                         RunMode::dataflow10, RunMode::dataflow_threads),
                         name_of_mode);

struct Everything {
  Tensor weight;
  std::vector<Tensor> list;
  std::map<std::string, Tensor> named;
  std::optional<Tensor> maybe;
  TensorArray array;
  std::pair<Tensor, int> pair;
  Dim dim{3};

  /// Returns all values, and the size of each part.
  std::vector<float> values() const {
    std::vector<float> result{float(list.size()), float(named.size()), float(pair.second)};
    const auto add = [&](const Tensor& x) {
      for (const float v : x.to_vector<float>()) result.push_back(v);
    };
    for (const Tensor& x : tensors_of(flatten(*this)))
      if (!x.type().is_list()) add(x);
    add(array.stack());
    return result;
  }
  static Everything some() {
    return {numbers(6),
            {numbers(2), numbers(3)},
            {{"a", numbers(4)}, {"b", numbers(1)}},
            numbers(2),
            TensorArray(numbers(3).type()).push_back(numbers(3)),
            {numbers(5), 7},
            Dim("own", 3)};
  }
};
/// Updates all members, after an op that fails for some labels.
Everything updated(Everything all, const Tensor& label) {
  all.weight = all.weight * 2.0 + gather(all.weight, label, 0);
  for (Tensor& x : all.list) x = x + 1.0;
  for (auto& [name, x] : all.named) x = x * 3.0;
  all.maybe = *all.maybe - 1.0;
  all.pair.first = tanh(all.pair.first);
  return all;
}

TEST_P(FailedCallTest, MovedArgumentsAreGivenBack) {
  const auto step = jitted(updated);
  Everything all = Everything::some();
  const std::vector<float> before = all.values();
  for (int call = 0; call < 2; ++call) {
    EXPECT_THROW(step(std::move(all), scalar(9)), IndexError);
    EXPECT_EQ(all.values(), before) << call;
  }
  const std::vector<float> expected = updated(all, scalar(1)).values();
  all = step(std::move(all), scalar(1));
  EXPECT_EQ(all.values(), expected);
  EXPECT_THROW(step(std::move(all), scalar(9)), IndexError);
  EXPECT_EQ(all.values(), expected);
}

TEST_P(FailedCallTest, MovedArgumentsAreGivenBackBesideOthers) {
  const auto f = jitted([](const Tensor& a, Tensor b, std::vector<Tensor> c, const Tensor& at) {
    return std::tuple{a + 1.0, b * 2.0, c[0] * gather(b, at, 0)};
  });
  Tensor a = numbers(3), b = numbers(4);
  std::vector<Tensor> c{numbers(2)};
  EXPECT_THROW(f(a, std::move(b), std::move(c), scalar(4)), IndexError);
  expect_values(a, {0, 1, 2});
  expect_values(b, {0, 1, 2, 3});
  ASSERT_EQ(c.size(), 1u);
  expect_values(c[0], {0, 1});
}

TEST_P(FailedCallTest, OneObjectMayBeMovedInTwice) {
  const auto f = jitted([](const Tensor& a, const Tensor& b, const Tensor& at) {
    return std::pair{a + b, gather(b, at, 0)};
  });
  Tensor x = numbers(3);
  EXPECT_THROW(f(std::move(x), std::move(x), scalar(9)), IndexError);
  expect_values(x, {0, 1, 2});
  expect_values(f(std::move(x), std::move(x), scalar(1)).first, {0, 2, 4});
}

TEST_P(FailedCallTest, AWholeAndAPartOfItMayBothBeMovedIn) {
  const auto whole_first =
      jitted([](const std::vector<Tensor>& v, const Tensor& part, const Tensor& at) {
        return std::pair{v[0] + v[1] + part, gather(part, at, 0)};
      });
  const auto part_first =
      jitted([](const Tensor& part, const std::vector<Tensor>& v, const Tensor& at) {
        return std::pair{v[0] + v[1] + part, gather(part, at, 0)};
      });
  std::vector<Tensor> v{ones({3}), numbers(3)};
  const auto expect_whole = [&] {
    expect_values(v[0], {1, 1, 1});
    expect_values(v[1], {0, 1, 2});
  };
  EXPECT_THROW(whole_first(std::move(v), std::move(v[1]), scalar(9)), IndexError);
  expect_whole();
  EXPECT_THROW(part_first(std::move(v[1]), std::move(v), scalar(9)), IndexError);
  expect_whole();
  std::vector<Tensor> other = v;
  expect_values(whole_first(std::move(v), std::move(v[1]), scalar(1)).first, {1, 3, 5});
  expect_values(part_first(std::move(other[1]), std::move(other), scalar(1)).first, {1, 3, 5});
}

/// An argument with an empty tensor behind a moved-in one looks as if it overlapped the other.
TEST_P(FailedCallTest, EmptyTensorsMayBeMovedIn) {
  const auto f =
      jitted([](const std::vector<Tensor>& v, const std::vector<Tensor>& w, const Tensor& at) {
        return std::pair{v[0] + w[1], gather(w[1], at, 0)};
      });
  std::vector<Tensor> v{numbers(3), Tensor()}, w{Tensor(), ones({3})};
  const Tensor held = v[0];
  EXPECT_THROW(f(std::move(v), std::move(w), scalar(9)), IndexError);
  EXPECT_FALSE(v[1].is_defined() || w[0].is_defined());
  expect_values(w[1], {1, 1, 1});
  expect_values(f(std::move(v), std::move(w), scalar(1)).first, {1, 2, 3});
  expect_values(held, {0, 1, 2});
}

TEST_P(FailedCallTest, SparseTensorsOfOtherNumbersOfElementsMayBeMovedIn) {
  const auto f = jitted([](const Tensor& x, const std::pair<Tensor, SparseTensor>& of) {
    return x * of.first + sum(of.second.values);
  });
  for (int count = 1; count <= 3; ++count) {
    Tensor x = scalar(2.);
    std::pair of(scalar(3.),
                 SparseTensor{zeros({count, 1}, i64), ones({count}), tensor({4}, {}, i64)});
    expect_values(f(std::move(x), std::move(of)), {6. + count});
  }
  EXPECT_EQ(f.trace_count(), 1);
}

TEST_P(FailedCallTest, MovedArgumentsAreGivenBackIfRecordingFails) {
  const auto f = jitted([](Tensor x) -> Tensor {
    if (x.rank() == 1) throw std::runtime_error("mine");
    return x + ones({7, 7});
  });
  Tensor x = numbers(4), y = reshape(numbers(4), {2, 2});
  EXPECT_THROW(f(std::move(x)), std::runtime_error);
  EXPECT_THROW(f(std::move(y)), ShapeError);
  expect_values(x, {0, 1, 2, 3});
  expect_values(y, {0, 1, 2, 3});
}

TEST_P(FailedCallTest, MovedArgumentsAreGivenBackIfADimDiffers) {
  const Dim time("time", 3), later("time", 3);
  const auto f = jitted([&](Tensor x) { return sum(x, time); });
  f(ones({time}));
  Tensor x = ones({later});
  EXPECT_THROW(f(std::move(x)), ShapeError);
  expect_values(x, {1, 1, 1});
}

TEST_P(FailedCallTest, MovedArgumentsAreGivenBackByACancelledCall) {
  const auto f = jitted([](Tensor x, const Tensor& count) {
    return fori_loop(
        0, count, [](const Tensor&, const Tensor& x) { return x * 1.5; }, x);
  });
  Tensor x = numbers(4);
  f(x, scalar(3));
  std::stop_source stop;
  stop.request_stop();
  {
    const CancellationScope scope(stop.get_token());
    EXPECT_THROW(f(std::move(x), scalar(5)), CancelledError);
  }
  expect_values(x, {0, 1, 2, 3});
}

TEST_P(FailedCallTest, MovedArgumentsAreGivenBackUnderATape) {
  const auto f = jitted([](Tensor x, const Tensor& at) { return x * gather(x, at, 0); });
  Tensor x = numbers(4);
  {
    Tape tape;
    tape.watch(x);
    EXPECT_THROW(f(std::move(x), scalar(4)), IndexError);
  }
  expect_values(x, {0, 1, 2, 3});
}

// ---- Places, in the plan ------------------------------------------------------------------------

TEST(JitPlacesTest, AResultOfOneOpLiesWhereTheArgumentWas) {
  const auto f = jit([](const Tensor& x) { return x * 2.0; });
  Tensor x = numbers(1000);
  const void* place = place_of(x);
  for (int call = 0; call < 3; ++call) {
    x = f(std::move(x));
    EXPECT_EQ(place_of(x), place) << call;
  }
  expect_values(x, mapped(1000, [](double v) { return 8 * v; }));
}

TEST(JitPlacesTest, AResultOfOpsThatWereFusedLiesWhereTheArgumentWas) {
  const auto f = jit([](const Tensor& x) { return tanh(x * 2.0) + x; });
  Tensor x = numbers(10'000);
  const void* place = place_of(x);
  for (int call = 0; call < 3; ++call) {
    x = f(std::move(x));
    EXPECT_EQ(place_of(x), place) << call;
  }
}

TEST(JitPlacesTest, ResultOfAHeldArgumentLiesElsewhere) {
  const auto f = jit([](const Tensor& x) { return tanh(x * 2.0) + x; });
  Tensor x = numbers(1000);
  const Tensor held = x;
  const void* place = place_of(x);
  EXPECT_NE(place_of(f(std::move(x))), place);
  EXPECT_NE(place_of(f(held)), place);
}

TEST(JitPlacesTest, OneTensorAsTwoArgumentsIsHeldByTheOther) {
  const auto f = jit([](const Tensor& x, const Tensor& y) {
    return std::pair{tanh(x * 2.0), sum(y, 0)};
  });
  Tensor x = numbers(4), y = x;
  const void* place = place_of(x);
  const auto [result, total] = f(std::move(x), std::move(y));
  EXPECT_NE(place_of(result), place);
  expect_values(total, {6});
}

TEST(JitPlacesTest, BeforeAnOpThatMayFailNothingIsWrittenOver) {
  const auto f = jit([](const Tensor& x, const Tensor& index) {
    const Tensor y = tanh(x * 2.0);
    return std::pair{y, gather(y, index, 0)};
  });
  Tensor x = numbers(1000);
  const void* place = place_of(x);
  EXPECT_NE(place_of(f(std::move(x), tensor({5}, {1}, i32)).first), place);
}

/// Expects that a training step, called as model = step(std::move(model), ...), updates in place.
template <class Optimiser>
void expect_updates_in_place(Optimiser optimiser, Model model) {
  const Tensor x = numbers(40) / 40.0;
  const auto loss = [&](const Model& m) {
    return mean(square(matmul(x, m.weight) + m.biases[0])) + sum(m.biases[1]);
  };
  const auto step = jit([&](Model m, Optimiser o) {
    const auto [value, gradient] = value_and_grad(loss)(m);
    o.update(m, clip_by_global_norm(gradient, 1.0).first);
    return std::tuple{m, o, value};
  });
  const auto places = [&] {
    std::vector<const void*> result;
    for (const TreeLeaf& leaf : flatten(std::tie(model.weight, model.biases, optimiser)))
      if (leaf.kind == TreeLeaf::Kind::tensor) result.push_back(place_of(leaf.tensor));
    return result;
  };
  const auto update = [&] {
    std::tie(model, optimiser, std::ignore) = step(std::move(model), std::move(optimiser));
  };
  update();  // the moments of a new optimiser share their zeros
  const std::vector<const void*> before = places();
  update();
  EXPECT_EQ(places(), before);
}

Model some_model() {
  return {reshape(numbers(2000) / 2000.0, {40, 50}), {zeros({50}), ones({3, 1, 700}) * 0.5}};
}

TEST(JitPlacesTest, AdamUpdatesParametersAndMomentsInPlace) {
  expect_updates_in_place(Adam(some_model()), some_model());
}
TEST(JitPlacesTest, AdamWUpdatesParametersAndMomentsInPlace) {
  expect_updates_in_place(AdamW(some_model()), some_model());
}
TEST(JitPlacesTest, SgdUpdatesParametersAndVelocityInPlace) {
  expect_updates_in_place(Sgd(some_model(), {.momentum = 0.9, .nesterov = true}), some_model());
}
TEST(JitPlacesTest, AdagradUpdatesParametersAndSumsInPlace) {
  expect_updates_in_place(Adagrad(some_model()), some_model());
}
TEST(JitPlacesTest, LionUpdatesParametersAndMomentumInPlace) {
  expect_updates_in_place(Lion(some_model(), {.weight_decay = 0.1}), some_model());
}
TEST(JitPlacesTest, RmsPropUpdatesParametersAndMeansInPlace) {
  expect_updates_in_place(RmsProp(some_model(), {.momentum = 0.9, .centered = true}), some_model());
}

}  // namespace
}  // namespace reel
