// Slices of ragged dims in functions under vmap, map, jit, cond and checkpoint: equal calls inside
// and outside have one Dim, and the whole Dim finds its axis in their results.
#include <functional>

#include "reel/tests/frontend/loops/words_and_letters.h"

namespace reel {
namespace {

using Function = std::function<Tensor(const Tensor&)>;
struct NamedFunction {
  const char* name;
  Function f;
};

class SlicesOfTransformsTest : public WordsAndLetters {
 protected:
  /// Functions that move or take words, together with their letters.
  std::vector<NamedFunction> functions() const {
    return {
        {"reverse", [this](const Tensor& x) -> Tensor { return reverse(x, words); }},
        {"gather", [this](const Tensor& x) -> Tensor { return gather(x, scalar(1), words); }},
        {"shift", [this](const Tensor& x) -> Tensor { return shift(x, words, 1); }},
        {"slice", [this](const Tensor& x) -> Tensor { return slice(x, words, 0, 2, few); }},
        {"step",
         [this](const Tensor& x) -> Tensor {
           return slice(x, words, 0, {}, 2, ceildiv(words, 2));
         }},
        {"pad", [this](const Tensor& x) -> Tensor { return pad(x, words, 1, 0, 0., words + 1); }},
        {"pack",
         [this](const Tensor& x) -> Tensor {
           return pack(x, {batch, words}, packed);
         }},
        {"top_k", [this](const Tensor& x) -> Tensor { return top_k(x, words, best).values; }},
    };
  }
  /// Expects that `transformed`, which computes f, gives Dims that f gives, whichever comes first.
  void expect_one_dim(const NamedFunction& function,
                      const std::function<Function(const Function&)>& transformed,
                      const Tensor& x) const {
    SCOPED_TRACE(function.name);
    const Function f = function.f, other = transformed(f);
    const std::vector<double> twice = valid(f(x) + f(2. * x));
    const Function orders[] = {[=](const Tensor& x) -> Tensor {
                                 const Tensor first = other(x);
                                 return first + f(2. * x);
                               },
                               [=](const Tensor& x) -> Tensor {
                                 const Tensor first = f(x);
                                 return first + other(2. * x);
                               },
                               [=](const Tensor& x) -> Tensor {
                                 const Tensor first = other(x);
                                 return first + other(2. * x);
                               }};
    for (const Function& order : orders) {
      try {
        EXPECT_EQ(valid(run(order)(x)), twice);
      } catch (const Error& error) {
        ADD_FAILURE() << error.what();
      }
    }
    expect_found(function, transformed, x);
  }
  /// Expects that the whole Dim finds its axis in results of `transformed`.
  void expect_found(const NamedFunction& function,
                    const std::function<Function(const Function&)>& transformed,
                    const Tensor& x) const {
    const Function f = function.f, other = transformed(f);
    const Function of_letters = [=, this](const Tensor& x) -> Tensor {
      return mean(other(x), letters);
    };
    try {
      EXPECT_EQ(valid(run(of_letters)(x)), valid(mean(f(x), letters))) << function.name;
    } catch (const Error& error) {
      ADD_FAILURE() << function.name << ": " << error.what();
    }
  }
  /// Returns two texts, whose words or letters may have lengths of their own.
  Tensor texts(const Dims& dims) const {
    manual_seed(3);
    return mask_padding(random_normal(dims, f64));
  }
  Function vmapped(const Function& f) const { return vmap(f, rows); }

  const Dim rows{"rows", 2}, few{"words", tensor({2, 1}, {batch})}, packed{"packed", 5},
      best{"best", 2},
      own_letters{"letters",
                  tensor({{{2, 1, 3}, {1, 2, 0}}, {{1, 0, 0}, {3, 1, 0}}}, {rows, batch, words})};
};
REEL_IN_EVERY_MODE(SlicesOfTransformsTest);

TEST_P(SlicesOfTransformsTest, ResultsOfVmapHaveTheDimsOfTheFunction) {
  for (const NamedFunction& function : functions())
    expect_one_dim(
        function, [this](const Function& f) { return vmapped(f); },
        texts({rows, batch, words, letters}));
}

TEST_P(SlicesOfTransformsTest, ResultsOfVmapWithLettersOfEachRowHaveTheDimsOfTheFunction) {
  letters = own_letters;
  for (const NamedFunction& function : functions())
    expect_one_dim(
        function, [this](const Function& f) { return vmapped(f); },
        texts({rows, batch, words, letters}));
}

TEST_P(SlicesOfTransformsTest, ResultsOfMapHaveTheDimsOfTheFunction) {
  const auto mapped = [this](const Function& f) -> Function {
    return [this, f](const Tensor& x) -> Tensor { return map(f, x, {.spatial_dim = rows}); };
  };
  for (const NamedFunction& function : functions())
    expect_found(function, mapped, texts({rows, batch, words, letters}));
  letters = own_letters;
  for (const NamedFunction& function : functions())
    expect_one_dim(function, mapped, texts({rows, batch, words, letters}));
}

TEST_P(SlicesOfTransformsTest, ResultsOfJitHaveTheDimsOfTheFunction) {
  for (const NamedFunction& function : functions())
    expect_one_dim(
        function, [](const Function& f) -> Function { return jit(f); }, text(0.));
}

// One trace serves words at any position, so no trace tells which word an argument is.
TEST_P(SlicesOfTransformsTest, ArgumentsOfJitHaveTheDimsOfTheFunction) {
  for (const NamedFunction& function : functions()) {
    if (function.name == std::string("gather")) continue;
    const Function f = function.f;
    const auto both = jit([f](const Tensor& x, const Tensor& y) { return f(x) + y; });
    const Function outside = [&](const Tensor& x) -> Tensor { return both(x, f(x)); };
    try {
      EXPECT_EQ(valid(run(outside)(text(0.))), valid(2. * f(text(0.)))) << function.name;
    } catch (const Error& error) {
      ADD_FAILURE() << function.name << ": " << error.what();
    }
  }
}

TEST_P(SlicesOfTransformsTest, ResultsOfCondAndCheckpointHaveSlices) {
  for (const NamedFunction& function : functions()) {
    expect_found(
        function,
        [](const Function& f) -> Function {
          return [f](const Tensor& x) -> Tensor {
            return cond(
                sum(x) < 0., [&] { return -f(x); }, [&] { return f(x); });
          };
        },
        text(0.));
    expect_found(
        function, [](const Function& f) -> Function { return checkpoint(f); }, text(0.));
  }
}

TEST_P(SlicesOfTransformsTest, GradientsOfBothFormsAddUp) {
  for (const NamedFunction& function : functions()) {
    const Function f = function.f, at_once = vmapped(f);
    const Function loss = [=](const Tensor& x) -> Tensor { return sum(square(at_once(x) * f(x))); };
    const Function plain = [=](const Tensor& x) -> Tensor { return sum(square(f(x) * f(x))); };
    const Function slope = grad(loss), expected = grad(plain);
    const Tensor x = texts({rows, batch, words, letters});
    expect_all_close(run(slope)(x), expected(x), 1e-12);
  }
}

// Without `to`, each call makes a Dim along the axis itself.
TEST_P(SlicesOfTransformsTest, SlicesOfTheAxisMeetByAGivenDim) {
  const Tensor x = texts({rows, batch, words});
  const auto sums = [&](const std::optional<Dim>& to) {
    const Function f = [this, to](const Tensor& x) -> Tensor { return slice(x, words, 1, {}, to); };
    const Function both = [f, at_once = vmapped(f)](const Tensor& x) -> Tensor {
      return at_once(x) + f(x);
    };
    return valid(run(both)(x));
  };
  EXPECT_EQ(sums(words - 1), valid(2. * slice(x, words, 1)));
  EXPECT_EQ(message_of<ShapeError>([&] { sums(std::nullopt); }).substr(0, 16), "add: dims differ");
}

// Each sentence has its own number of words, so letters run over words of one sentence in the body.
TEST_P(SlicesOfTransformsTest, WordsOfEachRowMoveWithTheirLetters) {
  words = Dim("words", tensor({{3, 2}, {2, 2}}, {rows, batch}));
  letters = Dim("letters",
                tensor({{{2, 1, 3}, {1, 2, 0}}, {{1, 3, 0}, {0, 2, 0}}}, {rows, batch, words}));
  const Tensor x = texts({rows, batch, words, letters});
  for (const NamedFunction& function : functions()) {
    const std::string name = function.name;
    if (name != "reverse" && name != "gather" && name != "shift") continue;
    const Function f = function.f;
    const Function mapped = [&](const Tensor& x) -> Tensor {
      return map(f, x, {.spatial_dim = rows});
    };
    expect_found(
        function, [&](const Function&) { return mapped; }, x);
    expect_found(
        function, [&](const Function& f) { return vmapped(f); }, x);
    EXPECT_EQ(valid(run(mapped)(x)), valid(f(x))) << name;
    EXPECT_EQ(valid(run(vmapped(f))(x)), valid(f(x))) << name;
  }
}

// The dims of a batch are new in each step; the slices are the same ones of them.
TEST(SlicesOfArgumentsTest, OneTraceServesOtherBatches) {
  const Dim batch("batch", 2);
  const auto step = jit([](const Tensor& x, const Tensor& reversed) {
    return sum(reverse(x, x.dim("words")) * reversed);
  });
  for (const std::vector<int>& counts : {std::vector<int>{3, 2}, {1, 2}, {2, 2}}) {
    const Dim words("words", tensor(counts, {batch}));
    const Dim letters("letters", expand(tensor({1, 2}, {batch}), {batch, words}));
    const Tensor x = ones({batch, words, letters}, f64);
    expect_values(step(x, reverse(x, words)), {counts[0] + 2. * counts[1]});
  }
  EXPECT_EQ(step.trace_count(), 1);
}

TEST(SlicesOfArgumentsTest, AnotherOperationIsAnotherTrace) {
  const Dim batch("batch", 2), words("words", tensor({2, 2}, {batch})),
      letters("letters", tensor({{1, 2}, {2, 1}}, {batch, words}));
  const auto both = jit([&](const Tensor& x, const Tensor& y) { return reverse(x, words) + y; });
  const Tensor x = ones({batch, words, letters}, f64);
  expect_values(sum(both(x, reverse(x, words))), {12});
  EXPECT_EQ(message_of<ShapeError>([&] { both(x, shift(x, words, 1)); }).substr(0, 16),
            "add: dims differ");
  expect_values(sum(both(x, reverse(2. * x, words))), {18});
}

}  // namespace
}  // namespace reel
