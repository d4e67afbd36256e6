// where_nested: whole states by a mask without dims, and leaves of each kind by a mask over
// entries.
#include "reel/tests/gradients.h"
#include "reel/tests/modes.h"

namespace reel {
namespace {

class WhereNestedTest : public InEveryMode {
 protected:
  const Dim batch{"batch", 3};
};
REEL_IN_EVERY_MODE(WhereNestedTest);

const float kNan = std::numeric_limits<float>::quiet_NaN();

const auto select = [](const Tensor& mask, const auto& a, const auto& b) {
  return where_nested(mask, a, b);
};

TEST_P(WhereNestedTest, AMaskWithoutDimsSelectsScalarsPlainNamedAndRaggedLeaves) {
  const Dim time("time", tensor({2, 0, 1}, {batch}));
  const auto leaves = [&](double v, DType dtype) {
    return std::vector{scalar(v, dtype), full({2}, v, dtype), full({batch}, v, dtype),
                       full({batch, time}, v, dtype)};
  };
  const auto f = run([](const Tensor& mask, const std::vector<Tensor>& a,
                        const std::vector<Tensor>& b) { return where_nested(mask, a, b); });
  for (const DType dtype : {f32, f64, i32, i64, boolean}) {
    const auto a = leaves(1, dtype), b = leaves(0, dtype);
    for (const bool first : {true, false}) {
      const auto chosen = f(scalar(first), a, b);
      for (std::size_t i = 0; i < chosen.size(); ++i)
        expect_same_bits(chosen[i], first ? a[i] : b[i]);
    }
  }
}

struct Model {
  Linear layer;
  SparseEmbedding words;
};

TEST_P(WhereNestedTest, AStepWithANanGradientChangesNothing) {
  manual_seed(8);
  const Dim in("in", 2), out("out", 1), words("words", 4);
  const Model model{Linear::init(in, out), SparseEmbedding::init(words, in)};
  const Adam<Model> optimiser(model, {.learning_rate = 0.1});
  const auto step = run([](Model m, Adam<Model> o, const Tensor& x, const Tensor& i) {
    const std::pair before{m, o};
    const auto g = grad([&](const Model& m) { return sum(m.layer(x + m.words(i))); })(m);
    o.update(m, g);
    return where_nested(isfinite(global_norm(g)), std::pair{m, o}, before);
  });
  const Tensor i = scalar(2);
  const auto bad = step(model, optimiser, tensor({kNan, 1.f}, {in}), i);
  const auto good = step(model, optimiser, tensor({1.f, 1.f}, {in}), i);
  const Tensors before = tensors_of(flatten(std::pair{model, optimiser})),
                kept = tensors_of(flatten(bad)), moved = tensors_of(flatten(good));
  ASSERT_EQ(kept.size(), before.size());
  for (std::size_t k = 0; k < before.size(); ++k) expect_same_bits(kept[k], before[k]);
  expect_values(bad.second.step(), {0});
  expect_values(good.second.step(), {1});
  EXPECT_GT(sum(abs(good.first.layer.weight - model.layer.weight)).item<float>(), 0);
}

struct History {
  Tensor labels;
  Dim count;
};

TEST_P(WhereNestedTest, ADimThatDiffersGetsTheSelectedLengthsOrSize) {
  const Dim short_("labels", tensor({2, 1, 3}, {batch})),
      long_("labels", tensor({1, 0, 4}, {batch}));
  const float p = kNan;
  const History a{tensor(std::vector<float>{1, 2, p, 3, p, p, 4, 5, 6}, {batch, short_}), short_},
      b{tensor(std::vector<float>{7, p, p, p, p, p, p, p, 8, 9, 10, 11}, {batch, long_}), long_};
  const auto f = run([](const Tensor& mask, const History& a, const History& b) {
    return where_nested(mask, a, b);
  });
  const History first = f(scalar(true), a, b), second = f(scalar(false), a, b);
  expect_values(first.count.lengths(), {2, 1, 3});
  expect_values(second.count.lengths(), {1, 0, 4});
  EXPECT_EQ(first.labels.dims(), (Dims{batch, first.count}));
  expect_values(sum(first.labels, {first.count}), {3, 3, 15});
  expect_values(sum(second.labels, {second.count}), {7, 0, 38});
  const Dim one("labels", 1), two("labels", 2);
  const History c{tensor({1.}, {one}), one}, d{tensor({2., 3.}, {two}), two};
  expect_values(f(scalar(true), c, d).labels, {1});
  const History of_d = f(scalar(false), c, d);
  expect_values(of_d.labels, {2, 3});
  EXPECT_EQ(of_d.count.size(), 2);
  EXPECT_EQ(of_d.labels.dims(), Dims{of_d.count});
}

struct Words {
  Tensor letters;
  Dim of_letters, of_words, after;
};

/// Each dim differs, and the lengths of letters run over the words.
TEST_P(WhereNestedTest, DimsWithLengthsOverDimsThatDiffer) {
  const auto make = [&](std::initializer_list<NestedList> words, const Tensor& lengths_of_letters,
                        double first) {
    const Dim of_words("words", tensor(words, {batch}));
    const Dim of_letters("letters",
                         rename(lengths_of_letters, lengths_of_letters.dims()[1], of_words));
    const Tensor x = expand(range(of_letters, f32), {batch, of_words, of_letters}) + first;
    return Words{x, of_letters, of_words, of_words + 1};
  };
  const Dim two("two", 2), one("one", 1);
  const Words a = make({2, 1, 0}, tensor({{1, 2}, {2, 0}, {0, 0}}, {batch, two}), 10);
  const Words b = make({1, 0, 1}, tensor({{3}, {0}, {1}}, {batch, one}), 20);
  const auto f = run([](const Tensor& mask, const Words& a, const Words& b) {
    const Words chosen = where_nested(mask, a, b);
    return std::pair{chosen, sum(chosen.letters, {chosen.of_letters, chosen.of_words})};
  });
  const auto check = [&](const Tensor& mask, const std::vector<double>& words,
                         const std::vector<double>& sums) {
    const auto [chosen, total] = f(mask, a, b);
    expect_values(chosen.of_words.lengths(), words);
    EXPECT_EQ(chosen.after, chosen.of_words + 1);
    EXPECT_EQ(chosen.letters.dims(), (Dims{batch, chosen.of_words, chosen.of_letters}));
    expect_values(total, sums);
  };
  check(scalar(true), {2, 1, 0}, {31, 21, 0});
  check(scalar(false), {1, 0, 1}, {63, 0, 20});
  check(tensor({false, true, false}, {batch}), {1, 1, 1}, {63, 21, 20});
}

struct Drafts {
  TensorArray all;
  Tensor last;
  Dim count;
};

/// Elements are x, 2x, ... up to `number` times x.
Drafts drafts(const Tensor& x, const Dim& count, int number) {
  TensorArray all(x.type());
  for (int k = 1; k <= number; ++k) all = all.push_back(x * double(k));
  return {all, x, count};
}

TEST_P(WhereNestedTest, ElementsOfArraysGetTheSelectedLengthsOrSize) {
  const Dim short_("labels", tensor({2, 1, 3}, {batch})),
      long_("labels", tensor({1, 0, 4}, {batch}));
  const float p = kNan;
  const Tensor a = tensor(std::vector<float>{1, 2, p, 3, p, p, 4, 5, 6}, {batch, short_}),
               b = tensor(std::vector<float>{7, p, p, p, p, p, p, p, 8, 9, 10, 11}, {batch, long_});
  const auto f = [&](const Tensor& mask, const Tensor& a, const Tensor& b) {
    const Drafts chosen = where_nested(mask, drafts(a, a.dims()[1], 3), drafts(b, b.dims()[1], 2));
    EXPECT_EQ(chosen.all.element_type().dims(), (Dims{batch, chosen.count}));
    const Tensor longer = chosen.all.push_back(chosen.last * 10.)[-1];  // elements have its dims
    return std::tuple{sum(chosen.all[-2], {chosen.count}), sum(longer, {chosen.count}),
                      chosen.all.size(), chosen.count.lengths()};
  };
  const auto [of_a, ten_a, size_a, lengths_a] = run(f)(scalar(true), a, b);
  expect_values(of_a, {6, 6, 30});  // 2a
  expect_values(ten_a, {30, 30, 150});
  expect_values(size_a, {3});
  expect_values(lengths_a, {2, 1, 3});
  const auto [of_b, ten_b, size_b, lengths_b] = run(f)(scalar(false), a, b);
  expect_values(of_b, {7, 0, 38});
  expect_values(ten_b, {70, 0, 380});
  expect_values(size_b, {2});
  expect_values(lengths_b, {1, 0, 4});
  const Dim one("labels", 1), two("labels", 2);
  const auto fixed = run([&](const Tensor& mask, const Tensor& x) {
    return where_nested(mask, drafts(expand(x, {one}), one, 1), drafts(expand(x, {two}), two, 2));
  });
  const Drafts first = fixed(scalar(true), scalar(5.)), second = fixed(scalar(false), scalar(5.));
  expect_values(first.all.stack(one), {5});
  expect_values(second.all.stack(two), {5, 5, 10, 10});
  EXPECT_EQ(second.all[1].dims(), Dims{second.count});
  EXPECT_EQ(second.count.size(), 2);
}

TEST_P(WhereNestedTest, GradientsReachElementsOfTheSelectedArray) {
  const Dim one("n", 1), two("n", 2);
  const auto f = [&](const Tensor& mask) {
    return [=](const Tensor& x) {
      const Drafts chosen = where_nested(mask, drafts(expand(sqrt(x), {one}), one, 3),
                                         drafts(range(two, f64) * x * x, two, 2));
      return sum(square(chosen.all[1]));  // 4x, or 4x⁴
    };
  };
  const auto g = run([&](const Tensor& mask, const Tensor& x) {
    const auto slope = grad(f(mask));
    return std::tuple{f(mask)(x), slope(x), grad(slope)(x), jvp(f(mask), x, ones_like(x)).second};
  });
  const auto expect_each = [&](bool mask, double x, std::array<double, 4> expected) {
    const auto [value, first, second, along] = g(scalar(mask), scalar(x, f64));
    expect_values(value, {expected[0]}, 1e-12);
    expect_values(first, {expected[1]}, 1e-12);
    expect_values(second, {expected[2]}, 1e-12);
    expect_values(along, {expected[3]}, 1e-12);
  };
  expect_each(true, 9, {36, 4, 0, 4});
  expect_each(false, -2, {64, -128, 192, -128});  // sqrt is NaN
}

TEST_P(WhereNestedTest, ArraysOfRowsOfVmapAndOfStatesGetTheSelectedDim) {
  const Dim one("n", 1), two("n", 2);
  const auto rows = run([&](const Tensor& masks, const Tensor& x) {
    return vmap(
        [&](const Tensor& mask, const Tensor& x) {
          const Drafts chosen = where_nested(mask, drafts(expand(x, {one}), one, 1),
                                             drafts(expand(x, {two}), two, 2));
          return sum(chosen.all[-1]);
        },
        batch)(masks, x);
  });
  expect_values(rows(tensor({true, false, true}, {batch}), tensor({1., 2., 3.}, {batch})),
                {1, 8, 3});
  const auto loop = run([&](const Tensor& x) {
    const auto last = while_loop([](const Tensor& i, const Drafts&) { return i < 4; },
                                 [](const Tensor& i, const Drafts& s) {
                                   const Dim n("n", i + 1);
                                   const Drafts longer =
                                       drafts(range(n, f32) + sum(s.all[-1]), n, 2);
                                   return std::tuple{i + 1, where_nested(i % 2 == 0, longer, s)};
                                 },
                                 std::tuple{scalar(0), drafts(expand(x, {one}), one, 1)});
    return std::get<1>(last).all.stack(two);
  });
  // Iteration 0: {1}, {2}. Iteration 2: {2, 3, 4} and twice that.
  expect_values(loop(scalar(1.)), {2, 3, 4, 4, 6, 8});
}

using Arrays = std::pair<TensorArray, Tensor>;
Arrays arrays(const Tensor& mask, const Tensor& x) {
  const TensorArray none(TensorType(f32, {2}));
  return where_nested(mask, Arrays{none.push_back(x), x},
                      Arrays{none.push_back(x * 2.0).push_back(sqrt(x)), x * 5.0});
}

TEST_P(WhereNestedTest, SelectsArraysOfAnyLength) {
  const auto f = run(&arrays);
  const Tensor x = tensor({1., 4.});
  expect_values(f(scalar(true), x).first.stack(), {1, 4});
  expect_values(f(scalar(false), x).first.stack(), {2, 8, 1, 2});
  const auto gradient = run([](const Tensor& x, const Tensor& mask) {
    return grad([&](const Tensor& x) { return sum(arrays(mask, x).first.stack()); })(x);
  });
  expect_values(gradient(tensor({-1., 0.}), scalar(true)), {1, 1});  // the other side is NaN
  expect_values(gradient(x, scalar(false)), {2.5, 2.25});
}

TEST_P(WhereNestedTest, SelectsGradientsThatAreRowsOfATable) {
  const EmbeddingTable table(ones({4, 2}));
  const auto of_rows = [](const EmbeddingTable& table, const Tensor& i) {
    return grad([&](const EmbeddingTable& table) { return sum(gather(table, i)); })(table);
  };
  const auto f =
      run([=](const Tensor& mask, const EmbeddingTable& table, const Tensor& i, const Tensor& j) {
        const EmbeddingTable chosen = where_nested(mask, of_rows(table, i), of_rows(table, j));
        EXPECT_TRUE(chosen.is_sparse());
        return chosen.to_dense();
      });
  const Tensor i = tensor({0, 1}), j = tensor({1, 2, 2});
  expect_values(f(scalar(true), table, i, j), {1, 1, 1, 1, 0, 0, 0, 0});
  expect_values(f(scalar(false), table, i, j), {0, 0, 1, 1, 2, 2, 0, 0});
  const auto or_zeros = run([=](const Tensor& mask, const EmbeddingTable& table, const Tensor& i) {
    const EmbeddingTable none(zeros_like(table.dense()));
    return where_nested(mask, of_rows(table, i), none).dense();
  });
  expect_values(or_zeros(scalar(true), table, i), {1, 1, 1, 1, 0, 0, 0, 0});
  expect_values(or_zeros(scalar(false), table, i), {0, 0, 0, 0, 0, 0, 0, 0});
  EXPECT_EQ(
      message_of<StructureError>([&] {
        const EmbeddingTable rows = of_rows(table, i);
        where_nested(tensor({true, false}), std::pair{rows, i}, std::pair{rows, i});
      }),
      "where_nested: state.0.values is of table rows or of a SparseTensor, whose indices are no "
      "values, and the mask boolean[2] selects by entries; make it dense, or give a mask without "
      "dims");
}

/// One side is NaN, or the derivative of its operand is.
Tensor with_nan(const Tensor& mask, const Tensor& x) {
  const auto [a, b] =
      where_nested(mask, std::pair{sqrt(x), x * 2.0}, std::pair{x * x, 1.0 / (x + 4.0) + x * 3.0});
  return sum(a) + sum(b) * 10.0;
}

TEST_P(WhereNestedTest, TheSideThatIsNotTakenDoesNotMatterInDerivativesOfAnyOrder) {
  const Tensor x = tensor(std::vector<double>{1, 4}, f64);
  const auto first = [](const Tensor& x) { return sum(sqrt(x)) + sum(x) * 20.0; };
  const auto second = [](const Tensor& x) {
    return sum(x * x) + (sum(1.0 / (x + 4.0)) + sum(x * 3.0)) * 10.0;
  };
  const auto of = [](const auto& g) {
    return [g](const Tensor& x) {
      const auto slope = grad([&](const Tensor& x) { return sum(square(grad(g)(x))); })(x);
      return std::tuple{g(x), grad(g)(x), jvp(g, x, ones_like(x)).second, slope};
    };
  };
  const auto f = run([&](const Tensor& mask, const Tensor& x) {
    return of([mask](const Tensor& x) { return with_nan(mask, x); })(x);
  });
  const auto expect_like = [](const auto& actual, const auto& expected) {
    expect_values(std::get<0>(actual), values_of(std::get<0>(expected)), 1e-12);
    expect_values(std::get<1>(actual), values_of(std::get<1>(expected)), 1e-12);
    expect_values(std::get<2>(actual), values_of(std::get<2>(expected)), 1e-12);
    expect_values(std::get<3>(actual), values_of(std::get<3>(expected)), 1e-12);
  };
  expect_like(f(scalar(true), x), of(first)(x));
  const Tensor pole = tensor(std::vector<double>{4, 1}, f64);  // of neither side
  expect_like(f(scalar(false), pole), of(second)(pole));
  const Tensor negative = tensor(std::vector<double>{-3, 0}, f64);  // sqrt is NaN, or has no slope
  expect_like(f(scalar(false), negative), of(second)(negative));
}

TEST_P(WhereNestedTest, EachRowOfVmapHasItsMask) {
  const auto values = [](const Tensor& masks, const Tensor& x) {
    return vmap([](const Tensor& mask, const Tensor& x) {
      return where_nested(mask, std::pair{sqrt(x), x * 2.0}, std::pair{-x, x * 3.0});
    })(masks, x);
  };
  const Tensor masks = tensor({true, false, true}), x = tensor({{1., 4.}, {-9., 0.}, {9., 1.}});
  const auto [a, b] = run(values)(masks, x);
  expect_values(a, {1, 2, 9, 0, 3, 1});
  expect_values(b, {2, 8, -27, 0, 18, 2});
  const auto gradients = run([](const Tensor& masks, const Tensor& x) {
    return vmap([](const Tensor& mask, const Tensor& x) {
      return grad([&](const Tensor& x) {
        const auto [a, b] = where_nested(mask, std::pair{sqrt(x), x}, std::pair{x * x, x * 3.0});
        return sum(a) + sum(b);
      })(x);
    })(masks, x);
  });
  expect_values(gradients(masks, x), {1.5, 1.25, -15, 3, 1 + 1. / 6, 1.5}, 1e-6);
  const auto lengths = run([](const Tensor& masks, const Tensor& x) {
    return vmap([](const Tensor& mask, const Tensor& x) {
      return sum(arrays(mask, x).first.stack());
    })(masks, x);
  });
  expect_values(lengths(masks, tensor({{1., 4.}, {1., 4.}, {2., 3.}})), {5, 13, 5});
  const auto dims = run([](const Tensor& masks, const Tensor& x) {
    return vmap(
        [](const Tensor& mask, const Tensor& x) {
          const Dim one("n", 1), two("n", 2);
          return sum(
              where_nested(mask, History{expand(x, {one}), one}, History{expand(x, {two}), two})
                  .labels);
        },
        masks.dims()[0])(masks, x);
  });
  expect_values(dims(tensor({true, false, true}, {batch}), tensor({1., 2., 3.}, {batch})),
                {1, 4, 3});
}

TEST_P(WhereNestedTest, SelectsTheStateOfALoop) {
  const auto f = run([](const Tensor& x) {
    const Dim one("n", 1);
    return while_loop([](const Tensor& i, const History&) { return i < 4; },
                      [](const Tensor& i, const History& s) {
                        const Dim n("n", i + 1);
                        const History longer{range(n, f32) + sum(s.labels), n};
                        return std::tuple{i + 1, where_nested(i % 2 == 0, longer, s)};
                      },
                      std::tuple{scalar(0), History{expand(x, {one}), one}});
  });
  const History last = std::get<1>(f(scalar(1.)));
  expect_values(last.labels, {1, 2, 3});
  EXPECT_EQ(last.count.size(), 3);
  // The step that would be NaN is skipped in each iteration.
  const auto loss = [](const Tensor& x) {
    const auto body = [](const Tensor& x, const std::pair<Tensor, Tensor>& s) {
      const std::pair next{s.first + sqrt(x), s.second * x};
      return std::pair{None{}, where_nested(x > 0, next, s)};
    };
    const auto last =
        scan(Scan{.initial = std::pair{scalar(0.), scalar(1.)}, .xs = x, .body = body});
    return last.state.first + last.state.second;
  };
  const Tensor xs = tensor({4., -1., 0., 1.});
  expect_values(run(loss)(xs), {7});
  expect_values(run(grad(loss))(xs), {1.25, 0, 0, 4.5});
}

TEST_P(WhereNestedTest, AMaskOverEntriesTakesLeavesOfOtherFormsFromA) {
  using State = std::tuple<Tensor, Tensor, Tensor>;
  const auto make = [&](double v) {
    return State{scalar(v), full({3}, v, f32), full({batch}, v, f32)};
  };
  const auto f = run(
      [](const Tensor& mask, const State& a, const State& b) { return where_nested(mask, a, b); });
  const auto [s, plain, named] = f(tensor({true, false, true}, {batch}), make(1), make(2));
  expect_values(s, {1});
  expect_values(plain, {1, 1, 1});
  expect_values(named, {1, 2, 1});
  // A plain leaf that lacks axes of the mask is taken from a if the mask holds for any of them.
  const Tensor plain_mask = tensor({{true, false}, {false, false}, {false, true}});
  const auto [s2, plain2, named2] = f(plain_mask, make(1), make(2));
  expect_values(s2, {1});
  expect_values(plain2, {1, 2, 1});
  expect_values(named2, {1, 1, 1});
}

TEST_P(WhereNestedTest, ErrorsNameTheLeafAndItsTypes) {
  const auto refused = [&](const Tensor& mask, const auto& a, const auto& b) {
    return message_of<Error>([&] { run(select)(mask, a, b); });
  };
  const Tensor yes = scalar(true), two = ones({2});
  EXPECT_EQ(refused(yes, two, ones({1})),
            "where_nested: state is f32[2] in a, and f32[1] in b: dims differ");
  EXPECT_EQ(refused(yes, two, scalar(1.)),
            "where_nested: state is f32[2] in a, and f32[] in b: dims differ");
  EXPECT_EQ(refused(yes, two, tensor({1, 2})),
            "where_nested: state is f32[2] in a, and i32[2] in b: dtypes differ");
  EXPECT_EQ(refused(yes, ones({batch}), ones({Dim("batch", 3)})),
            "where_nested: state is f32[batch=3] in a, and f32[batch=3] in b: dims differ: the two "
            "called batch are not one Dim");
  EXPECT_EQ(refused(scalar(1), two, two), "where_nested: the mask must be boolean, got i32[]");
  EXPECT_EQ(refused(yes, std::optional(two), std::optional<Tensor>()),
            "where_nested: state is of size 1 in a, and of size 0 in b");
  const TensorArray of_two(TensorType(f32, {2})), of_three(TensorType(f32, {3}));
  EXPECT_EQ(refused(yes, of_two, of_three),
            "where_nested: state is list of f32[2] in a, and list of f32[3] in b: dims differ");
  // Entries of an array are not selected, so it cannot have the lengths that the Dim gets.
  const Dim short_("n", 1), long_("n", 2);
  EXPECT_EQ(refused(tensor({true, false, true}, {batch}), drafts(ones({short_}), short_, 1),
                    drafts(ones({long_}), long_, 1)),
            "where_nested: state.all is list of f32[n=1] in a, and list of f32[n=2] in b: dims "
            "differ");
}

}  // namespace
}  // namespace reel
