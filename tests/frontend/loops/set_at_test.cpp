// set_at, set_slice and switch_case, with gradients, in loops and in place.
#include "reel/tests/gradients.h"
#include "reel/tests/modes.h"

namespace reel {
namespace {

class SetAtTest : public InEveryMode {
 protected:
  /// Expects the gradient of Σ weight · f(x, value), and the gradient of its square.
  template <class F>
  void expect_gradients(const F& f, const std::pair<Tensor, Tensor>& x) {
    const auto loss = [f](const std::pair<Tensor, Tensor>& x) -> Tensor {
      const Tensor y = mask_padding(f(x.first, x.second));
      return sum(sin(y) * y);
    };
    expect_gradient_of(loss, x, run(grad(loss))(x));
    const auto slope = [loss](const std::pair<Tensor, Tensor>& x) -> Tensor {
      const auto g = grad(loss)(x);
      return sum(square(g.first)) + sum(square(g.second));
    };
    expect_gradient_of(slope, x, run(grad(slope))(x), 1e-6);
  }
};

TEST_P(SetAtTest, ReplacesOnePlace) {
  const Tensor x = tensor({{1.0, 2.0}, {3.0, 4.0}, {5.0, 6.0}}, f64), v = tensor({8.0, 9.0}, f64);
  const auto row = [](const Tensor& x, const Tensor& v) { return set_at(x, 1, v); };
  expect_values(run(row)(x, v), {1, 2, 8, 9, 5, 6});
  expect_values(
      run([](const Tensor& x, const Tensor& i) { return set_at(x, i, 7.0, 1); })(x, scalar(-1)),
      {1, 7, 3, 7, 5, 7});
  expect_gradients(row, {x, v});
  expect_gradients([](const Tensor& x, const Tensor& v) { return set_at(x, -1, sum(v), 1); },
                   {x, v});
}

TEST_P(SetAtTest, ReplacesSeveralPlacesAndTheLastValueStays) {
  const Tensor x = zeros({4}, f64), v = tensor({1.0, 2.0, 3.0}, f64);
  const auto f = [](const Tensor& x, const Tensor& v) { return set_at(x, tensor({2, 0, 2}), v); };
  expect_values(run(f)(x, v), {2, 0, 3, 0});
  expect_gradients(f, {x, v});
}

TEST_P(SetAtTest, EveryEntryMayHaveItsOwnPlace) {
  const Dim batch("batch", 2), time("time", tensor({3, 2}, {batch}));
  const Tensor x = tensor({1.0, 2.0, 3.0, 4.0, 5.0, NAN}, {batch, time}, f64);
  const Tensor v = tensor({8.0, 9.0}, {batch}, f64);
  const auto last = [&](const Tensor& x, const Tensor& v) {
    return set_at(x, tensor({0, -1}, {batch}), v, time);
  };
  expect_values(mask_padding(run(last)(x, v)), {8, 2, 3, 4, 9, 0});
  const auto loss = [&](const Tensor& v) -> Tensor { return sum(square(last(x, v))); };
  expect_values(run(grad(loss))(v), {16, 18});
}

TEST_P(SetAtTest, NamedDimsOfTheIndexStandForPlaces) {
  const Dim vocab("vocab", 3), feature("feature", 2), picked("picked", 2);
  const Tensor x = zeros({vocab, feature}, f64);
  const Tensor v = tensor({{1.0, 2.0}, {3.0, 4.0}}, {feature, picked}, f64);
  const auto f = [&](const Tensor& x, const Tensor& v) {
    return set_at(x, tensor({2, 0}, {picked}), v, vocab);
  };
  expect_values(run(f)(x, v), {2, 4, 0, 0, 1, 3});
  expect_gradients(f, {x, v});
}

// Along a dim with a size beside a ragged one, and along the ragged dim itself.
TEST_P(SetAtTest, ReplacesSeveralPlacesOfRaggedTensors) {
  const Dim batch("batch", 2), time("time", tensor({3, 2}, {batch}));
  const Dim feature("feature", 3), picked("picked", 2);
  const Tensor x = random_uniform({batch, time, feature}, -1, 1, f64);
  const Tensor v = random_uniform({batch, time, picked}, -1, 1, f64);
  const auto features = [&](const Tensor& x, const Tensor& v) {
    return set_at(x, tensor({2, 0}, {picked}), v, feature);
  };
  const auto part = [&](const Tensor& v, int i) { return v.at(picked, i); };
  const Tensor y = run(features)(x, v);
  const Tensor parts = stack({part(v, 1), x.at(feature, 1), part(v, 0)}, feature);
  expect_all_close(y, transpose(parts, {batch, time, feature}), 1e-12);
  expect_gradients(features, {x, v});
  // Two places for each entry, from its end; the last of equal ones stays.
  const Tensor ends = tensor({{-1, 0}, {1, 1}}, {batch, picked});
  const Tensor w = tensor({{7.0, 8.0}, {5.0, 6.0}}, {batch, picked});
  const auto times = [&](const Tensor& x, const Tensor& w) { return set_at(x, ends, w, time); };
  expect_values(mask_padding(run(times)(tensor({1.0, 2.0, 3.0, 4.0, 5.0, NAN}, {batch, time}), w)),
                {8, 2, 7, 4, 6, 0});
  expect_gradients(times, {x.at(feature, 0), cast(w, f64)});
}

// An index along a ragged dim, and a ragged x, without the dim of the lengths.
TEST_P(SetAtTest, LengthsOverADimThatIsNotThereDoNotMatter) {
  const Dim batch("batch", 2), time("time", tensor({3, 2}, {batch}));
  const Tensor x = tensor({1.0, 2.0}, {batch}, f64), index = tensor({0, 0, 0}, {time});
  const Tensor v = tensor({3.0, 4.0, 5.0}, {time}, f64);
  const auto f = [&](const Tensor& x, const Tensor& v) { return set_at(x, index, v, batch); };
  expect_values(run(f)(x, v), {5, 2});
  const auto g = [&](const Tensor& v, const Tensor& x) {
    return set_at(v, tensor({0, 1}, {batch}), x, time);
  };
  const auto h = [&](const Tensor& v) { return set_at(v, 1, 7.0, time); };
  expect_values(run(h)(v), {3, 7, 5});
  expect_values(run(g)(v, x), {1, 2, 5});
}

TEST_P(SetAtTest, ReplacesSlicesOfTensorsWhoseSizesOnlyARunKnows) {
  const auto columns = [](const Tensor& x, const Tensor& v) { return set_slice(x, 1, v, 1); };
  const auto f = jit(columns, {.any_length = {0, 1}});
  for (const int n : {3, 0, 2}) {
    const Tensor x = random_uniform({n, 4}, -1, 1, f64), v = random_uniform({n, 2}, -1, 1, f64);
    const Tensor expected = concat({slice(x, 1, 0, 1), v, slice(x, 1, 3)}, 1);
    expect_all_close(f(x, v), expected, 1e-12);
    expect_all_close(run(columns)(x, v), expected, 1e-12);
  }
  EXPECT_EQ(f.trace_count(), 1);
  const Dim n("n", scalar(3)), feature("feature", 4), two("two", 2);
  const Tensor x = random_uniform({feature, n}, -1, 1, f64);
  const Tensor v = random_uniform({two, n}, -1, 1, f64);
  const auto g = [](const Tensor& x, const Tensor& v) { return set_slice(x, 2, v); };
  expect_all_close(run(g)(x, v), concat({slice(x, feature, 0, 2), v}, 0, feature), 1e-12);
  expect_gradients(g, {x, v});
}

/// The index lacks the entries over which the lengths of its places run; x has them.
TEST_P(SetAtTest, PaddingOfPlacesReplacesNothing) {
  const Dim batch("batch", 2), feature("feature", 3), places("places", tensor({1, 2}, {batch}));
  const Tensor x = zeros({feature, batch}, f64);
  const Tensor value = tensor({{1.0, 9.0}, {2.0, 3.0}}, {batch, places}, f64);
  const auto one = [&](const Tensor& index) { return set_at(x, index, 1.0, feature); };
  const auto each = [&](const Tensor& index) { return set_at(x, index, value, feature); };
  expect_values(run(one)(tensor({2, 0}, {places}, i32)), {0, 1, 0, 0, 1, 1});
  expect_values(run(each)(tensor({2, 0}, {places}, i32)), {0, 3, 0, 0, 1, 2});
  expect_values(run(one)(tensor({2, 2}, {places}, i32)), {0, 0, 0, 0, 1, 1});
  expect_values(run(each)(tensor({2, 2}, {places}, i32)), {0, 0, 0, 0, 1, 3});
}

TEST_P(SetAtTest, ThereMayBeNoPlace) {
  const Dim none("none", 0), some("some", 2), feature("feature", 3);
  const auto f = [&](const Tensor& x, const Tensor& index, const Tensor& value) {
    return set_at(x, index, value, feature);
  };
  for (const int n : {2, 0}) {
    const Dim batch("batch", scalar(2)), found("found", scalar(n));
    const Tensor x = random_uniform({feature, batch}, -1, 1, f64);
    for (const Dim& places : {found, none}) {
      const Tensor index = full({places}, 1, i32), value = ones({places, batch}, f64);
      Tensor expected = x;
      if (places == found && n) expected = set_at(x, 1, 1.0, feature);
      expect_all_close(run(f)(x, index, value), expected);
    }
  }
}

TEST_P(SetAtTest, SlicesAreReplacedAlike) {
  const Tensor x = zeros({2, 5}, f64), v = tensor({{1.0, 2.0}, {3.0, 4.0}}, f64);
  const auto f = [](const Tensor& x, const Tensor& v) { return set_slice(x, 3, v, 1); };
  expect_values(run(f)(x, v), {0, 0, 0, 1, 2, 0, 0, 0, 3, 4});
  expect_values(run([](const Tensor& x, const Tensor& v) { return set_slice(x, -4, v, 1); })(x, v),
                {0, 1, 2, 0, 0, 0, 3, 4, 0, 0});
  expect_gradients(f, {x, v});
}

TEST_P(SetAtTest, ALoopWritesItsState) {
  const auto f = [](const Tensor& x, const Tensor& v) {
    return fori_loop(
        0, 4, [&](const Tensor& i, const Tensor& s) { return set_at(s, i, v * sum(s)); }, x);
  };
  const Tensor x = tensor({1.0, 0.0, 0.0, 0.0, 0.0}, f64), v = scalar(0.5, f64);
  expect_values(run(f)(x, v), {0.5, 0.25, 0.375, 0.5625, 0});
  expect_gradients(f, {x, v});
}

TEST_P(SetAtTest, RunsUnderVmap) {
  const Tensor x = tensor({{1.0, 2.0, 3.0}, {4.0, 5.0, 6.0}}, f64);
  const auto f = [](const Tensor& x) { return set_at(x, argmax(x, 0) - 1, sum(x)); };
  expect_all_close(run(vmap(f))(x), map(f, x), 1e-12);
}

TEST(SetAtErrorTest, NamesTheIndexAndTheTypes) {
  const Tensor x = zeros({3, 2});
  EXPECT_EQ(message_of<IndexError>([&] { set_at(x, 3, 1.0); }).substr(0, 7), "set_at:");
  EXPECT_EQ(message_of<DTypeError>([&] { set_at(x, scalar(1.0), 1.0); }),
            "set_at: index must be i32 or i64, got f32[]");
  EXPECT_EQ(message_of<DTypeError>([&] { set_at(x, 0, scalar(1)); }),
            "set_at: dtypes differ: x f32[3,2], value i32[]; cast one of them");
  EXPECT_EQ(message_of<ShapeError>([&] { set_at(x, 0, zeros({3})); }),
            "set_at: value is f32[3], but x f32[3,2] has elements f32[2] there");
  const Dim batch("batch", 2), time("time", tensor({3, 2}, {batch})), a("a", 1), b("b", 2);
  EXPECT_EQ(
      message_of<ShapeError>([&] {
        set_at(zeros({batch, time}), zeros({a, b}, i32), 1.0, time);
      }),
      "set_at: index i32[a=1,b=2] names places along several dims in f32[batch=2,time[batch=2]]; "
      "one dim only may stand for places if either has ragged dims or sizes that only a run knows, "
      "or x has dims of the index; merge these dims of index and value");
  const Tensor weights = zeros({time, b}), places = zeros({batch}, i32);
  EXPECT_EQ(message_of<ShapeError>([&] { set_at(weights, places, gather(weights, places, b), b); }),
            "set_at: lengths of value f32[time[batch=2],batch=2] run over batch=2, which the index "
            "i32[batch=2] puts at places of b=2 in x f32[time[batch=2],b=2]; rename it in index "
            "and value");
}

TEST(SetAtInPlaceTest, ATemporaryIsWrittenInPlace) {
  Tensor x = zeros({1000, 8});
  const void* const at = x.data<void>();
  x = set_at(std::move(x), 3, 1.0);
  EXPECT_EQ(x.data<void>(), at);
  const Tensor kept = x;
  x = set_at(x, 4, 1.0);
  EXPECT_NE(x.data<void>(), at);
  EXPECT_EQ(sum(kept).item<float>(), 8);
}

class SwitchCaseTest : public InEveryMode {};

TEST_P(SwitchCaseTest, RunsTheBranchOfTheClampedIndex) {
  const auto f = [](const Tensor& i, const Tensor& x) {
    return switch_case(
        i, [&] { return x * 2.0; }, [&] { return sin(x); }, [&] { return x + 10.0; });
  };
  const Tensor x = tensor({1.0, 2.0}, f64);
  const auto g = run(f);
  for (const int i : {-5, 0}) expect_all_close(g(scalar(i), x), x * 2.0, 1e-12);
  expect_all_close(g(scalar(1), x), sin(x), 1e-12);
  for (const int i : {2, 9}) expect_all_close(g(scalar(i), x), x + 10.0, 1e-12);
  EXPECT_EQ(g.trace_count(), 1);
  const auto slope = run(grad([f](const Tensor& x) -> Tensor { return sum(f(scalar(1), x)); }));
  expect_all_close(slope(x), cos(x), 1e-12);
}

TEST_P(SwitchCaseTest, EveryRowTakesItsOwnBranch) {
  const auto f = [](const Tensor& i, const Tensor& x) {
    return switch_case(
        i, [&] { return x * 2.0; }, [&] { return sqrt(x); }, [&] { return x + 10.0; });
  };
  const Tensor y = run(vmap(f))(tensor({0, 1, 2, 7}), tensor({-1.0, 4.0, -3.0, -4.0}, f64));
  expect_values(y, {-2, 2, 7, 6});
}

TEST(SwitchCaseErrorTest, NamesTheBranchesThatDiffer) {
  const auto f = [](const Tensor& i) {
    return switch_case(
        i, [] { return zeros({2}); }, [] { return zeros({2}); }, [] { return zeros({3}); });
  };
  EXPECT_EQ(message_of<ShapeError>([&] { jit(f)(scalar(1)); }),
            "switch_case: the branches return different types\n  result: f32[2] in branch 1, "
            "f32[3] in branch 2 (dims differ)\nReturn the same type from both.");
  const auto g = [](const Tensor& i) {
    return switch_case(
        i, [] { return zeros({2}); }, [] { return Tensor(); });
  };
  for (const auto& call : {std::function<Tensor(Tensor)>(g), std::function<Tensor(Tensor)>(jit(g))})
    EXPECT_EQ(message_of<StructureError>([&] { call(scalar(1)); }),
              "switch_case: branch 1 returns empty Tensors: result; give them values, or let them "
              "be std::optional<Tensor>");
}

TEST(SwitchCaseErrorTest, TakesAnIntegerScalar) {
  const auto one = [] { return scalar(1.0); };
  EXPECT_EQ(message_of<DTypeError>([&] { switch_case(scalar(1.0), one, one); }),
            "switch_case: index must be an integer, got f32[]");
  EXPECT_EQ(message_of<ShapeError>([&] {
              switch_case(tensor({1, 2}), one, one);
            }),
            "switch_case: index must be a scalar, got i32[2]");
}

REEL_IN_EVERY_MODE(SetAtTest);
REEL_IN_EVERY_MODE(SwitchCaseTest);

TEST(SetAtErrorsTest, NameXAndTheCall) {
  const Tensor x = ones({2, 3});
  EXPECT_EQ(message_of<IndexError>([&] { return set_at(x, 5, 0); }),
            "set_at: index 5 is out of range for axis 0 of f32[2,3], which has size 2");
  EXPECT_EQ(message_of<IndexError>([&] { return set_at(x, 3, 0, 1); }),
            "set_at: index 3 is out of range for axis 1 of f32[2,3], which has size 3");
  EXPECT_EQ(message_of<DTypeError>([&] {
              return set_at(tensor({1, 2}), 0, 1.5);
            }),
            "set_at: 1.5 does not fit i32, which holds integers; give a dtype of f32 or f64");
}

}  // namespace
}  // namespace reel
