// Functions along an axis that lengths run over: words that are moved, joined or merged keep their
// letters.
#include "reel/tests/frontend/loops/words_and_letters.h"
#include "reel/tests/gradients.h"

namespace reel {
namespace {

class LengthsOfMovedWordsTest : public WordsAndLetters {
 protected:
  template <class F>
  Words means(const F& f) const {
    return valid(run([&](const Tensor& x) { return mean(f(x), letters); })(text()));
  }
  template <class F>
  Words elements(const F& f) const {
    return valid(run(f)(text()));
  }
  Dim more{"words", tensor({5, 4}, {batch})};
};
REEL_IN_EVERY_MODE(LengthsOfMovedWordsTest);

/// Whatever the value, words that pad adds have no letters.
TEST_P(LengthsOfMovedWordsTest, PadAddsWordsWithoutLetters) {
  const auto padded = [](const Dim& words, double value) {
    return [=](const Tensor& x) { return pad(x, words, 1, 1, value); };
  };
  for (const double value : {0., 100.}) {
    EXPECT_EQ(means(padded(words, value)), (Words{0, 1.5, 3, 5, 0, 0, 7, 8.5, 0}));
    EXPECT_EQ(elements(padded(words, value)), (Words{1, 2, 3, 4, 5, 6, 7, 8, 9}));
  }
  const auto most = [&](const Tensor& x) { return max(pad(x, words, 2, 0, 100.)); };
  expect_values(run(most)(text()), {9});
  const Tensor few = tensor({{1, 2}, {3, 0}}, {batch, Dim("time", tensor({2, 1}, {batch}))}, f64);
  const Tensor sums = run([&](const Tensor& x) { return mean(pad(x, 0, 1, 0, 100.), 1); })(few);
  expect_values(sums, {0, 1.5, 3});
  EXPECT_EQ(message_of<DTypeError>([&] { pad(cast(text(0), i32), words, 0, 1, .5); }).substr(0, 19),
            "pad: 0.5 does not f");
}

TEST_P(LengthsOfMovedWordsTest, ShiftMovesLettersWithTheirWords) {
  const auto shifted = [&](std::int64_t n, double value = 0) {
    return [=, this](const Tensor& x) { return shift(x, words, n, value); };
  };
  EXPECT_EQ(means(shifted(1)), (Words{0, 1.5, 3, 0, 7}));
  EXPECT_EQ(elements(shifted(1, 100)), (Words{1, 2, 3, 7}));
  EXPECT_EQ(means(shifted(-1)), (Words{3, 5, 0, 8.5, 0}));
  EXPECT_EQ(elements(shifted(-2, 100)), (Words{4, 5, 6}));
  const Tensor same = run(shifted(0))(text());
  EXPECT_EQ(same.dims(), text().dims());
}

TEST_P(LengthsOfMovedWordsTest, RenameGivesTheLettersTheNewWords) {
  const Dim other("other", tensor({3, 2}, {batch}));
  EXPECT_EQ(means([&](const Tensor& x) { return rename(x, words, other); }),
            (Words{1.5, 3, 5, 7, 8.5}));
  const Dim texts("texts", 2);
  EXPECT_EQ(means([&](const Tensor& x) { return rename(x, batch, texts); }),
            (Words{1.5, 3, 5, 7, 8.5}));
  const Tensor back =
      run([&](const Tensor& x) { return rename(rename(x, batch, texts), texts, batch); })(text());
  EXPECT_EQ(back.dims(), text().dims());
}

/// The maximum over words has letters, but not the words that their lengths run over.
TEST_P(LengthsOfMovedWordsTest, LettersWithoutTheirWordsComeBack) {
  const Dim other("other", 2);
  const auto renamed = [&](const Tensor& x) {
    const Tensor there = rename(x, batch, other);
    return rename(max(there, {there.dim("words")}), other, batch);
  };
  const auto reversed = [&](const Tensor& x) {
    const Tensor back = reverse(x, batch);
    return reverse(max(back, {back.dim("words")}), batch);
  };
  const Tensor x = text(0.), expected = max(x, {words});
  for (const Tensor& actual : {run(renamed)(x), run(reversed)(x)}) {
    EXPECT_EQ(actual.dims(), (Dims{batch, letters}));
    expect_all_close(actual + x, expected + x);
  }
}

TEST_P(LengthsOfMovedWordsTest, MergedWordsKeepTheirLetters) {
  const Dim beam("beam", 2);
  EXPECT_EQ(means([&](const Tensor& x) {
              return merge_dims(x, {batch, words}, {.counts_padding = true});
            }),
            (Words{1.5, 3, 5, 7, 8.5, 0}));
  EXPECT_EQ(means([&](const Tensor& x) {
              return merge_dims(expand(x, {batch, beam, words, letters}), {batch, beam});
            }),
            (Words{1.5, 3, 5, 1.5, 3, 5, 7, 8.5, 7, 8.5}));
  const Tensor back = run([&](const Tensor& x) {
    const Dim all("all", 6);
    return split_dim(merge_dims(x, {batch, words}, all, {.counts_padding = true}), all,
                     {batch, words});
  })(text());
  EXPECT_EQ(back.dims(), text().dims());
  EXPECT_EQ(valid(back), valid(text()));
}

/// Pairs of words: [1 2] [3] | [4 5 6] [] and [7] [8 9].
TEST_P(LengthsOfMovedWordsTest, SplitWordsKeepTheirLetters) {
  const Dim pair("pair", 2);
  EXPECT_EQ(means([&](const Tensor& x) {
              return split_dim(x, words, {Dim("pairs"), pair}, {.fill = 7});
            }),
            (Words{1.5, 3, 5, 0, 7, 8.5}));
}

TEST_P(LengthsOfMovedWordsTest, PackedWordsKeepTheirLetters) {
  EXPECT_EQ(means([&](const Tensor& x) {
              return pack(x, {batch, words});
            }),
            (Words{1.5, 3, 5, 7, 8.5}));
  const auto long_ones = [&] { return letters.lengths() > 1; };
  EXPECT_EQ(means([&](const Tensor& x) { return pack(x, long_ones()); }), (Words{1.5, 5, 8.5}));
  EXPECT_EQ(means([&](const Tensor& x) { return pack(x, long_ones(), words); }),
            (Words{1.5, 5, 8.5}));
  const Tensor back = run([&](const Tensor& x) {
    const Dim packed("packed");
    const Tensor flat = pack(x, {batch, words}, packed);
    return unpack(flat, 0, {batch, words}) + x;
  })(text());
  EXPECT_EQ(valid(back), (Words{2, 4, 6, 8, 10, 12, 14, 16, 18}));
}

TEST_P(LengthsOfMovedWordsTest, UnpackGivesWordsThatAreNotThereNoLetters) {
  const auto unpacked = [&](const auto& backup) {
    return [&, this](const Tensor& x) {
      const Tensor mask = letters.lengths() > 1;
      return unpack(pack(x, mask), 0, mask, {batch, words}, backup(x));
    };
  };
  EXPECT_EQ(means([&](const Tensor& x) {
              const Tensor mask = letters.lengths() > 1;
              const Tensor flat = mask_padding(pack(x, mask));
              return unpack(rename(flat, 0, Dim("few", 3)), 0, mask);
            }),
            (Words{1.5, 0, 5, 0, 8.5}));
  const auto most = [&](const Tensor& x) {
    const Tensor mask = letters.lengths() > 1;
    return max(unpack(rename(pack(x, mask), 0, Dim("few", 3)), 0, mask, {batch, words}, 100));
  };
  expect_values(run(most)(text()), {9});
  EXPECT_EQ(elements(unpacked([](const Tensor& x) { return Tensor(x * 10.); })),
            (Words{1, 2, 30, 4, 5, 6, 70, 8, 9}));
  EXPECT_EQ(elements([&](const Tensor& x) {
              const Tensor mask = letters.lengths() > 1;
              const Tensor flat = rename(pack(x, mask), 0, Dim("few", 3));
              return unpack(flat, 0, mask, x * 10.);
            }),
            (Words{1, 2, 30, 4, 5, 6, 70, 8, 9}));
}

TEST_P(LengthsOfMovedWordsTest, ConcatJoinsLengths) {
  EXPECT_EQ(means([&](const Tensor& x) {
              return concat({x, slice(x, words, 0, 1)}, words);
            }),
            (Words{1.5, 3, 5, 1.5, 7, 8.5, 7}));
  EXPECT_EQ(means([&](const Tensor& x) {
              return concat({x, x}, batch);
            }),
            (Words{1.5, 3, 5, 7, 8.5, 1.5, 3, 5, 7, 8.5}));
  EXPECT_EQ(means([&](const Tensor& x) {
              const Tensor rest = slice(x, words, 1);
              return concat({rest, slice(x, words, 0, 1)}, rest.dim("words"));
            }),
            (Words{3, 5, 1.5, 8.5, 7}));
  // Letters of another text, and words with as many letters as there are places.
  const Dim few("words", tensor({1, 2}, {batch})),
      others("letters", tensor({{2, 0}, {1, 3}}, {batch, few}));
  const Tensor second =
      mask_padding(tensor({{{10., 20., 0.}, {0., 0., 0.}}, {{30., 0., 0.}, {40., 50., 60.}}},
                          {batch, few, others}, f64),
                   kNaN);
  EXPECT_EQ(means([&](const Tensor& x) {
              return concat({x, second}, words);
            }),
            (Words{1.5, 3, 5, 15, 7, 8.5, 30, 50}));
  const Dim one("one", 1);
  EXPECT_EQ(elements([&](const Tensor& x) {
              return sum(concat({ones({batch, one, letters}, f64), x}, one), letters);
            }),
            (Words{3, 3, 3, 15, 3, 7, 17}));
}

TEST_P(LengthsOfMovedWordsTest, AHistoryOfWordsGrowsByAWord) {
  EXPECT_EQ(means([&](const Tensor& x) {
              return cum_concat(gather(x, scalar(0), words), x, words).first;
            }),
            (Words{1.5, 3, 5, 1.5, 7, 8.5, 7}));
}

TEST_P(LengthsOfMovedWordsTest, PartsHaveTheLettersOfTheirWords) {
  const Dim words("words", 4), letters("letters", tensor({2, 1, 3, 0}, {words})), half("half", 2);
  const Tensor x = mask_padding(
      tensor({{1., 2., 0.}, {3., 0., 0.}, {4., 5., 6.}, {0., 0., 0.}}, {words, letters}, f64),
      kNaN);
  const auto halves = run([&](const Tensor& x) {
    const Tensors parts = split(x, words, 2, half);
    return stack({mean(parts[0], letters), mean(parts[1], letters)}, Dim("of", 2));
  })(x);
  expect_values(halves, {1.5, 3, 5, 0});
  const auto again = run([&](const Tensor& x) {
    const Tensors parts = split(x, words, 2, half);
    return mean(concat({parts[1], parts[0]}, half), letters);
  })(x);
  expect_values(again, {5, 0, 1.5, 3});
}

/// The largest are 4 and 3 among the first letters, 5 and 2 among the second, 6 among the third.
TEST_P(LengthsOfMovedWordsTest, TheLargestOfWordsAndSortedWords) {
  EXPECT_EQ(elements([&](const Tensor& x) { return top_k(x, words, Dim("k", 2)).values; }),
            (Words{4, 5, 6, 3, 2, 8, 9, 7}));
  EXPECT_EQ(means([&](const Tensor& x) { return top_k(x, words, Dim("k", 3)).values; }),
            (Words{5, 2.5, 1, 8.5, 7, 0}));
  EXPECT_EQ(
      elements([&](const Tensor& x) { return cast(top_k(x, words, Dim("k", 2)).indices, f64); }),
      (Words{2, 2, 2, 1, 0, 1, 1, 0}));
  EXPECT_EQ(means([&](const Tensor& x) { return sort(x, words, true); }), (Words{4.5, 3, 3, 8, 8}));
}

TEST_P(LengthsOfMovedWordsTest, ReshapeKeepsTheLettersOfEachEntryOrRefuses) {
  const Dim batch("batch", 2), words("words", 2), all("all", 4), one("one", 1),
      letters("letters", tensor({{2, 1}, {3, 0}}, {batch, words}));
  const Tensor x = mask_padding(tensor({{{1., 2., 0.}, {3., 0., 0.}}, {{4., 5., 6.}, {0., 0., 0.}}},
                                       {batch, words, letters}, f64),
                                kNaN);
  const auto means = [&](auto f) {
    return valid(run([&](const Tensor& x) { return mean(f(x), letters); })(x));
  };
  EXPECT_EQ(means([&](const Tensor& x) {
              return reshape(x, {all, letters});
            }),
            (Words{1.5, 3, 5, 0}));
  EXPECT_EQ(means([&](const Tensor& x) {
              return reshape(x, {batch, one, words, letters});
            }),
            (Words{1.5, 3, 5, 0}));
  EXPECT_EQ(means([&](const Tensor& x) { return squeeze(slice(x, batch, 1, {}, one), one); }),
            (Words{5, 0}));
  const auto swapped = [&](const Tensor& x) { return reshape(x, {words, batch, letters}); };
  EXPECT_EQ(message_of<ShapeError>([&] {
              run([&](const Tensor& x) {
                return reshape(transpose(x, {letters, batch, words}), {letters, all});
              })(x);
            }).substr(0, 17),
            "reshape: letters[");
  EXPECT_EQ(means(swapped), (Words{1.5, 3, 5, 0}));
}

/// Elements that do not move within an entry keep their Dim.
TEST_P(LengthsOfMovedWordsTest, ResultsOfEqualCallsMeet) {
  const Dim all("words", tensor({6, 4}, {batch}));
  EXPECT_EQ(elements([&](const Tensor& x) {
              return pad(x, words, 0, 2, 0, more) + pad(x * 10., words, 0, 2, 0, more);
            }),
            (Words{11, 22, 33, 44, 55, 66, 77, 88, 99}));
  EXPECT_EQ(
      elements([&](const Tensor& x) { return shift(x, words, 1) + shift(x * 10., words, 1); }),
      (Words{11, 22, 33, 77}));
  EXPECT_EQ(means([&](const Tensor& x) {
              return concat({x, x}, words, all) + concat({x * 10., x * 10.}, words, all);
            }),
            (Words{16.5, 33, 55, 16.5, 33, 55, 77, 93.5, 77, 93.5}));
}

/// New words have no letters, though letters + 1 have one more.
TEST_P(LengthsOfMovedWordsTest, LengthsOfComputedDimsAreZeroInNewPlaces) {
  EXPECT_EQ(elements([&](const Tensor& x) {
              const Tensor longer = pad(x, letters, 0, 1, 7., letters + 1);
              return mean(pad(longer, words, 1, 0, 100.), letters + 1);
            }),
            (Words{0, 10 / 3., 5, 5.5, 0, 7, 8}));
}

/// An index that clip moves is another element than one that reads padding.
TEST_P(LengthsOfMovedWordsTest, AClippedIndexIsNotTheElementThatIsNotThere) {
  const auto both = [&](const Tensor& x) {
    const Tensor clipped = gather(x, scalar(2), words, {.clip = true}),
                 third = gather(x, scalar(2), words);
    return stack({mean(clipped, letters), mean(third, letters)}, Dim("of", 2));
  };
  expect_values(run(both)(text()), {5, 8.5, 5, 0});
}

/// Ten times words 1 and 0 are added to the same words. Letters beyond the end are not added.
TEST_P(LengthsOfMovedWordsTest, WordsAreScatteredWithTheirLetters) {
  const Tensor places = tensor({1, 0}, {Dim("of", 2)});
  const auto scattered = [&](const Tensor& x) {
    return scatter_add(x, places, gather(x * 10., places, words), words);
  };
  EXPECT_EQ(elements(scattered), (Words{11, 22, 33, 4, 5, 6, 77, 88, 99}));
  const auto largest = [&](const Tensor& x) {
    return scatter_max(-x, tensor({2, 1}, {batch}), gather(x * -10., scalar(1), words), words);
  };
  EXPECT_EQ(elements(largest), (Words{-1, -2, -3, -4, -5, -6, -7, -8, -9}));
}

/// Elements of an array have one type, without lengths for each element.
TEST_P(LengthsOfMovedWordsTest, AnArrayRefusesWordsWithLengthsOfTheirOwn) {
  const auto pushed = [&](const Tensor& x) {
    return scan(Scan{.spatial_dim = words,
                     .initial = TensorArray(TensorType(f64, {batch, letters})),
                     .xs = x,
                     .body =
                         [](const Tensor& word, const TensorArray& all) {
                           return std::pair{None{}, all.push_back(word)};
                         }})
        .state.read(0);
  };
  EXPECT_EQ(message_of<ShapeError>([&] { run(pushed)(text()); }),
            "TensorArray push_back: letters[batch=2] of an element of type "
            "f64[batch=2,letters[batch=2]] has the lengths of a slice, which an array of "
            "f64[batch=2,letters[batch=2,words[batch=2]]] cannot hold: its elements have one type; "
            "let a scan return such elements as ys, which have the lengths of each\n"
            "in iteration 0 of scan \"scan\"");
}

TEST_P(LengthsOfMovedWordsTest, ScansOverTheResultSeeTheLettersOfEachWord) {
  const Dim longer("words", tensor({4, 3}, {batch}));
  EXPECT_EQ(
      valid(transpose(run([&](const Tensor& x) {
                        const Tensor moved = pad(shift(x, words, 1), words, 0, 1, 100., longer);
                        return scan(Scan{.spatial_dim = longer,
                                         .initial = zeros({batch}, f64),
                                         .xs = moved,
                                         .body =
                                             [&](const Tensor& word, const Tensor& s) {
                                               const Tensor next = s * 10. + mean(word, letters);
                                               return std::pair{next, next};
                                             }})
                            .ys;
                      })(text()),
                      {1, 0})),
      (Words{0, 1.5, 18, 180, 0, 7, 70}));
}

TEST_P(LengthsOfMovedWordsTest, GradientsOfMovedWordsAreDerivatives) {
  const Dim all("all", 6), beam("beam", 2);
  const std::vector<std::function<Tensor(const Tensor&)>> functions{
      [&](const Tensor& x) { return pad(x, words, 1, 1, 3.); },
      [&](const Tensor& x) { return shift(x, words, 1, 3.); },
      [&](const Tensor& x) { return rename(x, batch, Dim("texts", 2)); },
      [&](const Tensor& x) {
        return merge_dims(x, {batch, words}, all, {.counts_padding = true});
      },
      [&](const Tensor& x) {
        return split_dim(x, words, {Dim("pairs"), Dim("pair", 2)}, {.fill = 7});
      },
      [&](const Tensor& x) {
        return pack(x, {batch, words});
      },
      [&](const Tensor& x) { return pack(x, letters.lengths() > 1); },
      [&](const Tensor& x) {
        const Tensor mask = letters.lengths() > 1;
        return unpack(pack(x, mask), 0, mask, x * 10.);
      },
      [&](const Tensor& x) {
        return concat({x, slice(square(x), words, 0, 1)}, words);
      },
      [&](const Tensor& x) { return top_k(x, words, Dim("k", 2)).values; },
      [&](const Tensor& x) { return sort(x, words, true); },
  };
  for (std::size_t i = 0; i < functions.size(); ++i) {
    SCOPED_TRACE(i);
    const auto loss = [&](const Tensor& x) {
      return sum(sin(mean(square(functions[i](x) * .1), letters)));
    };
    const Tensor gradient = run(grad(loss))(text());
    expect_gradient_of(loss, text(0), mask_padding(gradient), 1e-6);
    const auto slope = [&](const Tensor& x) { return sum(square(grad(loss)(x))); };
    expect_gradient_of(slope, text(0), mask_padding(run(grad(slope))(text())), 1e-4);
  }
}

}  // namespace
}  // namespace reel
