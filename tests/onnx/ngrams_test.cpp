// TfIdfVectorizer on integers, in the modes that ONNX's test data lacks, and its errors.
#include "reel/reel.h"
#include "reel/tests/check.h"
#include "reel/tests/modes.h"
#include "reel/tests/onnx/model_text.h"

namespace reel {
namespace {

/// Counts the elements 5 and 6, and the pair 5, 6 with at most one element between.
std::string model_with(const std::string& attributes) {
  return "g (int64[n] x) => (float[3] y) { y = TfIdfVectorizer <" + attributes +
         ", min_gram_length = 1, max_gram_length = 2, max_skip_count = 1, ngram_counts = [0, 2], "
         "ngram_indexes = [2, 0, 1], pool_int64s = [5, 6, 5, 6]> (x) }";
}

using OnnxNgramsTest = InEveryMode;
REEL_IN_EVERY_MODE(OnnxNgramsTest);

TEST_P(OnnxNgramsTest, WeightsTheCounts) {
  const Tensor x = tensor({5, 6, 5, 5, 6}, i64);  // pairs at 0, 2 with one between, and at 3
  const auto y_of = [&](const std::string& attributes) {
    const OnnxModel model = model_of(model_with(attributes));
    return run([&](const Tensor& x) { return model({{"x", x}}).at("y"); })(x);
  };
  expect_values(y_of("mode = \"TF\""), {2, 3, 3});
  expect_values(y_of("mode = \"TFIDF\", weights = [0.5, 2.0, 10.0]"), {4, 30, 1.5});
  expect_values(y_of("mode = \"IDF\", weights = [0.5, 2.0, 10.0]"), {2, 10, 0.5});
  expect_values(y_of("mode = \"IDF\""), {1, 1, 1});
}

TEST(OnnxNgramsErrorTest, AttributesThatDoNotFitAreNamed) {
  const Tensor x = tensor({5, 6}, i64);
  const std::string message = message_of<ArgumentError>([&] {
    model_of(model_with("mode = \"idf\""))({{"x", x}});
  });
  EXPECT_NE(message.find("mode is \"idf\", which is not TF, IDF or TFIDF"), std::string::npos)
      << message;
  const std::string pool = message_of<ArgumentError>([&] {
    model_of(R"(g (int64[n] x) => (float[1] y) {
      y = TfIdfVectorizer <mode = "TF", min_gram_length = 1, max_gram_length = 2, max_skip_count = 0,
                           ngram_counts = [0, 1], ngram_indexes = [0], pool_int64s = [5, 6]> (x)
    })")({{"x", x}});
  });
  EXPECT_NE(pool.find("ngram_counts does not divide the pool into n-grams"), std::string::npos)
      << pool;
}

}  // namespace
}  // namespace reel
