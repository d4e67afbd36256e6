// jit: calls that share a trace. The C++ types and exact values of arguments decide, and no text in
// them can make two calls alike.
#include <cmath>
#include <limits>
#include <map>

#include "reel/tests/check.h"
#include "reel/tests/modes.h"

namespace reel {
namespace {

struct Shift {
  Tensor w;
  Tensor operator()(const Tensor& x) const { return x + w; }
};
struct Scale {
  Tensor w;
  Tensor operator()(const Tensor& x) const { return x * w; }
};
enum class Reduction { sum, mean };
enum class Letter : char { a = 'a' };

template <class Layer>
struct Model {
  std::vector<Layer> layers;
  std::optional<Layer> last;
  std::map<std::string, Layer> more;
  Tensor operator()(Tensor x) const {
    for (const Layer& layer : layers) x = layer(x);
    if (last) x = (*last)(x);
    for (const auto& [name, layer] : more) x = layer(x);
    return x;
  }
};

class JitSignatureTest : public InEveryMode {};

/// A text of one sentence, of the words [1 2] and [3 4 5].
struct Text {
  Dim batch{"batch", 1}, words{"words", 2}, letters{"letters", tensor({{2, 3}}, {batch, words})};
  Tensor x = tensor({{{1., 2., 0.}, {3., 4., 5.}}}, {batch, words, letters}, f64);
  Tensor word(int place) const { return gather(x, scalar(place), words); }
};

/// Whether one dim is a slice of another decides whether the function has a meaning.
TEST_P(JitSignatureTest, SlicesOfADimAndOtherDimsAreTwo) {
  const auto f = run([](const Tensor& word, const Dim& letters) { return mean(word, letters); });
  const Text text, other;
  expect_values(f(text.word(0), text.letters), {1.5});
  expect_values(f(other.word(1), other.letters), {4});
  EXPECT_EQ(f.trace_count(), 1);
  EXPECT_NE(message_of<ShapeError>([&] { f(other.word(1), text.letters); }).find("letters"),
            std::string::npos);
  const auto weighted =
      run([](const Tensor& word, const Tensor& weights) { return sum(word * weights); });
  const auto weights_of = [](const Text& text) { return cast(range(text.letters) + 1, f64); };
  expect_values(weighted(text.word(0), weights_of(text)), {5});
  expect_values(weighted(other.word(1), weights_of(other)), {26});
  EXPECT_THROW(weighted(other.word(1), weights_of(text)), ShapeError);
}

TEST_P(JitSignatureTest, AFunctionThatNamesADimTakesItsSlicesAlone) {
  const Text text, other;
  const auto f = run([&](const Tensor& word) { return mean(word, text.letters); });
  expect_values(f(text.word(0)), {1.5});
  expect_values(f(text.word(1)), {4});
  EXPECT_EQ(f.trace_count(), 1);
  EXPECT_THROW(f(other.word(1)), ShapeError);
}

TEST_P(JitSignatureTest, ModelsOfEqualLeavesAreTwo) {
  const Tensor x = tensor({1., 2.}), w = tensor({10., 10.});
  const auto apply = run([](const auto& model, const Tensor& x) { return model(x); });
  expect_values(apply(Shift{w}, x), {11, 12});
  expect_values(apply(Scale{w}, x), {10, 20});
  expect_values(apply(Shift{w}, x), {11, 12});
  expect_values(apply(Model<Shift>{{{w}, {w}}, Shift{w}, {{"a", {w}}}}, x), {41, 42});
  expect_values(apply(Model<Scale>{{{w}, {w}}, Scale{w}, {{"a", {w}}}}, x), {1e4, 2e4});
}

// Another struct named Layer, as in local_scale.
auto local_shift(const Tensor& w) {
  struct Layer {
    Tensor w;
    Tensor operator()(const Tensor& x) const { return x + w; }
  };
  return Layer{w};
}
auto local_scale(const Tensor& w) {
  struct Layer {
    Tensor w;
    Tensor operator()(const Tensor& x) const { return x * w; }
  };
  return Layer{w};
}

TEST_P(JitSignatureTest, LocalTypesOfOneNameAreTwo) {
  const Tensor x = tensor({1., 2.}), w = tensor({10., 10.});
  const auto apply = run([](const auto& model, const Tensor& x) { return model(x); });
  expect_values(apply(local_shift(w), x), {11, 12});
  expect_values(apply(local_scale(w), x), {10, 20});
}

TEST_P(JitSignatureTest, NumbersOfEqualValueAndAnotherTypeAreTwo) {
  const auto type_of = run([](const Tensor& x, const auto& value) {
    using T = std::decay_t<decltype(value)>;
    const double number = std::is_same_v<T, Reduction>            ? 1
                          : std::is_same_v<T, bool>               ? 2
                          : std::is_same_v<T, char>               ? 3
                          : std::is_same_v<T, signed char>        ? 4
                          : std::is_same_v<T, int>                ? 5
                          : std::is_same_v<T, long>               ? 6
                          : std::is_same_v<T, unsigned>           ? 7
                          : std::is_same_v<T, float>              ? 8
                          : std::is_same_v<T, double>             ? 9
                          : std::is_same_v<T, long double>        ? 10
                          : std::is_same_v<T, std::string>        ? 11
                          : std::is_same_v<T, Letter>             ? 12
                          : std::is_same_v<T, std::optional<int>> ? 13
                          : std::is_same_v<T, std::vector<int>>   ? 14
                          : std::is_same_v<T, std::array<int, 1>> ? 15
                          : std::is_same_v<T, std::tuple<int>>    ? 16
                                                                  : 17;
    return x * number;
  });
  const auto check = [&](const auto& value, double expected) {
    expect_values(type_of(scalar(1.), value), {expected});
  };
  for (int twice = 0; twice < 2; ++twice) {
    check(Reduction::mean, 1);
    check(true, 2);
    check('\1', 3);
    check(static_cast<signed char>(1), 4);
    check(1, 5);
    check(1L, 6);
    check(1U, 7);
    check(1.f, 8);
    check(1., 9);
    check(1.L, 10);
    check(std::string("1"), 11);
    check('a', 3);
    check(Letter::a, 12);
    check(std::string("a"), 11);
    check(std::optional<int>(1), 13);
    check(std::vector<int>{1}, 14);
    check(std::array<int, 1>{1}, 15);
    check(std::tuple<int>{1}, 16);
    check(std::map<std::string, int>{{"a", 1}}, 17);
  }
}

TEST_P(JitSignatureTest, TextsSayWhereTheyEnd) {
  using Texts = std::vector<std::string>;
  const auto sizes = run([](const Tensor& x, const Texts& texts) {
    double result = 0;
    for (const std::string& text : texts) result = 100 * result + static_cast<double>(text.size());
    return x + result;
  });
  const std::string nul(1, '\0');
  const std::vector<std::pair<Texts, double>> all = {{{"a;b", "c"}, 301},
                                                     {{"a", "b;c"}, 103},
                                                     {{"", "of size 2"}, 9},
                                                     {{"of size 2"}, 9},
                                                     {{"ab", ""}, 200},
                                                     {{"", "ab"}, 2},
                                                     {{"a" + nul, "b"}, 201},
                                                     {{"a", nul + "b"}, 102},
                                                     {{nul, nul}, 101},
                                                     {{nul + nul, ""}, 200},
                                                     {{std::string(300, 'x')}, 300},
                                                     {{}, 0},
                                                     {{"", ""}, 0},
                                                     {{""}, 0}};
  for (const auto& [texts, expected] : all) expect_values(sizes(scalar(0.), texts), {expected});
  for (const auto& [texts, expected] : all) expect_values(sizes(scalar(0.), texts), {expected});
}

TEST_P(JitSignatureTest, KeysOfMapsSayWhereTheyEnd) {
  using Map = std::map<std::string, std::string>;
  const auto sizes = run([](const Tensor& x, const Map& map) {
    double result = 0;
    for (const auto& [key, value] : map)
      result = 10000 * result + static_cast<double>(100 * key.size() + value.size());
    return x + result;
  });
  expect_values(sizes(scalar(0.), Map{{"a", "bc"}}), {102});
  expect_values(sizes(scalar(0.), Map{{"ab", "c"}}), {201});
  expect_values(sizes(scalar(0.), Map{{"a;b", ""}}), {300});
  expect_values(sizes(scalar(0.), Map{{"a", ""}, {"b", ""}}), {1000100});
  expect_values(sizes(scalar(0.), Map{{"a", "key b"}}), {105});
}

TEST_P(JitSignatureTest, StructsOfContainersAreTwo) {
  using Lists = std::pair<std::vector<int>, std::vector<int>>;
  const auto sizes = run([](const Tensor& x, const Lists& lists) {
    return x + static_cast<double>(10 * lists.first.size() + lists.second.size());
  });
  expect_values(sizes(scalar(0.), Lists{{2, 1}, {}}), {20});
  expect_values(sizes(scalar(0.), Lists{{2}, {1}}), {11});
  expect_values(sizes(scalar(0.), Lists{{}, {2, 1}}), {2});
  const auto which =
      run([](const Tensor& x, const std::pair<std::optional<Tensor>, std::optional<Tensor>>& two) {
        return two.first ? x + *two.first : two.second ? x - *two.second : x * 7.;
      });
  expect_values(which(scalar(1.), std::pair{std::optional(scalar(2.)), std::optional<Tensor>()}),
                {3});
  expect_values(which(scalar(1.), std::pair{std::optional<Tensor>(), std::optional(scalar(2.))}),
                {-1});
  expect_values(which(scalar(1.), std::pair{std::optional<Tensor>(), std::optional<Tensor>()}),
                {7});
}

TEST_P(JitSignatureTest, ResultsMayHaveAnotherType) {
  const auto same = run([](auto x) {
    if constexpr (std::is_same_v<decltype(x), Tensor>)
      return x * 2.;
    else
      return std::pair{std::get<0>(x), std::vector<Tensor>{std::get<0>(x) + 1.}};
  });
  const Tensor x = tensor({1., 2.});
  expect_values(same(x), {2, 4});
  expect_values(same(std::tuple{x}).second[0], {2, 3});
  expect_values(same(std::array<Tensor, 1>{x}).second[0], {2, 3});
  expect_values(same(x), {2, 4});
}

TEST_P(JitSignatureTest, NamesOfDimsAreNamesOnly) {
  const auto rows = run([](const Tensor& x) { return sum(x, Axes(x.dim(0))); });
  const auto numbers = [](const Dims& dims, std::int64_t count) {
    return reshape(cast(range(count), f64), dims);
  };
  expect_values(rows(numbers({Dim("a", 3), Dim("b", 2)}, 6)), {6, 9});
  for (const char* name : {"a=3),#1(b", "a=3", "a", "", "#0", "a,", "1", "?", "=4"})
    expect_values(rows(numbers({Dim(name, 4)}, 4)), {6});
  const auto name =
      run([](const Tensor& x) { return sum(x) * static_cast<double>(x.dims()[0].name().size()); });
  const std::string nul(1, '\0');
  expect_values(name(numbers({Dim("ab", 2)}, 2)), {2});
  expect_values(name(numbers({Dim("ab" + nul, 2)}, 2)), {3});
  expect_values(name(numbers({Dim("b", 2)}, 2)), {1});
}

TEST_P(JitSignatureTest, DimsThatLengthsRunOverHaveTheirSizes) {
  // The ragged dim comes first, so that the signature meets batch first as a dim of its lengths.
  const auto width = run([](const Tensor& x) {
    const Dim batch = x.dims()[1];
    return sum(x, x.dims()[0]) * static_cast<double>(batch.size());
  });
  for (const int size : {2, 3, 2}) {
    const Dim batch("batch", size),
        time("time", size == 2 ? tensor({2, 1}, {batch}) : tensor({2, 1, 2}, {batch}));
    const Tensor y = width(ones({time, batch}, f64));
    EXPECT_EQ(y.dims(), Dims{batch});
    expect_values(y, size == 2 ? std::vector<double>{4, 2} : std::vector<double>{6, 3, 6});
  }
}

TEST_P(JitSignatureTest, NumbersAreExact) {
  const auto number = run([](const Tensor& x, const auto& value) {
    return x * (std::signbit(static_cast<double>(value)) ? -1. : 1.) +
           (std::isnan(static_cast<double>(value)) ? 5. : 0.);
  });
  expect_values(number(scalar(1.), 0.), {1});
  expect_values(number(scalar(1.), -0.), {-1});
  expect_values(number(scalar(1.), 0.L), {1});
  expect_values(number(scalar(1.), -0.L), {-1});
  expect_values(number(scalar(1.), std::nan("")), {6});

  const auto is_above = run([](const Tensor& x, const auto& value, const auto& other) {
    return x * (value > other ? 1. : 0.);
  });
  const auto check = [&](auto low) {
    const auto high = std::is_floating_point_v<decltype(low)>
                          ? static_cast<decltype(low)>(std::nextafter(low, 2 * low))
                          : static_cast<decltype(low)>(low + 1);
    expect_values(is_above(scalar(1.), low, low), {0});
    expect_values(is_above(scalar(1.), high, low), {1});
    expect_values(is_above(scalar(1.), low, high), {0});
  };
  check(0.1);
  check(0.1f);
  check(0.1L);
  check(1e300);
  check(std::int64_t{1} << 53);
  check(std::numeric_limits<std::int64_t>::max() - 1);
  check(std::numeric_limits<std::int64_t>::min());
  check(std::numeric_limits<std::uint64_t>::max() - 1);
  check(std::uint64_t{1} << 63);
}

TEST_P(JitSignatureTest, CapturedWithinAStepOfALoop) {  // traces inside of eager code
  const auto apply = run([](const auto& model, const Tensor& x) { return model(x); });
  const Tensor w = tensor({10., 10.});
  const Tensor x = tensor({1., 2.});
  const auto twice = [&](const Tensor& x) { return apply(Scale{w}, apply(Shift{w}, x)); };
  expect_values(twice(x), {110, 120});
  expect_values(grad([&](const Tensor& x) { return sum(twice(x)); })(x), {10, 10});
}

REEL_IN_EVERY_MODE(JitSignatureTest);

TEST(JitSharedTraceTest, HowAnArgumentIsPassedDoesNotCount) {
  struct Model {
    Tensor w;
    double rate;
  };
  auto f = jit([](const Model& model, const auto& x) { return model.w * x * model.rate; });
  Model model{scalar(2.), 3};
  const Model same = model;
  const Tensor x = scalar(1.);
  Tensor y = scalar(1.);
  f(model, x);
  f(same, y);
  f(Model(model), scalar(1.));
  f(std::move(model), std::move(y));
  EXPECT_EQ(f.trace_count(), 1);
}

TEST(JitSharedTraceTest, EqualNumbersShareATrace) {
  auto f = jit([](const Tensor& x, const auto&...) { return x; });
  for (int i = 0; i < 3; ++i) {
    f(scalar(1.), std::nan(""));
    f(scalar(1.), std::numeric_limits<float>::quiet_NaN());
    f(scalar(1.), static_cast<long double>(std::nan("")));
    f(scalar(1.), std::string("text"), std::vector<std::string>{"a", "b"});
    f(scalar(1.), std::map<std::string, int>{{"a", 1}});
  }
  EXPECT_EQ(f.trace_count(), 5);
}

TEST(JitSharedTraceTest, CodeIsChosenInsideATraceAsInACall) {
  struct WhichOne {
    Tensor operator()(Tensor& x) const { return x * 2.; }
    Tensor operator()(const Tensor& x) const { return x * 3.; }
  };
  const auto inner = jit(WhichOne());
  const auto outer = jit([&](const Tensor& x) {
    Tensor copy = x;
    return inner(copy);
  });
  Tensor x = scalar(1.);
  expect_values(inner(x), {3});
  expect_values(outer(x), {3});
}

/// A call with the leaves of the call before needs no signature; any difference does.
TEST(JitSharedTraceTest, CallsThatDifferInOneLeafAreNotTheLastCallAgain) {
  auto f = jit([](const auto& args) {
    const auto& [xs, factor] = args;
    Tensor result = scalar(0.);
    for (const Tensor& x : xs)
      if (x.is_defined()) result = result + cast(sum(x), f32) * factor;
    return result;
  });
  using List = std::vector<Tensor>;
  const Dim batch("batch", 2);
  const auto value = [&](const List& xs, double factor) {
    return f(std::pair(xs, factor)).template item<double>();
  };
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(value({ones({2}), ones({3})}, 2.), 10);
    EXPECT_EQ(value({ones({2}), ones({3})}, 2.), 10);
    EXPECT_EQ(value({ones({2}), ones({3})}, 3.), 15);
    EXPECT_EQ(value({ones({2}), ones({4})}, 3.), 18);
    EXPECT_EQ(value({ones({2}), Tensor()}, 3.), 6);
    EXPECT_EQ(value({ones({2})}, 3.), 6);
    EXPECT_EQ(value({ones({batch})}, 3.), 6);
    EXPECT_EQ(value({cast(ones({2}), f64)}, 3.), 6);
    EXPECT_EQ(f(std::tuple(List{ones({2})}, 3.)).template item<double>(), 6);
  }
  EXPECT_EQ(f.trace_count(), 8);
  f.clear_traces();
  EXPECT_EQ(value({ones({2})}, 3.), 6);
  EXPECT_EQ(f.trace_count(), 9);
}

/// A pair and an array have the same leaves, but results of different types.
TEST(JitSharedTraceTest, TheLastCallOfAnotherTypeIsNotThisCall) {
  auto f = jit([](const auto& x) { return x; });
  const Tensor one = scalar(1.), two = scalar(2.);
  for (int i = 0; i < 2; ++i) {
    const std::pair<Tensor, Tensor> pair = f(std::pair(one, two));
    const std::array<Tensor, 2> array = f(std::array<Tensor, 2>{one, two});
    expect_values(pair.second, {2});
    expect_values(array[1], {2});
  }
  EXPECT_EQ(f.trace_count(), 2);
}

}  // namespace
}  // namespace reel
