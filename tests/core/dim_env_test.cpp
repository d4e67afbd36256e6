// DimEnv binds the symbols of a graph to the dims of a run.
#include "reel/core/dims/dim_env.h"

#include "reel/core/dims/dim_slices.h"
#include "reel/core/types/dim_symbol.h"
#include "reel/tests/check.h"

namespace reel {
namespace {

/// An iteration that runs twice makes its dims twice: the first run's batch meets the second run's
/// words and letters.
class DimEnvTest : public ::testing::Test {
 protected:
  const Dim batch = dim_symbol("batch"), words = dim_symbol("words", {batch}),
            letters = dim_symbol("letters", {batch, words});
  const Dim first{"batch", 2}, second{"batch", 2}, words2{"words", tensor({2, 1}, {second})},
      letters2{"letters", tensor({3, 1, 2, 0}, {second, words2})};
};

TEST_F(DimEnvTest, LengthsRunOverTheDimsThatAreBound) {
  DimEnv env;
  env.bind(batch, first);
  env.bind(letters, letters2);
  const Dim of_words = env.resolve(words), of_letters = env.resolve(letters);
  EXPECT_EQ(of_words.length_dims(), Dims{first});
  EXPECT_EQ(of_letters.length_dims(), (Dims{first, of_words}));
  EXPECT_EQ(of_letters.name(), "letters");
  EXPECT_EQ(of_letters.size(), 3);
  EXPECT_EQ(of_words.lengths().dims(), Dims{first});
  expect_values(of_words.lengths(), {2, 1});
  expect_values(of_letters.lengths(), {3, 1, 2, 0});
}

TEST_F(DimEnvTest, ManyBindingsAreFound) {
  DimEnv env;
  std::vector<std::pair<Dim, Dim>> all;
  for (int i = 0; i < 40; ++i) {
    all.emplace_back(dim_symbol("batch"), Dim("batch", i));
    env.bind(all.back().first, all.back().second);
    env.bind(all.back().first, Dim("another", i));  // the first one counts
    for (const auto& [symbol, actual] : all) EXPECT_EQ(env.resolve(symbol), actual);
    EXPECT_FALSE(env.knows(words));
  }
  // Dims that move with their lengths are bound as well.
  env.bind(batch, first);
  env.bind(letters, letters2);
  EXPECT_EQ(env.resolve(letters).length_dims(), (Dims{first, env.resolve(words)}));
  for (const auto& [symbol, actual] : all) EXPECT_EQ(env.resolve(symbol), actual);
}

TEST_F(DimEnvTest, ADimMovesOnce) {
  const Dim other = dim_symbol("other", {batch, words});
  DimEnv env;
  env.bind(batch, first);
  env.bind(letters, letters2);
  env.bind(other, letters2);
  EXPECT_EQ(env.resolve(other), env.resolve(letters));
}

TEST_F(DimEnvTest, ADimComputedFromAMovedOneIsComputedAgain) {
  const Dim longer = words + 1;
  DimEnv env;
  env.bind(batch, first);
  env.bind(longer, words2 + 1);
  env.bind(words, words2);
  EXPECT_EQ(env.resolve(longer), env.resolve(words) + 1);
  EXPECT_EQ(env.resolve(longer).length_dims(), Dims{first});
}

TEST_F(DimEnvTest, ADimOverTheBoundDimsStays) {
  DimEnv env;
  env.bind(letters, letters2);
  EXPECT_EQ(env.resolve(batch), second);
  EXPECT_EQ(env.resolve(words), words2);
  EXPECT_EQ(env.resolve(letters), letters2);
}

TEST_F(DimEnvTest, LengthsOverADimOfAnotherSizeStay) {
  DimEnv env;
  env.bind(batch, Dim("batch", 3));
  env.bind(words, words2);
  EXPECT_EQ(env.resolve(words), words2);
}

// All rows have their dim among the lengths. The longest row may have as many words as there are
// rows.
TEST_F(DimEnvTest, LengthsOfAllRowsRunOverTheRowsBesides) {
  const Dim row_words = dim_symbol("words"), row_letters = dim_symbol("letters", {row_words});
  DimEnv env;
  const TensorType of_row(f32, {row_words, row_letters}), of_rows(f32, {words2, letters2});
  env.bind(of_row, of_rows, &second);
  EXPECT_EQ(env.resolve(row_words), words2);
  EXPECT_EQ(env.resolve(row_letters), letters2);
}

TEST_F(DimEnvTest, AMovedSliceIsASlice) {
  const Dim whole("words", 4);
  note_slice(words2, whole, whole);
  DimEnv env;
  env.bind(batch, first);
  env.bind(words, words2);
  EXPECT_TRUE(is_slice_of(env.resolve(words), whole));
}

}  // namespace
}  // namespace reel
