// where, gather, pack and unpack of whole states, with Dims among their leaves.
#include <cstring>

#include "reel/tests/gradients.h"
#include "reel/tests/modes.h"

namespace reel {
namespace {

using ReturnnNested = InEveryMode;
REEL_IN_EVERY_MODE(ReturnnNested);

const float kNan = std::numeric_limits<float>::quiet_NaN();

struct Search {
  Tensor a, t, finished;
};

TEST_P(ReturnnNested, Case87_GatherNestedPicksRowsOfLeavesWithTheDim) {
  const Dim batch("batch", 3), beam("beam", 2);
  const Tensor backrefs = tensor({{1, 1}, {0, 1}, {1, 0}}, {batch, beam});
  const auto f = run(
      [&](const Search& s, const Tensor& backrefs) { return gather_nested(s, backrefs, beam); });
  const Search s = f(Search{tensor({{1., 2.}, {3., 4.}, {5., 6.}}, {batch, beam}), scalar(7),
                            tensor({true, false, true}, {batch})},
                     backrefs);
  expect_values(s.a, {2, 2, 3, 4, 6, 5});
  EXPECT_EQ(s.a.dims(), (Dims{batch, beam}));
  expect_values(s.t, {7});
  expect_values(s.finished, {1, 0, 1});
}

TEST_P(ReturnnNested, GatherNestedNamesTheLeafWhereTheIndexIsTooLarge) {
  const Dim batch("batch", 2), beam("beam", 2);
  const auto f = run(
      [&](const Search& s, const Tensor& backrefs) { return gather_nested(s, backrefs, beam); });
  const Search s{ones({batch, beam}), scalar(7), tensor({true, false}, {batch})};
  const Tensor backrefs = tensor({{1, 9}, {0, 1}}, {batch, beam});
  const std::string reason =
      message_of<IndexError>([&] { gather(s.a, backrefs, beam); }).substr(std::strlen("gather"));
  EXPECT_EQ(message_of<IndexError>([&] { f(s, backrefs); }),
            is_eager() ? "gather_nested" + reason + "\nof the leaf state.a" : "gather" + reason);
}

struct Hypotheses {
  Tensor score, labels;
  Dim beam, count;
};

/// Histories of 1, 3, 2 and 0 labels.
Hypotheses hypotheses(const Dim& batch, const Dim& beam, DType dtype, double padding) {
  const Dim count("labels", tensor({1, 3, 2, 0}, {batch, beam}));
  const double p = padding;
  return {
      tensor(std::vector<double>{.1, .2, .3, .4}, {batch, beam}, dtype),
      tensor(std::vector<double>{1, p, p, 2, 3, 4, 5, 6, p, p, p, p}, {batch, beam, count}, dtype),
      beam, count};
}

TEST_P(ReturnnNested, Case87_HistoriesGoWithTheirHypotheses) {
  const Dim batch("batch", 2), beam("beam", 2), next("beam", 3);
  const Tensor backrefs = tensor({{1, 0, 0}, {0, 1, 0}}, {batch, next});
  const auto f = run([&](const Hypotheses& h, const Tensor& backrefs) {
    return gather_nested(h, backrefs, h.beam);
  });
  const std::vector<double> labels{2, 3, 4, 1, 0, 0, 1, 0, 0, 5, 6, 0, 0, 0, 0, 5, 6, 0};
  for (const double padding : {0., static_cast<double>(kNan)}) {
    const Hypotheses h = f(hypotheses(batch, beam, f32, padding), backrefs);
    expect_values(h.score, {.2f, .1f, .1f, .3f, .4f, .3f});
    EXPECT_EQ(h.beam, next);
    expect_values(h.count.lengths(), {3, 1, 1, 2, 0, 2});
    EXPECT_EQ(h.labels.dims(), (Dims{batch, next, h.count}));
    expect_values(mask_padding(h.labels), labels);
  }
  const Hypotheses start = hypotheses(batch, beam, f64, 0);
  const auto of_labels = [&](const Tensor& labels) {
    Hypotheses h = start;
    h.labels = labels * labels;
    return sum(gather_nested(h, backrefs, beam).labels);
  };
  expect_gradient_of(of_labels, start.labels, run(grad(of_labels))(start.labels));
}

TEST_P(ReturnnNested, WhereChoosesHistoriesWithTheirLengths) {
  const Dim batch("batch", 3);
  const auto make = [&](std::initializer_list<NestedList> lengths, double first, double padding) {
    const Dim count("labels", tensor(lengths, {batch}));
    const Tensor labels = expand(range(count, f32), {batch, count}) + first;
    return std::pair{mask_padding(labels, padding), count};
  };
  const auto f = run([](const Tensor& mask, const std::pair<Tensor, Dim>& a,
                        const std::pair<Tensor, Dim>& b) { return where_nested(mask, a, b); });
  for (const double padding : {0., static_cast<double>(kNan)}) {
    const auto [labels, count] = f(tensor({true, false, false}, {batch}),
                                   make({1, 5, 5}, 10, padding), make({0, 2, 0}, 20, padding));
    expect_values(count.lengths(), {1, 2, 0});
    EXPECT_EQ(labels.dims(), (Dims{batch, count}));
    expect_values(mask_padding(labels), {10, 0, 20, 21, 0, 0});
  }
}

TEST_P(ReturnnNested, WhereMakesADimOfOneSizeRaggedWhereBothSidesDiffer) {
  const Dim batch("batch", 2);
  const auto f = run([&](const Tensor& mask, const Tensor& x) {
    const Dim one("labels", 1), two("labels", 2);
    return where_nested(mask, std::pair{expand(x, {batch, one}), one},
                        std::pair{expand(x * 10, {batch, two}), two});
  });
  const auto [labels, count] = f(tensor({true, false}, {batch}), tensor({1., 2.}, {batch}));
  expect_values(count.lengths(), {1, 2});
  expect_values(mask_padding(labels), {1, 0, 20, 20});
}

TEST_P(ReturnnNested, WhereTakesPlainTensors) {
  const auto f = run([](const Tensor& mask, const Search& a, const Search& b) {
    return where_nested(mask, a, b);
  });
  const Tensor x = tensor({{1., 2.}, {3., 4.}}), mask = tensor({true, false});
  const Search s =
      f(mask, Search{x, scalar(1), mask}, Search{x * 10, scalar(2), logical_not(mask)});
  expect_values(s.a, {1, 2, 30, 40});
  expect_values(s.t, {1});
  expect_values(s.finished, {1, 1});
}

TEST_P(ReturnnNested, Case89_UnpackNestedReplacesThePackedRows) {
  const Dim batch("batch", 3);
  const auto f = run([](const Tensor& x, const Tensor& mask) {
    const auto [packed, dim] = pack_nested(std::tuple{x, scalar(5)}, mask);
    const auto back = unpack_nested(std::tuple{std::get<0>(packed) * 2, std::get<1>(packed)}, dim,
                                    mask, std::tuple{x, scalar(5)});
    return std::tuple{back, packed, dim};
  });
  const auto [back, packed, dim] =
      f(tensor({10., 20., 30.}, {batch}), tensor({true, false, true}, {batch}));
  expect_values(std::get<0>(packed), {10, 30});
  EXPECT_EQ(std::get<0>(packed).dims(), Dims{dim});
  expect_values(std::get<0>(back), {20, 20, 60});
  EXPECT_EQ(std::get<0>(back).dims(), Dims{batch});
  expect_values(std::get<1>(back), {5});
}

using Rows = std::pair<Tensor, Dim>;

/// Rows of two ragged dims: each keeps its own length.
TEST_P(ReturnnNested, Case90_MergedBranchesHaveTheLengthsOfTheirRows) {
  const Dim batch("batch", 4), count("labels", tensor({2, 1, 3, 0}, {batch}));
  const Tensor mask = tensor({true, false, false, true}, {batch});
  const auto merge = [](const Tensor& x, const Tensor& mask) {
    const Dim batch = x.dims()[0], count = x.dims()[1];
    const Rows state{x, count};
    const auto [a, of_a] = pack_nested(state, mask);
    const auto [b, of_b] = pack_nested(state, logical_not(mask));
    // One branch appends, the other drops.
    auto [longer, more] = cum_concat(zeros({of_a}, x.dtype()) + 100.0, a.first, a.second);
    const Tensor shorter = slice(b.first, b.second, 1);
    const Rows rest = unpack_nested(Rows{shorter, shorter.dims()[1]}, of_b, logical_not(mask));
    return unpack_nested(Rows{longer, more}, of_a, mask, rest);
  };
  for (const double p : {0., static_cast<double>(kNan)}) {
    const Tensor x =
        tensor(std::vector<double>{1, 2, p, 3, p, p, 4, 5, 6, p, p, p}, {batch, count});
    const auto [rows, lengths] = run(merge)(x, mask);
    expect_values(lengths.lengths(), {3, 0, 2, 1});
    EXPECT_EQ(rows.dims(), (Dims{batch, lengths}));
    expect_values(mask_padding(rows), {1, 2, 100, 0, 0, 0, 5, 6, 0, 100, 0, 0});
  }
  const Tensor x = tensor(std::vector<double>{1, 2, 0, 3, 0, 0, 4, 5, 6, 0, 0, 0}, {batch, count});
  const auto loss = [&](const Tensor& x) { return sum(square(merge(x * x, mask).first)); };
  expect_gradient_of(loss, x, run(grad(loss))(x), 1e-5);
}

TEST_P(ReturnnNested, ErrorsNameTheLeaf) {
  const Dim batch("batch", 2), other("other", 2);
  const auto f = run([](const Tensor& mask, const Search& a, const Search& b) {
    return where_nested(mask, a, b);
  });
  const Tensor mask = tensor({true, false}, {batch}), x = ones({batch});
  EXPECT_EQ(message_of<ShapeError>([&] {
              f(mask, Search{x, x, x}, Search{x, ones({other}), x});
            }),
            "where_nested: state.t is f32[batch=2] in a, and f32[other=2] in b: dims differ");
  EXPECT_EQ(message_of<DTypeError>([&] {
              f(mask, Search{x, x, x}, Search{x, x, mask});
            }),
            "where_nested: state.finished is f32[batch=2] in a, and boolean[batch=2] in b: dtypes "
            "differ");
  EXPECT_EQ(message_of<DTypeError>([&] {
              f(x, Search{x, x, x}, Search{x, x, x});
            }),
            "where_nested: the mask must be boolean, got f32[batch=2]");
  const Tensor two = ones({2}), three = ones({3});
  EXPECT_EQ(message_of<ShapeError>([&] {
              f(tensor({true, false}), Search{two, three, two}, Search{two, three, two});
            }),
            "where_nested: state.t is f32[3], and the mask boolean[2]; sizes of axis 0 differ");
}

}  // namespace
}  // namespace reel
