// The table of lines in docs/recipes.md: parts of programs by hand and in the present form have one
// result, and the table counts their lines.
#include <algorithm>
#include <fstream>
#include <map>
#include <numeric>
#include <random>
#include <regex>
#include <string>
#include <utility>
#include <vector>

#include "reel/reel.h"
#include "reel/tests/check.h"

namespace reel {
namespace {

using Rows = std::vector<std::vector<int>>;

const Dim feature("feature", 4), value("value", 3), classes("class", 5);

namespace by_hand {

// part: rows as a ragged tensor
Tensor ragged_of(const Rows& rows) {
  std::vector<int> lengths, padded;
  for (const std::vector<int>& row : rows) lengths.push_back(static_cast<int>(row.size()));
  const Dim batch("batch", static_cast<std::int64_t>(rows.size()));
  const Dim time("time", tensor(lengths, {batch}));
  for (std::vector<int> row : rows) {
    row.resize(static_cast<std::size_t>(time.size()));
    padded.insert(padded.end(), row.begin(), row.end());
  }
  return tensor(padded, {batch, time});
}
// part: a ragged tensor as rows
Rows rows_of_tensor(const Tensor& x) {
  const std::vector<int> all = x.to_vector<int>();
  const std::vector<int> lengths = x.dim("time").lengths().to_vector<int>();
  Rows rows;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(i) * x.dim("time").size();
    rows.emplace_back(begin, begin + lengths[i]);
  }
  return rows;
}
// part: shuffled batches
Rows shuffled_batches(std::int64_t count, std::size_t size) {
  std::vector<int> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), std::mt19937(1));
  Rows batches;
  for (std::size_t begin = 0; begin < order.size(); begin += size) {
    const auto first = order.begin() + static_cast<std::ptrdiff_t>(begin);
    batches.emplace_back(first,
                         first + static_cast<std::ptrdiff_t>(std::min(size, order.size() - begin)));
  }
  return batches;
}
// part: causal attention with ragged keys
Tensor causal_attention(const Tensor& q, const Tensor& k, const Tensor& v) {
  const Dim queries = q.dim("queries"), keys = k.dim("keys"), batch = k.dim("batch");
  const Dims weighted{batch, queries, keys};
  const Tensor products = transpose(matmul(q, k, feature), weighted) / 2.;  // the root of 4
  const Tensor is_seen = expand(range(keys), weighted) <= range(queries);
  return matmul(softmax(where(is_seen, products, -1e30), keys), v, keys);
}
// part: cross entropy with ignored targets and class weights
Tensor weighted_loss(const Tensor& logits, const Tensor& targets, const Tensor& weights) {
  const Tensor counts = targets != -1;
  const Tensor known = where(counts, targets, 0);
  const Tensor weight = where(counts, gather(weights, known, classes), 0.);
  const Tensor loss = -gather(log_softmax(logits, classes), known, classes);
  return sum(weight * loss) / sum(weight);
}
// part: accuracy over several ragged batches
Tensor accuracy_of(const std::vector<std::pair<Tensor, Tensor>>& batches) {
  Tensor right = scalar(0., f64), all = scalar(0., f64);
  for (const auto& [logits, targets] : batches) {
    const Tensor is_right = cast(argmax(logits, classes) == targets, f64);
    right = right + sum(is_right);
    all = all + sum(ones_like(is_right));
  }
  return right / all;
}
// part: a linear recurrence
Tensor recurrence(const Tensor& a, const Tensor& b) {
  const auto body = [&](const Tensor& b, const Tensor& h) {
    const Tensor next = a * h + b;
    return std::pair{next, next};
  };
  return scan(Scan{.spatial_dim = b.dim("time"), .initial = zeros_like(a), .xs = b, .body = body})
      .ys;
}
// part: a Jacobian
template <class F>
Tensor jacobian_of(const F& f, const Tensor& x) {
  Tensors rows;
  for (int i = 0; i < value.size(); ++i)
    rows.push_back(grad([&](const Tensor& x) { return gather(f(x), scalar(i), value); })(x));
  return stack(rows, value);
}
// end

}  // namespace by_hand

namespace now {

// part: rows as a ragged tensor
Tensor ragged_of(const Rows& rows) { return ragged(rows, {Dim("batch"), Dim("time")}); }
// part: a ragged tensor as rows
Rows rows_of_tensor(const Tensor& x) { return rows_of<int>(x); }
// part: shuffled batches
Rows shuffled_batches(std::int64_t count, std::int64_t size) {
  const Dim batch("batch", count);
  Rows batches;
  for (const Tensor& rows : Batches(range(batch), batch, {.rows = size, .shuffle = 1}))
    batches.push_back(rows.to_vector<int>());
  return batches;
}
// part: causal attention with ragged keys
Tensor causal_attention(const Tensor& q, const Tensor& k, const Tensor& v) {
  return attention(q, k, v, k.dim("keys"), feature, {.causal = q.dim("queries")});
}
// part: cross entropy with ignored targets and class weights
Tensor weighted_loss(const Tensor& logits, const Tensor& targets, const Tensor& weights) {
  return cross_entropy(logits, targets, classes, {.ignore = -1, .class_weights = weights});
}
// part: accuracy over several ragged batches
Tensor accuracy_of(const std::vector<std::pair<Tensor, Tensor>>& batches) {
  Weighted all{scalar(0., f64), scalar(0., f64)};
  for (const auto& [logits, targets] : batches) all = all + accuracy(logits, targets, classes);
  return all.mean();
}
// part: a linear recurrence
Tensor recurrence(const Tensor& a, const Tensor& b) { return linear_scan(a, b, b.dim("time")); }
// part: a Jacobian
template <class F>
Tensor jacobian_of(const F& f, const Tensor& x) {
  return jacobian(f)(x);
}
// end

}  // namespace now

/// Returns the lines of each part in a namespace of this file.
std::map<std::string, int> lines_of(const std::string& space) {
  std::ifstream in(REEL_SOURCE "/tests/start/lines_test.cpp");
  std::map<std::string, int> lines;
  std::string part, line;
  while (std::getline(in, line) && line != "namespace " + space + " {") continue;
  while (std::getline(in, line) && line != "// end") {
    if (line.starts_with("// part: "))
      part = line.substr(9);
    else if (!part.empty())
      ++lines[part];
  }
  return lines;
}

TEST(LinesTest, TheTableCountsTheLinesOfThisFile) {
  const std::map<std::string, int> before = lines_of("by_hand"), after = lines_of("now");
  ASSERT_EQ(before.size(), 8u);
  std::string table;
  for (const auto& [part, lines] : before)
    table += str("| ", part, " | ", lines, " | ", after.at(part), " |\n");
  std::ifstream in(REEL_SOURCE "/docs/recipes.md");
  const std::string page{std::istreambuf_iterator<char>(in), {}};
  EXPECT_NE(page.find(table), std::string::npos) << "docs/recipes.md lacks\n" << table;
}

TEST(LinesTest, TheTableCountsTheLinesOfPrograms) {
  std::ifstream page(REEL_SOURCE "/docs/recipes.md");
  const std::regex row(R"(\| .* \| `(\w+\.cpp)` \| (\d+) \| .*)");
  std::smatch match;
  int programs = 0;
  for (std::string line; std::getline(page, line);) {
    if (!std::regex_match(line, match, row)) continue;
    std::ifstream program(REEL_SOURCE "/examples/" + match[1].str());
    const auto lines = std::count(std::istreambuf_iterator<char>(program), {}, '\n');
    EXPECT_EQ(match[2], std::to_string(lines)) << match[1];
    ++programs;
  }
  EXPECT_EQ(programs, 10);
}

const Rows some_rows{{3, 1, 2}, {}, {4}, {0, 2}};

TEST(LinesTest, RaggedTensorsAndRows) {
  const Tensor x = now::ragged_of(some_rows), same = by_hand::ragged_of(some_rows);
  expect_values(x, values_of(same));
  EXPECT_EQ(now::rows_of_tensor(x), some_rows);
  EXPECT_EQ(by_hand::rows_of_tensor(same), some_rows);
}

TEST(LinesTest, BatchesHaveEachRowOnce) {
  for (const Rows& batches : {by_hand::shuffled_batches(10, 4), now::shuffled_batches(10, 4)}) {
    ASSERT_EQ(batches.size(), 3u);
    EXPECT_EQ(batches[0].size(), 4u);
    EXPECT_EQ(batches[2].size(), 2u);
    std::vector<int> all, expected(10);
    for (const std::vector<int>& batch : batches) all.insert(all.end(), batch.begin(), batch.end());
    std::iota(expected.begin(), expected.end(), 0);
    EXPECT_NE(all, expected);
    std::sort(all.begin(), all.end());
    EXPECT_EQ(all, expected);
  }
}

TEST(LinesTest, AttentionAgreesWithItsFormByHand) {
  const Tensor lengths = ragged(some_rows, {Dim("batch"), Dim("keys")});
  const Dim batch = lengths.dim("batch"), keys("keys", tensor({3, 1, 4, 2}, {batch}));
  const Tensor q = random_normal({batch, Dim("queries", 4), feature}, f64);
  const Tensor k = random_normal({batch, keys, feature}, f64);
  const Tensor v = random_normal({batch, keys, value}, f64);
  expect_all_close(now::causal_attention(q, k, v), by_hand::causal_attention(q, k, v), 1e-12);
}

TEST(LinesTest, LossAndAccuracy) {
  const Tensor targets = ragged(some_rows, {Dim("batch"), Dim("time")});
  const Tensor logits = random_normal({targets.dims()[0], targets.dims()[1], classes}, f64);
  const Tensor some = where(targets == 2, -1, targets),
               weights = random_uniform({classes}, 1, 2, f64);
  expect_all_close(now::weighted_loss(logits, some, weights),
                   by_hand::weighted_loss(logits, some, weights), 1e-12);
  const std::vector<std::pair<Tensor, Tensor>> batches{{logits, targets},
                                                       {logits * 2, argmax(logits, classes)}};
  expect_all_close(now::accuracy_of(batches), by_hand::accuracy_of(batches), 1e-12);
}

TEST(LinesTest, RecurrencesAndJacobians) {
  const Tensor a = random_uniform({feature}, 0, 1, f64);
  const Tensor b = random_normal({Dim("time", 6), feature}, f64);
  expect_all_close(now::recurrence(a, b), by_hand::recurrence(a, b), 1e-12);
  const Tensor w = random_normal({feature, value}, f64);
  const auto f = [&](const Tensor& x) { return sin(matmul(x, w, feature)); };
  expect_all_close(now::jacobian_of(f, a), by_hand::jacobian_of(f, a), 1e-12);
}

}  // namespace
}  // namespace reel
