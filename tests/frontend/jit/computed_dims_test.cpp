// Arithmetic on dims in a trace: an expression of a captured dim is the dim of an argument that was
// made by an equal expression outside.
#include "reel/tests/modes.h"

namespace reel {
namespace {

const Dim batch("batch", 2);
const Dim label("label", tensor({2, 1}, {batch})), word("word", tensor({3, 1}, {batch}));
const Dim steps("steps", scalar(3)), width("width", 3), three("three", 3);

class ComputedDimsTest : public InEveryMode {
 protected:
  /// Expects the same result of f(x) as of f called eagerly.
  template <class F>
  void expect_as_eager(F f, const Tensor& x) const {
    const Tensor expected = mask_padding(f(x)), got = mask_padding(run(f)(x));
    EXPECT_EQ(got.dims(), expected.dims());
    expect_all_close(got, expected);
  }
};
REEL_IN_EVERY_MODE(ComputedDimsTest);

/// Returns 1, 2, 3, ... along the dim, in each entry of the batch.
Tensor counts(const Dim& dim) { return expand(range(dim, f32) + 1., {batch, dim}); }

TEST_P(ComputedDimsTest, AnExpressionOfACapturedDimIsTheArgumentsDim) {
  using Expression = Dim (*)();
  for (const Expression dim : std::initializer_list<Expression>{
           [] { return label + 1; }, [] { return label - 1; }, [] { return label * 2; },
           [] { return label / 2; }, [] { return ceildiv(label, 2); },
           [] { return (label + 1) * 2; }, [] { return ceildiv(label + 1, 2); },
           [] { return (label - 1) * 3 + 1; }, [] { return label + word; },
           [] { return (label + word) / 2; }, [] { return steps + 1; }, [] { return width * 2; },
           [] { return steps + label; }, [] { return width + label + 1; }}) {
    SCOPED_TRACE(str(dim()));
    expect_as_eager([=](const Tensor& x) { return sum(x, dim()); }, counts(dim()));
    expect_as_eager([=](const Tensor& x) { return where(mask(dim()), x, 7.); }, counts(dim()));
    expect_as_eager([=](const Tensor& x) { return x + cast(dim().lengths(), f32); }, counts(dim()));
  }
}

TEST_P(ComputedDimsTest, ExpressionsOfTheArgumentsDimMeetThoseOfTheCapturedOne) {
  for (const Dim& dim : {label, steps, width}) {
    SCOPED_TRACE(str(dim));
    const Tensor x = counts(dim + 1);
    const auto own = [=](const Tensor& x) { return x.dims()[1]; };
    expect_as_eager([=](const Tensor& x) { return sum(counts(own(x) + 1), dim + 2); }, x);
    expect_as_eager([=](const Tensor& x) { return sum(counts(own(x) - 1), dim); }, x);
    expect_as_eager([=](const Tensor& x) { return sum(counts(dim + 1), own(x)); }, x);
    // The expression that is made first does not matter.
    expect_as_eager(
        [=](const Tensor& x) {
          const Tensor longer = counts(dim + 2);
          return sum(longer, own(x) + 1);
        },
        x);
    expect_as_eager(
        [=](const Tensor& x) {
          const Tensor shorter = counts(dim);
          return sum(shorter, own(x) - 1);
        },
        x);
    expect_as_eager(
        [=](const Tensor& x) {
          EXPECT_EQ(own(x) + 1, dim + 2);
          EXPECT_EQ((own(x) + 3) * 2, 2 * (dim + 4));
          EXPECT_EQ(own(x) - 1, dim);
          EXPECT_EQ(own(x) - 2, dim - 1);
          EXPECT_EQ(own(x) + dim, (dim + dim) + 1);
          EXPECT_FALSE(own(x) == dim);
          EXPECT_FALSE(own(x) + 1 == dim);
          EXPECT_FALSE(ceildiv(own(x), 2) == own(x) / 2);
          return x;
        },
        x);
  }
  const auto half = [](const Tensor& x) { return sum(counts(x.dim("label") / 2), label); };
  expect_as_eager(half, counts(label * 2));
}

TEST_P(ComputedDimsTest, SplittingAMultipleOfACapturedDimHasNoPadding) {
  const Dim two("two", 2);
  for (const Dim& dim : {label, label + 1, label + word}) {
    SCOPED_TRACE(str(dim));
    const auto split = [=](const Tensor& x) { return split_dim(x, dim * 2, {dim, two}); };
    expect_as_eager([=](const Tensor& x) { return sum(split(x), two) + counts(dim); },
                    counts(dim * 2));
    expect_as_eager(
        [=](const Tensor& x) {
          return grad([=](const Tensor& x) { return sum(square(split(x))); })(x);
        },
        counts(dim * 2));
    const auto wrong = run([=](const Tensor& x) { return split_dim(x, dim * 2, {dim * 2, two}); });
    EXPECT_EQ(message_of<ShapeError>([&] { wrong(counts(dim * 2)); }).substr(0, 15),
              "split_dim: axis");
  }
}

TEST_P(ComputedDimsTest, CapturedTensorsOfTheOperandMeetArgumentsOfTheExpression) {
  const Tensor captured = counts(label);
  expect_as_eager([=](const Tensor& x) { return x * pad(captured, label, 0, 1, 5., label + 1); },
                  counts(label + 1));
  expect_as_eager(
      [=](const Tensor& x) {
        const Tensor twice = captured * 2.;
        return sum(x, twice.dim("label") + 1);
      },
      counts(label + 1));
  expect_as_eager([=](const Tensor& x) { return sum(captured, label) + sum(x, label + 1); },
                  counts(label + 1));
  const auto both = run([](const Tensor& x, const Tensor& y) {
    return sum(x, label + 1) + sum(y, label + 2) + sum(counts(x.dim("label") + 1) * y, label + 2);
  });
  expect_values(both(counts(label + 1), counts(label + 2)), {6 + 10 + 30, 3 + 6 + 14});
  const auto beside =
      run([](const Tensor& x, const Tensor& y) { return sum(x, label + 1) + sum(y, label); });
  expect_values(beside(counts(label + 1), counts(label)), {9, 4});
}

TEST_P(ComputedDimsTest, BodiesBranchesRowsAndRecomputedFunctionsComputeDims) {
  const Tensor x = counts(label + 1);
  expect_as_eager(
      [](const Tensor& x) {
        return scan(Scan{.spatial_dim = label + 1,
                         .initial = zeros({batch}),
                         .xs = x,
                         .body =
                             [&](const Tensor& x_t, const Tensor& s) {
                               const Tensor next = s * 0.5 + x_t + sum(x, label + 1);
                               return std::pair{next, next};
                             }})
            .ys;
      },
      x);
  expect_as_eager(
      [](const Tensor& x) {
        const auto [i, s] =
            while_loop([](const Tensor& i, const Tensor&) { return i < 2; },
                       [](const Tensor& i, const Tensor& s) {
                         return std::tuple{i + 1, s + expand(sum(s, label + 1), label + 1)};
                       },
                       std::tuple{scalar(0), x});
        return s;
      },
      x);
  expect_as_eager(
      [](const Tensor& x) {
        const auto row = [&](const Tensor& r) {
          return cond(
              sum(x) > 0., [&] { return r * sum(x, label + 1); },
              [&] { return r + sum(counts(x.dim("label") + 1), label + 2); });
        };
        return vmap(row, three)(range(three, f32));
      },
      x);
  const auto of_row = [](const Tensor& row) { return sum(row * row, label + 1); };
  expect_as_eager([=](const Tensor& x) { return vmap(of_row, batch)(x); }, x);
  expect_as_eager([=](const Tensor& x) { return map(of_row, x, {.spatial_dim = batch}); }, x);
  expect_as_eager([=](const Tensor& x) { return checkpoint(of_row)(x); }, x);
}

TEST_P(ComputedDimsTest, GradientsComputeDimsAsEagerModeDoes) {
  const Tensor x = cast(counts(label + 1), f64);
  const auto loss = [](const Tensor& x) {
    const Tensor longer = pad(x, label + 1, 0, 1, 1., label + 2);
    return sum(sum(longer * longer * longer, x.dim("label") + 1), batch);
  };
  const auto of_gradient = [=](const Tensor& x) {
    return sum(sum(grad(loss)(x) * x, label + 1), batch);
  };
  expect_as_eager(grad(loss), x);
  expect_as_eager(grad(of_gradient), x);
  expect_as_eager([=](const Tensor& x) { return jvp(loss, std::tuple{x}, std::tuple{x}).second; },
                  x);
}

TEST_P(ComputedDimsTest, ComputedDimsMayStandBesideDimsThatGrow) {
  struct Grown {
    Tensor x;
    Dim dim;
  };
  expect_as_eager(
      [](const Tensor& x) {
        const auto [i, s] =
            while_loop([](const Tensor& i, const Grown&) { return i < 3; },
                       [](const Tensor& i, const Grown& s) {
                         const Dim longer = s.dim + 1;
                         return std::tuple{i + 1, Grown{pad(s.x, s.dim, 0, 1, 1., longer), longer}};
                       },
                       std::tuple{scalar(0), Grown{x, label + 1}});
        return sum(s.x, s.dim);
      },
      counts(label + 1));
}

TEST_P(ComputedDimsTest, FinishedEntriesOfAnEagerScanAroundTheCall) {
  const auto around = [&](auto f) {
    return scan(Scan{.spatial_dim = label,
                     .initial = zeros({batch}),
                     .xs = counts(label),
                     .body =
                         [&](const Tensor& x_t, const Tensor& s) {
                           const Tensor next = s + f(counts(label + 1), x_t);
                           return std::pair{next, next};
                         }})
        .ys;
  };
  const auto f = [](const Tensor& x, const Tensor& x_t) {
    return sum(x, label + 1) * x_t + sum(counts(x.dim("label") + 1), label + 2);
  };
  expect_all_close(mask_padding(around(run(f))), mask_padding(around(f)));
}

TEST_P(ComputedDimsTest, SlicesOfWordsHaveExpressionsOfTheWholeDim) {
  const Dim words("word", tensor({2, 1}, {batch}));
  const Dim letters("letter", tensor({{1, 3}, {2, 0}}, {batch, words}));
  const Tensor x = ones({batch, words, letters});
  const auto of_words = [=](auto f) {
    const auto padded = [=](const Tensor& word) {
      const Dim own = word.dim("letter");
      return f(pad(word, own, 0, 1, 5., own + 1));
    };
    return map(padded, x, {.spatial_dim = words});
  };
  const auto named = [=](const Tensor& word) { return sum(word, letters + 1); };
  const auto longer = [=](const Tensor& word) {
    return sum(ones({batch, word.dim("letter") + 1}), letters + 2);
  };
  expect_values(mask_padding(of_words(run(named))), {6, 7, 8, 0});
  expect_values(mask_padding(of_words(run(longer))), {3, 4, 5, 0});
  expect_values(mask_padding(run([=](const Tensor&) { return of_words(named); })(x)), {6, 7, 8, 0});
}

TEST_P(ComputedDimsTest, LoopsThatEagerModeRecords) {
  const auto loss = [](const Checkpoint& policy) {
    return [=](const Tensor& x) {
      const auto [i, s] =
          while_loop([](const Tensor& i, const Tensor&) { return i < 3; },
                     [&](const Tensor& i, const Tensor& s) {
                       return std::tuple{i + 1, s * s + 0.1 * expand(sum(x, label + 1), label + 1)};
                     },
                     std::tuple{scalar(0), x}, {.checkpoint = policy});
      return sum(sum(s, label + 1), batch);
    };
  };
  const Tensor x = cast(counts(label + 1) * 0.1, f64);
  expect_all_close(mask_padding(run(grad(loss(Checkpoint::every(2))))(x)),
                   mask_padding(grad(loss({}))(x)));
}

TEST_P(ComputedDimsTest, ADimThatGrowsFromCallToCallNeedsOneTraceBesideItsOperand) {
  const Tensor captured = counts(label);
  const auto longer = run([=](const Tensor& x) {
    const Dim dim = x.dim("label");
    return pad(x, dim, 0, 1, 0., dim + 1) * sum(captured, label);
  });
  Tensor x = counts(label + 1);
  for (int i = 0; i < 3; ++i) x = longer(x);
  EXPECT_EQ(x.dims(), (Dims{batch, label + 4}));
  EXPECT_EQ(longer.trace_count(), 1);
}

TEST(ComputedDimsErrorsTest, LaterCallsHaveTheDimThatTheFunctionNames) {
  const Dim other("label", tensor({1, 3}, {batch}));
  const std::string message =
      "jit \"jit\": the function names dim label+1[batch=2] itself, but this call's argument has "
      "label+1[batch=2]; the two called label are not one Dim: use one Dim for both, as "
      "x.dim(\"label\") gives it";
  const auto direct = jit([](const Tensor& x) { return sum(x, label + 1); });
  direct(counts(label + 1));
  EXPECT_EQ(message_of<ShapeError>([&] { direct(counts(other + 1)); }), message);
  const auto met = jit([](const Tensor& x) {
    const Dim own = x.dim("label");
    return sum(counts(own + 1), label + 2);
  });
  met(counts(label + 1));
  EXPECT_EQ(message_of<ShapeError>([&] { met(counts(other + 1)); }), message);
  // A function that does not relate the two takes any dim.
  const auto apart =
      jit([](const Tensor& x) { return sum(x, x.dim("label")) + sum(counts(label), label); });
  expect_values(apart(counts(label + 1)), {9, 4});
  expect_values(apart(counts(other + 1)), {6, 11});
  EXPECT_EQ(apart.trace_count(), 1);
}

TEST(ComputedDimsErrorsTest, LaterCallsHaveSlicesOfTheDimThatTheFunctionNames) {
  const auto letters_of = [](const Dim& words) {
    return Dim("letter", tensor({{1, 3}, {2, 0}}, {batch, words}));
  };
  const Dim words("word", tensor({2, 1}, {batch}));
  const Dim letters = letters_of(words), others = letters_of(words);
  const auto f = jit([=](const Tensor& word) { return sum(word, letters + 1); });
  const auto of_words = [&](const Dim& dim) {
    const auto padded = [&](const Tensor& word) {
      const Dim own = word.dim("letter");
      return f(pad(word, own, 0, 1, 5., own + 1));
    };
    return map(padded, ones({batch, words, dim}), {.spatial_dim = words});
  };
  of_words(letters);
  EXPECT_EQ(message_of<ShapeError>([&] { of_words(others); }),
            "jit \"jit\": the function names dim letter+1[batch=2,word[batch=2]] itself, of which "
            "letter+1[batch=2] of this call's argument is no slice\n"
            "in iteration 0 of map \"map\"");
}

}  // namespace
}  // namespace reel
