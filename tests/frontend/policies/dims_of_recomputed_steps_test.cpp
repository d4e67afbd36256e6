// An iteration that runs twice makes its dims twice: residuals that one run saved meet residuals of
// another run in a second gradient. Each symbol of the body is one dim all the same, in plans too.
#include "reel/tests/gradients.h"
#include "reel/tests/modes.h"

namespace reel {
namespace {

/// A scan over words. Each word has letters of its own, so each iteration makes a dim.
struct WordsOf {
  explicit WordsOf(std::int64_t count)
      : words("words", count),
        letters("letters", full({batch, words}, 2, i32)),
        x(cumsum(full({words, batch, letters}, 0.7, f64), letters)) {}

  /// policy: of the scan.
  auto loss(const Checkpoint& policy) const {
    return [this, policy](const Tensor& text) {
      const auto result = scan(Scan{.spatial_dim = words,
                                    .xs = text,
                                    .body =
                                        [this](const Tensor& word) {
                                          return logsumexp(cos(word), {word.dim("letters"), batch});
                                        },
                                    .checkpoint = policy});
      return sum(sin(text + result.ys));
    };
  }

  Dim batch{"batch", 2}, words, letters;
  Tensor x;
};

/// Returns a policy that gives `saving` to the values of all ops with these first letters.
Checkpoint saving_so(Saving saving, const std::string& letters) {
  return Checkpoint::every(3).where([saving, letters](const StepValue& value) {
    return letters.find(value.op[0]) == std::string::npos ? Saving::by_default : saving;
  });
}

TEST(DimsOfRecomputedStepsTest, SecondGradientsArePlanned) {
  for (const std::int64_t count : {1, 2, 3})
    for (const auto& [saving, letters] : std::vector<std::pair<Saving, std::string>>{
             {Saving::keep, "csw"}, {Saving::recompute, "cs"}, {Saving::spill, "csw"}}) {
      SCOPED_TRACE(str(count, " words, saving ", static_cast<int>(saving), " of ", letters));
      const WordsOf text(count);
      const auto slope = [&](const Checkpoint& policy) {
        return [&text, policy](const Tensor& x) { return sum(sin(grad(text.loss(policy))(x))); };
      };
      const auto planned = jit(grad(slope(saving_so(saving, letters))));
      const Tensor actual = planned(text.x);
      EXPECT_EQ(planned.explain().find("its plan failed"), std::string::npos)
          << planned.explain().substr(0, 600);
      expect_all_close(actual, grad(slope(Checkpoint()))(text.x), 1e-12);
      expect_gradient_of(slope(Checkpoint()), text.x, actual, 1e-6);
    }
}

/// Returns texts of two sentences: words, and their letters.
Tensor text_of_sentences(const std::vector<int>& words_of, const std::vector<int>& letters_of) {
  const Dim batch("batch", 2), words("words", tensor(words_of, {batch})),
      letters("letters", tensor(letters_of, {batch, words}));
  return mask_padding(cumsum(full({batch, words, letters}, 0.3, f64), letters));
}

class DimsInEveryMode : public InEveryMode {};
REEL_IN_EVERY_MODE(DimsInEveryMode);

/// The scan runs over the sentences, so each iteration has words and letters of its own. A rule
/// runs the iteration again: it makes its letters twice, and a residual may have either Dim.
TEST_P(DimsInEveryMode, LettersThatAnIterationMakesTwice) {
  const Tensor text = text_of_sentences({2, 1}, {2, 1, 1, 0});
  const auto loss = [](const Checkpoint& policy) {
    return [policy](const Tensor& x) {
      const Tensor y = scan(Scan{.spatial_dim = x.dim("batch"),
                                 .xs = x,
                                 .body = [](const Tensor& sentence) { return sin(sentence); },
                                 .checkpoint = policy})
                           .ys;
      return sum(0.5 * y + sin(y));
    };
  };
  const auto slope = [](const auto& f) {
    return [f](const Tensor& x) { return sum(sin(grad(f)(x))); };
  };
  const Tensor expected = mask_padding(grad(slope(loss(Checkpoint())))(text));
  for (const Saving saving : {Saving::by_default, Saving::keep, Saving::recompute, Saving::spill}) {
    const auto of_rule = loss(Checkpoint().where([saving](const StepValue&) { return saving; }));
    expect_all_close(mask_padding(run(grad(slope(of_rule)))(text)), expected, 1e-12);
    expect_all_close(mask_padding(grad(slope(run(of_rule)))(text)), expected, 1e-12);
  }
}

/// The carry of the innermost gradient has one element more than the history that it reads from a
/// list. Each comes from another run, with a Dim of its own.
TEST_P(DimsInEveryMode, CarriesWithADimComputedFromAnother) {
  const auto loss = [](const Tensor& x) {
    const Tensor start = full({x.dim("time")}, 0.5, f64);
    const auto of_row = [&](const Tensor& row, const Tensor& s) {
      const auto of_step = [&](const Tensor&, const Tensor&) {
        const Dim none("hist", scalar(1));
        const auto grow = [](const Tensor& x_t, const std::pair<Tensor, Dim>& s) {
          const auto longer = cum_concat(x_t * 0.5, tanh(s.first), s.second);
          return std::pair{sum(square(longer.first)), longer};
        };
        const auto made = scan(Scan{.spatial_dim = row.dim("time"),
                                    .initial = std::pair{full({none}, 0.25, f64), none},
                                    .xs = row,
                                    .body = grow});
        return std::pair{None{}, s + sum(made.state.first) + sum(made.ys)};
      };
      const Tensor last =
          scan(Scan{.spatial_dim = row.dim("time"), .initial = start, .xs = row, .body = of_step})
              .state;
      return std::pair{None{}, last};
    };
    const Tensor last =
        scan(Scan{.spatial_dim = x.dim("batch"), .initial = start, .xs = x, .body = of_row}).state;
    return sum(0.5 * last + sin(last));
  };
  const auto slope = [](const auto& f) {
    return [f](const Tensor& x) { return sum(sin(grad(f)(x))); };
  };
  const Dim batch("batch", 2), time("time", tensor({2, 1}, {batch}));
  const Tensor x = mask_padding(cumsum(full({batch, time}, 0.3, f64), time));
  const Tensor expected = mask_padding(grad(slope(loss))(x));
  expect_all_close(mask_padding(grad(slope(run(loss)))(x)), expected, 1e-12);
  expect_all_close(mask_padding(run(grad(slope(loss)))(x)), expected, 1e-12);
}

/// The residuals of the inner loop are a list for each sentence, and only this list tells the
/// gradient of an iteration how many words it has.
TEST(DimsOfRecomputedStepsTest, ListsOfResidualsWithOtherDims) {
  using State = std::pair<Tensor, Tensor>;
  const auto loss = [](const Tensor& x) {
    const auto twice = [](const Tensor& row) {
      return while_loop([](const State& s) { return s.second < 2; },
                        [&](const State& s) {
                          return State{tanh(s.first + row), s.second + 1};
                        },
                        State{row, scalar(0)})
          .first;
    };
    return sum(square(scan(Scan{.spatial_dim = x.dim("batch"), .xs = x, .body = twice}).ys));
  };
  const auto planned = jit(grad(loss));
  for (const std::vector<int>& lengths :
       std::vector<std::vector<int>>{{1, 2}, {2, 0}, {0, 0}, {3, 3}}) {
    const Dim batch("batch", 2), time("time", tensor(lengths, {batch}));
    const Tensor x = mask_padding(cumsum(full({batch, time}, 0.3, f64), time));
    expect_all_close(mask_padding(planned(x)), mask_padding(grad(loss)(x)), 1e-12);
    EXPECT_EQ(planned.explain().find("its plan failed"), std::string::npos)
        << planned.explain().substr(0, 600);
  }
}

/// The gradient's body reads an element of a list and a capture. Each has letters that another run
/// made, and the dataflow executor named them after the value that arrived first.
TEST_P(DimsInEveryMode, ElementsAndCapturesHaveTheSameLetters) {
  const auto loss = [](const Tensor& x) {
    const auto twice = [](const Tensor& sentence) {
      const auto step = [&](const Tensor& s) {
        return tanh(s + matmul(sentence, sentence, sentence.dim("words")));
      };
      return while_loop([](const Tensor&) { return true; }, step, sentence,
                        {.maximum_iterations = 2});
    };
    const Tensor y =
        scan(Scan{.spatial_dim = x.dim("batch"), .xs = x, .body = twice, .reverse = true}).ys;
    return sum(y + sin(y));
  };
  const auto in_mode = run(loss);
  const auto slope = [](const auto& f) {
    return [&f](const Tensor& x) { return sum(sin(grad(f)(x))); };
  };
  for (const auto& [words_of, letters_of] :
       std::vector<std::pair<std::vector<int>, std::vector<int>>>{
           {{2, 1}, {2, 1, 1, 0}}, {{0, 2}, {0, 0, 3, 1}}, {{0, 0}, {}}}) {
    const Tensor text = text_of_sentences(words_of, letters_of);
    expect_all_close(mask_padding(grad(slope(in_mode))(text)),
                     mask_padding(grad(slope(loss))(text)), 1e-12);
  }
}

/// The second derivative reverses a reversed graph. That graph computes an output twice, and merges
/// both with their dims. A cotangent of the output must get the dims that are left.
TEST(DimsOfRecomputedStepsTest, TangentsOfTangents) {
  const Tensor text = text_of_sentences({2, 1}, {2, 1, 1, 0});
  const Tensor along = mask_padding(sin(text));
  const auto curvature = [&](const Checkpoint& policy) {
    const auto loss = [policy](const Tensor& x) {
      return sum(sin(scan(Scan{.spatial_dim = x.dim("batch"),
                               .xs = x,
                               .body = [](const Tensor& sentence) { return sin(sentence); },
                               .checkpoint = policy})
                         .ys));
    };
    const auto slope = [loss, along](const Tensor& x) { return jvp(loss, x, along).second; };
    return [slope, along](const Tensor& x) { return jvp(slope, x, along).second; };
  };
  // The second derivative of sin(sin(x)) along v.
  const Tensor v = square(along), s = sin(text), c = cos(text);
  const Tensor expected = -sum(mask_padding(v * (sin(s) * square(c) + cos(s) * s)));
  expect_all_close(curvature(Checkpoint())(text), expected, 1e-12);
  for (const Saving saving : {Saving::by_default, Saving::keep, Saving::recompute, Saving::spill}) {
    const auto of_rule =
        curvature(Checkpoint().where([saving](const StepValue&) { return saving; }));
    expect_all_close(of_rule(text), expected, 1e-12);
    expect_all_close(jit(of_rule)(text), expected, 1e-12);
  }
}

/// max_seq_len makes a Dim, and the lengths of the result's words run over it. The loop and its
/// gradient's forward loop are merged, with both Dims and both dims of words.
TEST(DimsOfRecomputedStepsTest, WordsOverADimThatTheLoopMakes) {
  const Tensor text = text_of_sentences({2, 1}, {2, 1, 1, 0});
  const auto slope = [](int most, const Checkpoint& policy) {
    const auto loss = [most, policy](const Tensor& x) {
      const Tensor y = scan(Scan{.spatial_dim = x.dim("batch"),
                                 .xs = x,
                                 .body = [](const Tensor& sentence) { return sin(sentence); },
                                 .max_seq_len = scalar(most),
                                 .checkpoint = policy})
                           .ys;
      return sum(0.5 * y + sin(y));
    };
    return [loss](const Tensor& x) { return sum(sin(grad(loss)(x))); };
  };
  for (const int most : {1, 2, 5})
    for (const Saving saving :
         {Saving::by_default, Saving::keep, Saving::recompute, Saving::spill}) {
      const auto of_rule =
          slope(most, Checkpoint().where([saving](const StepValue&) { return saving; }));
      const Tensor expected = mask_padding(grad(slope(most, Checkpoint()))(text));
      expect_all_close(mask_padding(grad(of_rule)(text)), expected, 1e-12);
      expect_all_close(mask_padding(jit(grad(of_rule))(text)), expected, 1e-12);
      expect_gradient_of(of_rule, text, expected, 1e-6);
    }
}

/// An iteration is recomputed, and only its list of residuals tells its letters.
TEST(DimsOfRecomputedStepsTest, RecomputedListsWithOwnDims) {
  using State = std::pair<Tensor, Tensor>;
  const Tensor text = text_of_sentences({2, 1}, {2, 1, 1, 0});
  for (const int steps : {0, 2}) {
    const auto slope = [&](const Checkpoint& policy) {
      const auto run = [steps](const Tensor& word) {
        return while_loop([steps](const State& s) { return s.second < steps; },
                          [](const State& s) {
                            return State{tanh(s.first), s.second + 1};
                          },
                          State{word, scalar(0)})
            .first;
      };
      const auto loss = [policy, run](const Tensor& x) {
        const Tensor y =
            scan(Scan{.spatial_dim = x.dim("words"), .xs = x, .body = run, .checkpoint = policy})
                .ys;
        return sum(0.5 * y + sin(y));
      };
      return [loss](const Tensor& x) { return jvp(grad(loss), x, x).second; };
    };
    const Tensor expected = mask_padding(slope(Checkpoint())(text));
    for (const int every : {1, 2}) {
      const auto planned = jit(slope(Checkpoint::every(every)));
      expect_all_close(mask_padding(planned(text)), expected, 1e-12);
      EXPECT_EQ(planned.explain().find("its plan failed"), std::string::npos)
          << planned.explain().substr(0, 600);
    }
  }
}

/// A function under checkpoint(f) returns several values over the plain dim that its loop makes.
/// All of them have one dim, also where a plan runs the function without the call.
TEST(DimsOfRecomputedStepsTest, PlainDimThatACheckpointedFunctionMakes) {
  const Tensor xs = tensor({0.3, -0.4, 0.1}), start = tensor({{0.2, 0.5, -0.1}});
  for (int letter = 0; letter < 4; ++letter)
    for (const int most : {1, 2, 5}) {
      const SavingRule rule = [letter](const StepValue& value) {
        return Saving((value.op[0] + letter) % 4);
      };
      const auto loss = [&](bool has_policies) {
        const auto inner = [=](const std::pair<Tensor, Tensor>& p) {
          return scan(Scan{.initial = p.first,
                           .xs = p.second,
                           .body =
                               [p](const Tensor&, const Tensor& s) {
                                 return std::pair{sum(p.second), tanh(s + p.second)};
                               },
                           .max_seq_len = scalar(most),
                           .checkpoint = has_policies ? Checkpoint::every(1) : Checkpoint()})
              .state;
        };
        return [=](const Tensor& xs) {
          const std::pair argument{start, xs};
          const auto body = [&](const Tensor& row) {
            return row + (has_policies ? checkpoint(inner, rule)(argument) : inner(argument));
          };
          const Checkpoint policy = has_policies ? Checkpoint().where(rule) : Checkpoint();
          const Tensor y = scan(Scan{.xs = start, .body = body, .checkpoint = policy}).ys;
          return sum(0.5 * y + sin(y));
        };
      };
      const Tensor expected = grad(loss(false))(xs);
      expect_gradient_of(loss(false), xs, expected, 1e-6);
      expect_all_close(grad(loss(true))(xs), expected, 1e-12);
      expect_all_close(jit(grad(loss(true)))(xs), expected, 1e-12);
    }
}

/// The outer loop has a list of residuals for each inner loop. An inner loop recomputes them, so
/// that only a run of it tells the lengths of their letters, which come with an argument.
TEST(DimsOfRecomputedStepsTest, RecomputedListsInLists) {
  const Dim in("in", 3);
  const Tensor letter_ids = zeros({text_of_sentences({2, 1}, {2, 1, 1, 0}).dim("letters")}, i32);
  const Tensor row = cast(tensor({0.5, -1.0, 0.25}, {in}), f64);
  for (const int steps : {0, 1}) {
    const auto slope = [&](const Checkpoint& policy) {
      return [&, policy](const Tensor& at, const Tensor& ids) {
        using State = std::pair<Tensor, Tensor>;
        const auto loss = [&](const Tensor& x) {
          const auto body = [&](const State& s) {
            const Tensor inner =
                while_loop([&](const State& t) { return t.second < steps; },
                           [&](const State& t) {
                             const Tensor other = set_at(
                                 s.first, ids, sin(gather(s.first, mod(ids + 1, 3), in)), in);
                             return State{mean(other, {in}), t.second + 1};
                           },
                           State{x, scalar(0)}, {.checkpoint = policy})
                    .first;
            return State{s.first + inner, s.second + 1};
          };
          return sum(
              while_loop([](const State& s) { return s.second < 2; }, body, State{row, scalar(0)})
                  .first);
        };
        return hvp(loss, at, at);
      };
    };
    const Tensor x = scalar(0.75, f64), expected = slope(Checkpoint())(x, letter_ids);
    const auto planned = jit(slope(Checkpoint::every(3)));
    expect_all_close(planned(x, letter_ids), expected, 1e-12);
    EXPECT_EQ(planned.explain().find("its plan failed"), std::string::npos)
        << planned.explain().substr(0, 600);
  }
}

}  // namespace
}  // namespace reel
