// Dims with lengths over an axis: each slice along the axis has its own lengths.
#include "reel/tests/frontend/loops/words_and_letters.h"
#include "reel/tests/gradients.h"

namespace reel {
namespace {

class LengthsOfSlicesTest : public WordsAndLetters {};
REEL_IN_EVERY_MODE(LengthsOfSlicesTest);

TEST_P(LengthsOfSlicesTest, AReductionInAMapIsThatOfEachWord) {
  EXPECT_EQ(by_sentence(mapped([&](const Tensor& word) { return sum(word, letters); })),
            (Words{3, 3, 15, 7, 17}));
  EXPECT_EQ(by_sentence(mapped([&](const Tensor& word) { return mean(word, letters); })),
            (Words{1.5, 3, 5, 7, 8.5}));
  EXPECT_EQ(by_sentence(mapped([&](const Tensor& word) { return min(word + 1., letters); })),
            (Words{2, 4, 5, 8, 9}));
  EXPECT_EQ(by_sentence(mapped([&](const Tensor& word) { return max(-word, letters); })),
            (Words{-1, -3, -4, -7, -8}));
  EXPECT_EQ(by_sentence(mapped([&](const Tensor& word) { return prod(word, letters); })),
            (Words{2, 3, 120, 7, 72}));
  EXPECT_EQ(by_sentence(mapped([&](const Tensor& word) { return argmin(-word, letters); })),
            (Words{1, 0, 2, 0, 1}));
}

/// Softmax, logsumexp and similar functions agree with the whole text, where padding does not
/// count.
TEST_P(LengthsOfSlicesTest, FunctionsAlongTheLettersAreThoseOfTheWholeText) {
  const auto expect_same = [&](auto f) {
    const Tensor whole = f(text());
    expect_all_close(mapped(f), transpose(whole, mapped(f).dims()), 1e-12);
  };
  expect_same([&](const Tensor& x) { return mask_padding(softmax(x, letters)); });
  expect_same([&](const Tensor& x) { return mask_padding(logsumexp(x, letters)); });
  expect_same([&](const Tensor& x) { return mask_padding(cumsum(x, letters)); });
  expect_same([&](const Tensor& x) { return mask_padding(sort(x, letters, true)); });
  expect_same([&](const Tensor& x) { return mask_padding(reverse(x, letters)); });
  expect_same([&](const Tensor& x) { return mask_padding(shift(x, letters, 1)); });
  expect_same([&](const Tensor& x) {
    return mask_padding(pad(x, letters, 0, 1, 7., x.dim("letters") + 1));
  });
  expect_same([&](const Tensor& x) { return mask_padding(variance(x, letters)); });
  expect_same([&](const Tensor& x) {
    return mask_padding(gather(x, scalar(-1), letters, {.clip = true}));
  });
}

TEST_P(LengthsOfSlicesTest, AMapThatReturnsItsWordGivesTheTextBack) {
  const Tensor same = mapped([](const Tensor& word) { return word; });
  EXPECT_EQ(same.dims(), (Dims{words, batch, letters}));
  EXPECT_EQ(by_sentence(same), (Words{1, 2, 3, 4, 5, 6, 7, 8, 9}));
}

TEST_P(LengthsOfSlicesTest, AWordHasADimOfTheNameWithItsOwnLengths) {
  const Tensor lengths = mapped([](const Tensor& word) { return word.dim("letters").lengths(); });
  EXPECT_EQ(by_sentence(lengths), (Words{2, 1, 3, 1, 2}));
}

/// weights: of each place in a word.
TEST_P(LengthsOfSlicesTest, ATensorOfTheWholeDimMeetsEachWord) {
  const auto weighted = [&](const Tensor& word) { return word * cast(range(letters) + 1, f64); };
  EXPECT_EQ(by_sentence(mapped(weighted)), (Words{1, 4, 3, 4, 10, 18, 7, 8, 18}));
  EXPECT_EQ(by_sentence(mapped([&](const Tensor& word) {
              return matmul(word, cast(range(letters) + 1, f64), letters);
            })),
            (Words{5, 3, 32, 7, 26}));
  EXPECT_EQ(by_sentence(mapped([&](const Tensor& word) {
              return where(range(letters) > 0, word, zeros_like(word));
            })),
            (Words{0, 2, 0, 0, 5, 6, 0, 0, 9}));
  EXPECT_EQ(
      by_sentence(mapped([&](const Tensor& word) { return where(range(letters) > 0, word, 0.5); })),
      (Words{0.5, 2, 0.5, 0.5, 5, 6, 0.5, 0.5, 9}));
  EXPECT_EQ(
      by_sentence(mapped([&](const Tensor& word) { return where(range(letters) > 0, -1., word); })),
      (Words{1, -1, 3, 4, -1, -1, 7, 8, -1}));
  EXPECT_EQ(by_sentence(mapped(
                [&](const Tensor& word) { return clip(word, cast(range(letters), f64) * 4., 5); })),
            (Words{1, 4, 3, 4, 5, 5, 5, 5, 5}));
  EXPECT_EQ(by_sentence(mapped(
                [&](const Tensor& word) { return clip(word, 2, cast(range(letters) + 4, f64)); })),
            (Words{2, 2, 3, 4, 5, 6, 4, 4, 5}));
  EXPECT_EQ(by_sentence(mapped([&](const Tensor& word) {
              return linear_scan(cast(range(letters) + 1, f64), word, letters);
            })),
            (Words{1, 4, 3, 4, 13, 45, 7, 8, 25}));
}

TEST_P(LengthsOfSlicesTest, ScansOfLettersInScansOfWords) {
  const auto ends = [&](const Tensor& word) {
    return scan(Scan{.spatial_dim = letters,
                     .initial = zeros({batch}, f64),
                     .xs = word,
                     .body = [](const Tensor& letter, const Tensor& sum) {
                       const Tensor next = sum * 10. + letter;
                       return std::pair{next, next};
                     }});
  };
  EXPECT_EQ(by_sentence(mapped([&](const Tensor& word) { return ends(word).state; })),
            (Words{12, 3, 456, 7, 89}));
  EXPECT_EQ(by_sentence(mapped([&](const Tensor& word) { return ends(word).ys; })),
            (Words{1, 12, 3, 4, 45, 456, 7, 8, 89}));
}

TEST_P(LengthsOfSlicesTest, GatherTakesTheLengthsAlong) {
  const auto means = [&](const Tensor& index) {
    return valid(
        run([&](const Tensor& x) { return mean(gather(x, index, words), letters); })(text()));
  };
  const Dim beam("beam", 2), few("few", tensor({2, 1}, {batch}));
  EXPECT_EQ(means(scalar(0)), (Words{1.5, 7}));
  EXPECT_EQ(means(scalar(-1)), (Words{5, 8.5}));
  EXPECT_EQ(means(tensor({1, 0}, {beam})), (Words{3, 1.5, 8.5, 7}));
  EXPECT_EQ(means(tensor({2, 1}, {batch})), (Words{5, 8.5}));
  EXPECT_EQ(means(tensor({{2, 0}, {1, 0}}, {batch, few})), (Words{5, 1.5, 8.5}));
  EXPECT_EQ(means(tensor({{1, 2, 0}, {1, 0, 0}}, {batch, words})), (Words{3, 5, 1.5, 8.5, 7}));
}

TEST_P(LengthsOfSlicesTest, LengthsMoveWithTheirWords) {
  const auto means = [&](auto f) {
    return valid(run([&](const Tensor& x) { return mean(f(x), letters); })(text()));
  };
  EXPECT_EQ(means([&](const Tensor& x) { return reverse(x, words); }), (Words{5, 3, 1.5, 8.5, 7}));
  EXPECT_EQ(means([&](const Tensor& x) { return slice(x, words, 1); }), (Words{3, 5, 8.5}));
  EXPECT_EQ(means([&](const Tensor& x) { return slice(x, words, -1); }), (Words{5, 8.5}));
  EXPECT_EQ(means([&](const Tensor& x) { return slice(x, words, 0, {}, 2); }), (Words{1.5, 5, 7}));
  EXPECT_EQ(means([&](const Tensor& x) { return slice(x, words, -1, {}, -1); }),
            (Words{5, 3, 1.5, 8.5, 7}));
  EXPECT_EQ(means([&](const Tensor& x) { return slice(x, batch, 1); }), (Words{7, 8.5}));
}

TEST_P(LengthsOfSlicesTest, UnstackGivesEachWordItsLengths) {
  const Dim words("words", 3), letters("letters", tensor({2, 1, 3}, {words}));
  const Tensor x =
      mask_padding(tensor({{1., 2., 0.}, {3., 0., 0.}, {4., 5., 6.}}, {words, letters}, f64), kNaN);
  const auto f = [&](const Tensor& x) {
    const Tensors all = unstack(x, words);
    // Elements of one place are slices of one length.
    const Tensor last = all[2] + gather(x, scalar(2), words) + unstack(x * 2., words)[2];
    return stack({mean(all[0], letters), mean(all[1], letters), mean(last, letters)}, Dim("of", 3));
  };
  expect_values(run(f)(x), {1.5, 3, 20});
  const Tensor gradient = run(grad([&](const Tensor& x) { return sum(square(f(x))); }))(x);
  EXPECT_EQ(valid(gradient).size(), 6u);
  expect_gradient_of([&](const Tensor& x) { return sum(square(f(x))); }, mask_padding(x),
                     mask_padding(gradient), 1e-6);
}

/// Elements of an array have one type: padding of a word becomes elements of value 0, which count.
TEST_P(LengthsOfSlicesTest, ElementsOfAnArrayHaveTheWholeDim) {
  const Tensor word =
      run([&](const Tensor& x) { return TensorArray::unstack(x, words).read(0); })(text());
  EXPECT_EQ(word.dims(), (Dims{batch, letters}));
  expect_values(word, {1, 2, 0, 7, 0, 0});
}

/// Slices at one place have one Dim. Slices of different words have two Dims, which do not
/// broadcast together.
TEST_P(LengthsOfSlicesTest, SlicesOfOneWordMeetAndOthersDoNot) {
  const auto both = [&](int a, int b) {
    return run([=, this](const Tensor& x) {
      return gather(x, scalar(a), words) + gather(x * 10., scalar(b), words);
    })(text());
  };
  EXPECT_EQ(valid(both(1, 1)), (Words{33, 88, 99}));
  EXPECT_TRUE(message_of<ShapeError>([&] { both(0, 1); }).starts_with("add: dims differ"));
  const auto stacked = [&](const Tensor& x) {
    return stack({gather(x, scalar(0), words), gather(x, scalar(1), words)}, Dim("both", 2));
  };
  EXPECT_TRUE(
      message_of<ShapeError>([&] { run(stacked)(text()); }).starts_with("stack: dims differ"));
}

/// A table of letters by letters has both dims: an operand with the slice alone meets the slice.
TEST_P(LengthsOfSlicesTest, ATensorWithASliceBesideTheWholeDimMeetsOthersAtTheSlice) {
  const auto table_of = [&](const Tensor& word, const Dims& entries) {
    Dims dims = entries;
    dims.push_back(word.dim("letters"));
    dims.push_back(letters);
    return ones(dims, f64);
  };
  const auto weighted = [&](const Tensor& x) {
    const Tensor word = gather(x, scalar(0), words);
    return sum(word * table_of(word, {batch}), letters);
  };
  EXPECT_EQ(valid(run(weighted)(text())), (Words{3, 6, 21}));
  const auto without_batch = [&](const Tensor& x) {
    const Tensor word = gather(x, scalar(0), words);
    return sum(minimum(word, table_of(word, {})));
  };
  EXPECT_TRUE(message_of<ShapeError>([&] {
                run(without_batch)(text());
              }).starts_with("minimum: dims differ: "));
}

/// Jitted calls, and eager loops that are recorded for a gradient, make the dims of their results.
TEST_P(LengthsOfSlicesTest, TheWholeDimFindsItsAxisInResultsOfTraces) {
  const auto expect_sums = [&](const char* what, auto f, const Words& sums) {
    SCOPED_TRACE(what);
    EXPECT_EQ(valid(sum(run(f)(text()), letters)), sums);
    Tensor found;
    const auto total = [&](const Tensor& x) {
      const Tensor result = run(f)(x);
      found = sum(result, letters);
      return sum(result);
    };
    value_and_grad(total)(text());
    EXPECT_EQ(valid(found), sums);
  };
  const auto word = [&](const Tensor& x) { return gather(x, scalar(1), words); };
  expect_sums("a slice", word, {3, 17});
  const Tensor swapped = tensor({1, 0}, {Dim("beam", 2)});
  expect_sums("a slice of a slice",
              [&](const Tensor& x) { return gather(word(x), swapped, batch); }, {17, 3});
  expect_sums("words", [&](const Tensor& x) { return slice(x, words, 1); }, {3, 15, 17});
  for (const Checkpoint& policy : {Checkpoint(), Checkpoint::every(1)})
    expect_sums("a scan that ends before its dim",
                [&](const Tensor& x) {
                  return transpose(scan(Scan{.spatial_dim = words,
                                             .xs = x,
                                             .body = [](const Tensor& word) { return word; },
                                             .max_seq_len = 2,
                                             .checkpoint = policy})
                                       .ys,
                                   {1, 0, 2});
                },
                {3, 3, 7, 17});
  expect_sums("what a loop hands on",
              [&](const Tensor& x) {
                return fori_loop(0, 2, [](const Tensor&, const Tensor& s) { return s * 2.; },
                                 word(x), {.checkpoint = Checkpoint::every(1)});
              },
              {12, 68});
}

struct Word {
  Tensor letters;
  Dim dim;
};

TEST_P(LengthsOfSlicesTest, AStateCarriesAWordWithItsDim) {
  const auto pairs = [&](const Tensor& x) {
    const Tensor first = gather(x, scalar(0), words);
    return scan(Scan{.spatial_dim = words,
                     .initial = Word{first, first.dim("letters")},
                     .xs = x,
                     .body = [&](const Tensor& word, const Word& before) {
                       return std::pair{mean(before.letters, letters) + mean(word, letters) * 10.,
                                        Word{word, word.dim("letters")}};
                     }});
  };
  const auto ys = run([&](const Tensor& x) { return pairs(x).ys; })(text());
  EXPECT_EQ(by_sentence(ys), (Words{16.5, 31.5, 53, 77, 92}));
  const auto last = run([&](const Tensor& x) { return pairs(x).state.letters; })(text());
  EXPECT_EQ(valid(last), (Words{4, 5, 6, 8, 9}));
}

TEST_P(LengthsOfSlicesTest, AStateWithoutThatDimRefusesAWord) {
  EXPECT_EQ(message_of<ShapeError>([&] {
              run([&](const Tensor& x) {
                return scan(Scan{.spatial_dim = words,
                                 .initial = zeros({batch, letters}, f64),
                                 .xs = x,
                                 .body =
                                     [](const Tensor& word, const Tensor& s) {
                                       return std::pair{None{}, s + word};
                                     }})
                    .state;
              })(text());
            }),
            "scan \"scan\": the state returned by the body differs from the state it was given\n"
            "  state: f64[batch=2,letters[batch=2,words[batch=2]]] going in, "
            "f64[batch=2,letters[batch=2]] coming out (dims differ)\n"
            "Return every leaf with the type it had on entry.");
}

TEST_P(LengthsOfSlicesTest, ReverseScansAndFoldsHaveTheLengthsOfTheirWords) {
  const auto f = [&](const Tensor& x) {
    return scan(Scan{.spatial_dim = words,
                     .initial = zeros({batch}, f64),
                     .xs = x,
                     .body =
                         [&](const Tensor& word, const Tensor& s) {
                           const Tensor next = s * 10. + mean(word, letters);
                           return std::pair{word + next, next};
                         },
                     .reverse = true});
  };
  const Tensor ys = run([&](const Tensor& x) { return f(x).ys; })(text());
  EXPECT_EQ(ys.dims(), (Dims{words, batch, letters}));
  EXPECT_EQ(by_sentence(ys), (Words{532.5, 533.5, 56, 9, 10, 11, 99, 16.5, 17.5}));
  const auto folded = [&](const Tensor& x) {
    return foldr([&](const Tensor& s, const Tensor& word) { return s * 10. + mean(word, letters); },
                 x, zeros({batch}, f64), {.spatial_dim = words});
  };
  expect_values(run(folded)(text()), {531.5, 92});
}

/// The loop has a dim of its own then, over which the letters' lengths run.
TEST_P(LengthsOfSlicesTest, AScanThatEndsBeforeItsDimStacksWordsWithTheirLengths) {
  const auto first_two = [&](const Tensor& x) {
    return scan(Scan{.spatial_dim = words,
                     .xs = x,
                     .body = [](const Tensor& word) { return word; },
                     .max_seq_len = 2})
        .ys;
  };
  const Tensor some = run(first_two)(text());
  EXPECT_EQ(valid(transpose(some, {1, 0, 2})), (Words{1, 2, 3, 7, 8, 9}));
  const auto until_large = [&](const Tensor& x) {
    return mean(scan(Scan{.spatial_dim = words,
                          .cond_dims = {batch},
                          .initial = zeros({batch}, f64),
                          .xs = x,
                          .cond = [](const Tensor& s) { return s < 4.; },
                          .body =
                              [&](const Tensor& word, const Tensor& s) {
                                return std::pair{word, s + mean(word, letters)};
                              }})
                    .ys,
                letters);
  };
  EXPECT_EQ(valid(run(until_large)(text())), (Words{1.5, 7, 3}));
}

TEST_P(LengthsOfSlicesTest, GradientsOfEveryOrder) {
  for (const bool is_reverse : {false, true})
    for (const Checkpoint& policy : {Checkpoint{}, Checkpoint::every(2)}) {
      const auto loss = [&](const Tensor& x) {
        return sum(scan(Scan{.spatial_dim = words,
                             .initial = ones({batch}, f64),
                             .xs = x,
                             .body =
                                 [&](const Tensor& word, const Tensor& s) {
                                   const Tensor next = s * mean(square(word), letters) / 10.;
                                   return std::pair{softmax(word * .1, letters) * next, next};
                                 },
                             .reverse = is_reverse,
                             .checkpoint = policy})
                       .ys);
      };
      const Tensor gradient = run(grad(loss))(text());
      expect_gradient_of(loss, text(0), mask_padding(gradient), 1e-6);
      const auto slope = [&](const Tensor& x) { return sum(square(grad(loss)(x))); };
      expect_gradient_of(slope, text(0), mask_padding(run(grad(slope))(text())), 1e-5);
    }
}

/// Three nested ragged dims: texts, sentences and words, with a map along each.
TEST_P(LengthsOfSlicesTest, MapsAlongThreeNestedRaggedDimsSeeTheLengths) {
  const Dim texts("texts", 2), sentences("sentences", tensor({2, 1}, {texts})),
      words("words", tensor({{2, 1}, {3, 0}}, {texts, sentences})),
      letters("letters",
              tensor({{{2, 1, 0}, {3, 0, 0}}, {{1, 2, 2}, {0, 0, 0}}}, {texts, sentences, words}));
  const Dims dims{texts, sentences, words, letters};
  const Tensor x = mask_padding(random_normal(dims, f64), kNaN);
  const Tensor expected = mean(x, letters);
  const auto by_words = [&](const Tensor& sentence) {
    return map([&](const Tensor& word) { return mean(word, letters); }, sentence,
               {.spatial_dim = words});
  };
  const auto by_sentences = [&](const Tensor& text) {
    return map(by_words, text, {.spatial_dim = sentences});
  };
  const auto expect_means = [&](const Tensor& means) {
    EXPECT_EQ(valid(transpose(means, Axes(expected.dims()))), valid(expected));
  };
  expect_means(run(by_sentences)(x));
  expect_means(run([&](const Tensor& x) {
    return map([&](const Tensor& text) { return by_sentences(text); }, x, {.spatial_dim = texts});
  })(x));
  const Tensor same = run([&](const Tensor& x) {
    return map([](const Tensor& sentence) { return sentence; }, x, {.spatial_dim = sentences});
  })(x);
  EXPECT_EQ(same.dim("letters"), letters);
  EXPECT_EQ(valid(transpose(same, Axes(dims))), valid(x));
  const auto of_first = [&](const Tensor& x) {
    return mean(gather(x, scalar(0), sentences), {words, letters});
  };
  expect_all_close(run(of_first)(x), gather(mean(x, {words, letters}), scalar(0), 1), 1e-12);
}

TEST_P(LengthsOfSlicesTest, OneTraceServesTextsOfOtherLengths) {
  const auto f = run([](const Tensor& x) {
    const Dim letters = x.dim("letters");
    return map([&](const Tensor& word) { return mean(word, letters); }, x,
               {.spatial_dim = x.dim("words")});
  });
  EXPECT_EQ(by_sentence(f(text())), (Words{1.5, 3, 5, 7, 8.5}));
  const Dim one("batch", 1), words("words", tensor({2}, {one})),
      letters("letters", tensor({{1, 4}}, {one, words}));
  const Tensor other =
      tensor({{{5., kNaN, kNaN, kNaN}, {1., 2., 6., 7.}}}, {one, words, letters}, f64);
  expect_values(f(other), {5, 4});
}

// Over no sentences, a plan cannot know the dims of words and letters; a limit keeps the loop open.
TEST_P(LengthsOfSlicesTest, AScanOverNoSentenceWithALimitHasAGradient) {
  const Dim none("batch", 0), words("words", tensor(std::vector<int>{}, {none})),
      letters("letters", tensor(std::vector<int>{}, {none, words}));
  const Tensor x = tensor(std::vector<double>{}, {letters, none, words});
  const auto loss = [](const Tensor& x, const Tensor& limit) {
    const auto by_letter = [](const Tensor& sentence, None) {
      const auto same = [](const Tensor& letter, None) { return std::pair{letter, None{}}; };
      return std::pair{scan(Scan{.spatial_dim = sentence.dim("letters"),
                                 .initial = None{},
                                 .xs = sentence,
                                 .body = same})
                           .ys,
                       None{}};
    };
    return sum(sin(scan(Scan{.spatial_dim = x.dim("batch"),
                             .initial = None{},
                             .xs = x,
                             .body = by_letter,
                             .max_seq_len = limit})
                       .ys));
  };
  EXPECT_EQ(run(grad(loss))(x, scalar(0)).dims(), x.dims());
}

/// A slice may outlive the dims that a body with finished entries sees. The next iteration has new
/// dims, often at the same addresses, and must not find the old slices by them.
TEST(SlicesOfIterationsTest, HeldSliceIsNotTakenForThatOfAnotherDim) {
  const Dim both("batch", 2), one("one", 1), time("time", tensor({1, 6}, {both})),
      letters("letters", tensor({{1, 0, 0, 0, 0, 0}, {2, 3, 1, 1, 2, 3}}, {both, time}));
  const Tensor x = expand(full({}, 1., f64), {both, time, letters});
  Tensor kept;
  int iterations = 0;
  scan(Scan{.spatial_dim = time,
            .initial = None{},
            .xs = expand(full({}, 1., f64), {both, time}),
            .body = [&](const Tensor& row, None none) {
              kept = slice(x, both, 1, 2, one);
              EXPECT_EQ(kept.type().dims()[1].name(), "time");
              EXPECT_EQ(kept.type().dims()[2].name(), "letters");
              expect_values(sum(kept, kept.dim("letters")), {2, 3, 1, 1, 2, 3});
              ++iterations;
              return std::pair{row, none};
            }});
  EXPECT_EQ(iterations, 6);
}

/// Reductions over words count all letters, as before: lengths are not one word's there.
TEST_P(LengthsOfSlicesTest, ASumOverWordsCountsLettersAsFull) {
  const Tensor all = run([&](const Tensor& x) { return sum(x, words); })(text());
  EXPECT_EQ(all.dims(), (Dims{batch, letters}));
  expect_values(all, {8, 7, 6, 15, 9, 0});
}

}  // namespace
}  // namespace reel
