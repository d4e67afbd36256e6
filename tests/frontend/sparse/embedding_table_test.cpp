#include <gtest/gtest.h>

#include "reel/tests/gradients.h"
#include "reel/tests/modes.h"

namespace reel {
namespace {

struct Model {
  EmbeddingTable words;
  Tensor output;
};

/// A table of 4 rows of 2 elements.
Tensor table() { return tensor({{1., 2.}, {3., 4.}, {5., 6.}, {7., 8.}}, {}, f64); }
Model model() { return {EmbeddingTable(table()), tensor({0.5, -2.}, {}, f64)}; }

Tensor score(const Model& model, const Tensor& ids) {
  return sum(square(gather(model.words, ids)) * model.output);
}

/// Returns the rows of f's gradient. Expects that their sum agrees with the gradient of the same f
/// by a plain tensor, and with central differences.
template <class F, class... Rest>
IndexedSlices rows_of(RunMode mode, const F& f, const Model& at, const Rest&... rest) {
  const Model gradient = InMode(grad(f), mode)(at, rest...);
  EXPECT_TRUE(gradient.words.is_sparse());
  const auto whole = [&](const Tensor& words) {
    return f(Model{EmbeddingTable(words), at.output}, rest...);
  };
  const Tensor dense = gradient.words.to_dense();
  EXPECT_EQ(dense.type(), at.words.dense().type());
  expect_all_close(dense, grad(whole)(at.words.dense()), 1e-12);
  expect_gradient_of(whole, at.words.dense(), dense);
  return gradient.words.slices();
}

class EmbeddingTableTest : public InEveryMode {
 protected:
  template <class F, class... Rest>
  IndexedSlices rows(const F& f, const Rest&... rest) const {
    return rows_of(GetParam(), f, model(), rest...);
  }
};
REEL_IN_EVERY_MODE(EmbeddingTableTest);

TEST_P(EmbeddingTableTest, GradientIsTheRowsThatWereRead) {
  const auto gradient = run(grad(score))(model(), tensor({2, 0, 2}));
  ASSERT_TRUE(gradient.words.is_sparse());
  expect_values(gradient.words.slices().indices, {2, 0, 2});
  expect_values(gradient.words.slices().values, {5, -24, 1, -8, 5, -24});
  expect_values(gradient.words.slices().dense_shape, {4, 2});
  expect_values(gradient.words.to_dense(), {1, -8, 0, 0, 10, -48, 0, 0});
  expect_values(gradient.words.coalesced().slices().indices, {0, 2, -1});
  expect_values(gradient.words.coalesced().slices().values, {1, -8, 10, -48, 0, 0});
  expect_values(gradient.output, {1 + 50, 4 + 72});
}

TEST_P(EmbeddingTableTest, RowsStayWhereABranchThatReadsTheWholeIsNotTaken) {
  const auto f = [](const Model& m, const Tensor& reads_whole) {
    const Tensor words = m.words.dense();
    const Tensor from_branch = cond(
        reads_whole, [&] { return sum(square(words)); }, [] { return scalar(0.5, f64); });
    return sum(square(gather(words, tensor({2, 0, 2}), 0)) * m.output) + from_branch;
  };
  for (const bool reads_whole : {false, true}) {
    const Tensor taken = full({}, reads_whole, boolean);
    const std::vector<double> expected =
        reads_whole ? std::vector<double>{1 + 2, -8 + 4, 6, 8, 10 + 10, -48 + 12, 14, 16}
                    : std::vector<double>{1, -8, 0, 0, 10, -48, 0, 0};
    expect_values(run(grad(f))(model(), taken).words.to_dense(), expected);
    const auto traced = jit(f);
    expect_values(grad([&](const Model& m) { return traced(m, taken); })(model()).words.to_dense(),
                  expected);
  }
}

TEST_P(EmbeddingTableTest, StateOfALoopHasAWholeGradient) {
  // The gradient is whole, also if the loop has no iteration, or returns a capture.
  for (const int steps : {0, 2})
    for (const bool is_captured : {false, true}) {
      const auto f = [&](const Model& m) {
        const Tensor words = m.words.dense();
        const Tensor last = fori_loop(
            0, steps, [&](Tensor, Tensor state) { return is_captured ? words : state; }, words);
        return sum(square(gather(last, tensor({2, 0, 2}), 0)) * m.output);
      };
      const Model gradient = run(grad(f))(model());
      EXPECT_FALSE(gradient.words.is_sparse()) << steps << " steps";
      expect_values(gradient.words.to_dense(), {1, -8, 0, 0, 10, -48, 0, 0});
    }
}

TEST_P(EmbeddingTableTest, ReadsAreOneBehindTheOtherInProgramOrder) {
  const auto f = [](const Model& m, const Tensor& a, const Tensor& b) {
    const Tensor first = score(m, a), second = sum(gather(m.words, b));
    return first * second;
  };
  expect_values(rows(f, tensor({1, 3}), tensor({{0, 1}, {-1, 2}})).indices, {1, 3, 0, 1, 3, 2});
}

TEST_P(EmbeddingTableTest, AScalarReadsOneRow) {
  expect_values(rows(score, scalar(2)).indices, {2});
}

TEST_P(EmbeddingTableTest, NoIndicesReadNoRow) {
  expect_values(rows(score, zeros({0}, i32)).indices, {});
}

TEST_P(EmbeddingTableTest, ATableThatNothingReadsHasNoRows) {
  const auto f = [](const Model& m) { return sum(m.output); };
  const auto slices = rows(f);
  EXPECT_EQ(str(slices.values.type()), "f64[0,2]");
  EXPECT_EQ(slices.indices.numel(), 0);
}

TEST_P(EmbeddingTableTest, WholeReadGivesAWholeGradient) {
  const auto f = [](const Model& m, const Tensor& ids) {
    return score(m, ids) + sum(square(m.words.dense()));
  };
  const auto gradient = run(grad(f))(model(), tensor({1, 1}));
  EXPECT_FALSE(gradient.words.is_sparse());
  expect_values(gradient.words.dense(), {2, 4, 6 + 6, 8 - 32, 10, 12, 14, 16});
}

TEST_P(EmbeddingTableTest, AnIndexOutOfRangeIsThatOfGather) {
  const auto f = run(grad(score));
  EXPECT_EQ(message_of<IndexError>([&] {
              f(model(), tensor({0, 4}));
            }).substr(0, 47),
            "gather: index 4 at [1] of i32[2] is out of rang");
}

TEST_P(EmbeddingTableTest, ARankOneTableHasNumbersAsRows) {
  const auto f = [](const EmbeddingTable& t, const Tensor& ids) {
    return sum(square(gather(t, ids)));
  };
  const auto gradient =
      run(grad(f))(EmbeddingTable(tensor({1., 2., 3.}, {}, f64)), tensor({2, 1, 2}));
  expect_values(gradient.slices().values, {6, 4, 6});
  expect_values(gradient.to_dense(), {0, 4, 12});
}

// ---- Named and ragged dims ----------------------------------------------------------------------

TEST_P(EmbeddingTableTest, PaddingOfIndicesReadsNoRow) {
  const Dim batch("batch", 2), vocab("vocab", 4), feature("feature", 2);
  const Dim time("time", tensor({3, 1}, {batch}));
  const EmbeddingTable words(reshape(table(), {vocab, feature}));
  const auto f = [](const EmbeddingTable& words, const Tensor& ids) {
    const Tensor x = gather(words, ids);
    return sum(square(x));
  };
  const Tensor ids = tensor({{0, 1, 1}, {3, 77, 78}}, {batch, time});
  const auto gradient = run(grad(f))(words, ids);
  ASSERT_TRUE(gradient.is_sparse());
  expect_values(gradient.slices().indices, {0, 1, 1, 3, -1, -1});
  expect_values(gradient.slices().values, {2, 4, 6, 8, 6, 8, 14, 16, 0, 0, 0, 0});
  EXPECT_EQ(gradient.to_dense().type(), words.dense().type());
  expect_values(gradient.to_dense(), {2, 4, 12, 16, 0, 0, 14, 16});
}

TEST_P(EmbeddingTableTest, FinishedEntriesAddNothing) {
  const Dim batch("batch", 2), vocab("vocab", 4), feature("feature", 2);
  const Dim time("time", tensor({1, 3}, {batch}));
  const Model at{EmbeddingTable(reshape(table(), {vocab, feature})),
                 tensor({0.5, -2.}, {feature}, f64)};
  const auto f = [&](const Model& m, const Tensor& ids) {
    const auto step = [&](const Tensor& id, const Tensor& s) {
      return std::pair{None{},
                       s + sum(square(gather(m.words, id)) * m.output, {feature}) * s * 0.01};
    };
    return sum(
        scan(Scan{.spatial_dim = time, .initial = ones({batch}, f64), .xs = ids, .body = step})
            .state);
  };
  rows_of(GetParam(), f, at, tensor({{0, 77, 77}, {3, 1, 1}}, {batch, time}));
}

// A finished entry reads another entry's row, and the row number alone does not tell which.
TEST_P(EmbeddingTableTest, ATableWithARowForEachEntryHasAWholeGradient) {
  const Dim batch("batch", 4), time("time", tensor({0, 0, 0, 1}, {batch}));
  const auto f = [&](const EmbeddingTable& words) {
    const auto step = [&](const Tensor& x, const Tensor&) {
      return std::pair{None{}, gather(words.to_dense(), x, batch, {.clip = true})};
    };
    return sum(scan(Scan{.spatial_dim = time,
                         .initial = scalar(0., f64),
                         .xs = full({time}, 2, i32),
                         .body = step})
                   .state);
  };
  const EmbeddingTable words(tensor({1., 2., 3., 4.}, {batch}, f64));
  expect_values(run(grad(f))(words).to_dense(), {0, 0, 0, 1});
}

TEST_P(EmbeddingTableTest, ALayerOfOne) {
  const Dim vocab("vocab", 30), feature("feature", 3), batch("batch", 4);
  manual_seed(5);
  const SparseEmbedding sparse = SparseEmbedding::init(vocab, feature);
  manual_seed(5);
  const Embedding whole = Embedding::init(vocab, feature);
  const Tensor symbols = tensor({7, 3, 29, 7}, {batch});
  const auto f = [](const auto& layer, const Tensor& symbols) {
    return sum(square(layer(symbols)));
  };
  const auto rows = run([&](const SparseEmbedding& layer, const Tensor& symbols) {
    return grad(f)(layer, symbols);
  })(sparse, symbols);
  EXPECT_EQ(rows.weight.slices().indices.numel(), 4);
  expect_all_close(rows.weight.to_dense(), grad(f)(whole, symbols).weight);
  EXPECT_EQ(tree_paths(sparse), (std::vector<std::string>{"weight"}));
}

// ---- Loops and branches -------------------------------------------------------------------------

/// s ← s + Σ row² · output · s, for one id after the other.
Tensor scanned(const Model& model, const Tensor& ids) {
  const auto step = [&](const Tensor& id, const Tensor& s) {
    return std::pair{None{}, s + sum(square(gather(model.words, id)) * model.output) * s * 0.01};
  };
  return scan(Scan{.initial = scalar(1.0, f64), .xs = ids, .body = step}).state;
}

TEST_P(EmbeddingTableTest, AScanReadsRowsStepByStep) {
  expect_values(rows(scanned, tensor({{2, 0}, {3, 3}, {0, 1}})).indices, {2, 0, 3, 3, 0, 1});
}

TEST_P(EmbeddingTableTest, AScanWithoutAStepReadsNoRow) {
  expect_values(rows(scanned, zeros({0, 2}, i32)).indices, {});
}

TEST_P(EmbeddingTableTest, ALoopOfUnknownLengthChoosesItsRows) {
  const auto f = [](const Model& m) {
    const auto cond = [](const Tensor&, const Tensor& s) { return s < 100.; };
    const auto body = [&](const Tensor& i, const Tensor& s) {
      const Tensor row = gather(m.words, mod(i * 3, 4));
      return std::tuple{i + 1, s * 1.5 + sum(square(row))};
    };
    return std::get<1>(while_loop(cond, body, std::tuple{0, scalar(1., f64)}));
  };
  expect_values(rows(f).indices, {0, 3});
}

TEST_P(EmbeddingTableTest, LoopsInLoops) {
  const auto f = [](const Model& m, const Tensor& ids) {
    const auto outer = [&](const Tensor& row_ids, const Tensor& s) {
      const Tensor inner = scanned(m, row_ids);
      return std::pair{None{}, s * inner + sum(gather(m.words, slice(row_ids, 0, 0, 1)))};
    };
    return scan(Scan{.initial = scalar(0.5, f64), .xs = ids, .body = outer}).state;
  };
  const auto slices = rows(f, tensor({{2, 0}, {3, 3}, {0, 1}}));
  expect_values(slices.indices, {2, 0, 2, 3, 3, 3, 0, 1, 0});
}

TEST_P(EmbeddingTableTest, OnlyTheBranchThatIsTakenReads) {
  const auto f = [](const Model& m, const Tensor& pred) {
    return cond(
        pred,
        [&] {
          return score(m, tensor({1, 2}));
        },
        [&] {
          const Tensor first = sum(gather(m.words, scalar(3)));
          return first + sum(gather(m.words, scalar(0)));
        });
  };
  expect_values(rows(f, scalar(true)).indices, {1, 2});
  expect_values(rows(f, scalar(false)).indices, {3, 0});
}

TEST_P(EmbeddingTableTest, ABranchThatReadsTheWholeTable) {
  const auto f = [](const Model& m, const Tensor& pred) {
    return cond(
        pred,
        [&] {
          return score(m, tensor({1, 2}));
        },
        [&] { return sum(square(m.words.dense())); });
  };
  const auto gradient = run(grad(f));
  expect_values(gradient(model(), scalar(true)).words.to_dense(), {0, 0, 3, -16, 5, -24, 0, 0});
  expect_values(gradient(model(), scalar(false)).words.to_dense(), {2, 4, 6, 8, 10, 12, 14, 16});
}

TEST_P(EmbeddingTableTest, BranchesInLoops) {
  const auto f = [](const Model& m, const Tensor& ids) {
    const auto step = [&](const Tensor& id, const Tensor& s) {
      const Tensor y = cond(
          id < 2, [&] { return score(m, reshape(id, {1})) * 0.1; }, [&] { return s * 2.; });
      return std::pair{None{}, s + y};
    };
    return scan(Scan{.initial = scalar(0.5, f64), .xs = ids, .body = step}).state;
  };
  expect_values(rows(f, tensor({0, 3, 1, 2})).indices, {0, 1});
}

TEST_P(EmbeddingTableTest, RowsReadBeforeABranchThatIsNotTakenAreNotRead) {
  const auto f = [](const Model& m, const Tensor& pred) {
    const Tensor row = gather(m.words, tensor({2}));
    return cond(
        pred, [&] { return sum(square(row)); }, [&] { return sum(m.output); });
  };
  expect_values(run(grad(f))(model(), scalar(false)).words.coalesced().to_dense(),
                std::vector<double>(8));
  const auto slices = run(grad(f))(model(), scalar(false)).words.coalesced().slices();
  for (const double index : values_of(slices.indices)) EXPECT_EQ(index, -1);
}

TEST_P(EmbeddingTableTest, PoliciesOfLoopsGiveTheSameRows) {
  const auto with = [](auto set) {
    return [set](const Model& m, const Tensor& ids) {
      Scan spec{
          .initial = scalar(1.0, f64), .xs = ids, .body = [&](const Tensor& id, const Tensor& s) {
            return std::pair{None{}, s + sum(square(gather(m.words, id)) * m.output) * s * 0.01};
          }};
      set(spec);
      return scan(spec).state;
    };
  };
  const Tensor ids = tensor({{2, 0}, {3, 3}, {0, 1}, {1, 1}, {2, 3}});
  const auto all = rows(with([](auto&) {}), ids);
  for (const auto& few : {rows(with([](auto& s) { s.checkpoint = Checkpoint::every(2); }), ids),
                          rows(with([](auto& s) { s.swap_memory = true; }), ids)}) {
    expect_values(few.indices, values_of(all.indices));
    expect_same_bits(few.values, all.values);
  }
}

TEST_P(EmbeddingTableTest, RecomputedFunctionGivesTheRowsItReads) {
  const auto f = [](const Model& m, const Tensor& ids) { return checkpoint(scanned)(m, ids); };
  expect_values(rows(f, tensor({{2, 0}, {3, 3}})).indices, {2, 0, 3, 3});
}

// ---- Tapes, derivatives of derivatives ----------------------------------------------------------

TEST_P(EmbeddingTableTest, AJittedLossUnderATape) {
  const auto loss = run(score);
  const auto gradient = grad([&](const Model& m) { return loss(m, tensor({2, 0, 2})); })(model());
  ASSERT_TRUE(gradient.words.is_sparse());
  expect_values(gradient.words.slices().indices, {2, 0, 2});
  expect_values(gradient.words.slices().values, {5, -24, 1, -8, 5, -24});
  // This graph with a gradient by the whole table.
  const auto whole = [&](const Tensor& t) {
    return loss(Model{EmbeddingTable(t), model().output}, tensor({2, 0, 2}));
  };
  expect_values(grad(whole)(table()), {1, -8, 0, 0, 10, -48, 0, 0});
}

TEST_P(EmbeddingTableTest, ATapeByHandAndAPullbackGiveRows) {
  const auto by_tape = run([](const Model& m, const Tensor& ids) {
    Tape tape;
    tape.watch(m);
    return tape.gradient(score(m, ids), m);
  })(model(), tensor({3, 3}));
  expect_values(by_tape.words.slices().indices, {3, 3});
  const auto by_pullback = run([](const Model& m) {
    return vjp(
               [](const Model& m) {
                 return gather(m.words, tensor({1, 3}));
               },
               m)
        .second(tensor({{1., 2.}, {3., 4.}}, {}, f64));
  })(model());
  expect_values(by_pullback.words.slices().values, {1, 2, 3, 4});
  expect_values(by_pullback.words.slices().indices, {1, 3});
}

TEST_P(EmbeddingTableTest, SecondGradientsOfATableAreThoseOfATensor) {
  // The squared norm of the first gradient, in which each row counts once per read.
  const auto norm = [](const Model& m, const Tensor& ids) {
    const Model g = grad(scanned)(m, ids);
    return sum(square(g.words.to_dense())) + sum(square(g.output));
  };
  rows(norm, tensor({{2, 0}, {3, 3}, {0, 1}}));
}

TEST_P(EmbeddingTableTest, HessianTimesAVectorAndForwardMode) {
  const auto f = [](const Model& m) { return scanned(m, tensor({{2, 0}, {3, 3}})); };
  const Model v{EmbeddingTable(table() * 0.1), tensor({1., -1.}, {}, f64)};
  const auto dense = [&](const std::pair<Tensor, Tensor>& m) {
    return f(Model{EmbeddingTable(m.first), m.second});
  };
  const std::pair at{table(), model().output}, direction{table() * 0.1, v.output};
  const auto product =
      run([&](const Model& m, const Model& v) { return hvp(f, m, v); })(model(), v);
  const auto expected = hvp(dense, at, direction);
  expect_all_close(product.words.to_dense(), expected.first, 1e-12);
  expect_all_close(product.output, expected.second, 1e-12);
  const auto tangent = run([&](const Model& m, const Model& v) { return jvp(f, m, v).second; });
  expect_all_close(tangent(model(), v), jvp(dense, at, direction).second, 1e-12);
}

// ---- Clipping, errors ---------------------------------------------------------------------------

TEST_P(EmbeddingTableTest, ClippingCountsRowsOfOneIndexAsTheirSum) {
  const auto f = [](const EmbeddingTable& t) { return sum(gather(t, tensor({2, 0, 2}))); };
  const auto whole = [](const Tensor& t) { return sum(gather(t, tensor({2, 0, 2}), 0)); };
  const auto clipped = run([&](const EmbeddingTable& t) {
    auto [g, norm] = clip_by_global_norm(grad(f)(t), 0.5);
    return std::tuple{g, norm, clip_by_value(grad(f)(t), -1.5, 1.5),
                      clip_by_value(grad(f)(t), 0.5, 1.5)};
  });
  const auto [g, norm, by_value, away_from_zero] = clipped(EmbeddingTable(table()));
  const auto [dense, dense_norm] = clip_by_global_norm(grad(whole)(table()), 0.5);
  EXPECT_TRUE(g.is_sparse());
  expect_all_close(norm, dense_norm, 1e-12);
  expect_values(norm, {std::sqrt(10)});
  expect_all_close(g.to_dense(), dense, 1e-12);
  EXPECT_TRUE(by_value.is_sparse());
  expect_values(by_value.to_dense(), {1, 1, 0, 0, 1.5, 1.5, 0, 0});
  EXPECT_FALSE(away_from_zero.is_sparse());
  expect_values(away_from_zero.dense(), {1, 1, 0.5, 0.5, 1.5, 1.5, 0.5, 0.5});
}

TEST_P(EmbeddingTableTest, OnATapeATableMayBeAskedForAsAPlainTensor) {
  const auto f = run([](const EmbeddingTable& words) {
    Tape tape({.persistent = true});
    tape.watch(words);
    const Tensor y = sum(square(gather(words, tensor({1, 1, 2}))));
    const auto both = tape.gradient(y, std::pair{words, words.dense()});
    return std::tuple{tape.gradient(y, words.dense()), both.first.to_dense(), both.second};
  });
  const std::vector<double> expected{0, 0, 12, 16, 10, 12, 0, 0};
  const auto [alone, table_too, beside_it] = f(EmbeddingTable(table()));
  for (const Tensor& gradient : {alone, table_too, beside_it}) expect_values(gradient, expected);
}

TEST(EmbeddingTableErrors, ErrorsNameTheFunctionToCall) {
  EXPECT_EQ(message_of<DTypeError>([] {
              EmbeddingTable(tensor({1, 2}));
            }),
            "EmbeddingTable: a table is floating, got i32[2]");
  EXPECT_EQ(message_of<ShapeError>([] { EmbeddingTable(scalar(1.)); }),
            "EmbeddingTable: a table has its rows along its first axis, and sizes that are known, "
            "got f32[]");
  const auto gradient = grad(score)(model(), tensor({0}));
  EXPECT_EQ(message_of<ArgumentError>([&] { gather(gradient.words, tensor({0})); }),
            "EmbeddingTable: dense() of a gradient that is rows; use to_dense() or slices()");
  EXPECT_EQ(message_of<ArgumentError>([&] { model().words.slices(); }),
            "EmbeddingTable: slices() of a table that is whole; is_sparse() tells which it is");
  EXPECT_EQ(message_of<ArgumentError>([&] { gather(EmbeddingTable(), tensor({0})); }),
            "EmbeddingTable: an empty EmbeddingTable was used; make it from a tensor");
}

TEST(EmbeddingTableErrors, RowsOfVmapAreMadeDenseInside) {
  const auto rows = [](const Tensor& x) {
    const EmbeddingTable table(ones({3, 2}));
    return grad([&](const EmbeddingTable& e) { return sum(gather(e, tensor({1, 1}))) * x; })(table);
  };
  const Tensor x = tensor({1., 10.});
  const EmbeddingTable gradient = vmap(rows)(x);
  const std::string message =
      "IndexedSlices: indices are a vector of a plain size, got i64[2,2]; rows of vmap each have "
      "theirs: call to_dense, or with_dense_tables, in the function given to vmap";
  EXPECT_EQ(message_of<ShapeError>([&] { gradient.to_dense(); }), message);
  EXPECT_EQ(message_of<ShapeError>([&] { global_norm(gradient); }), message);
  expect_values(vmap([&](const Tensor& x) { return rows(x).to_dense(); })(x),
                {0, 0, 2, 2, 0, 0, 0, 0, 20, 20, 0, 0});
}

TEST(EmbeddingTableTree, HasThePathOfTheWhole) {
  EXPECT_EQ(tree_paths(model()), (std::vector<std::string>{"words", "output"}));
}

TEST(EmbeddingTableSums, GradientsOfTwoShardsOfABatchAddUp) {
  const EmbeddingTable table(tensor({1., 2., 3., 4., 5., 6., 7., 8.}, {Dim(4), Dim(2)}));
  const auto gradient = [&](std::vector<int> ids) {
    return grad([&](const EmbeddingTable& t) {
      return sum(square(gather(t, tensor(ids, {Dim(std::ssize(ids))}))));
    })(table);
  };
  const EmbeddingTable a = gradient({0, 2}), b = gradient({1, 1}), both = gradient({0, 2, 1, 1});
  ASSERT_TRUE((a + b).is_sparse());
  expect_values((a + b).to_dense(), values_of(both.to_dense()));
  const EmbeddingTable whole(a.to_dense());
  EXPECT_TRUE((whole + b).is_dense());
  expect_values((whole + b).to_dense(), values_of(both.to_dense()));
  EXPECT_NE(message_of<ShapeError>([&] {
              a + EmbeddingTable(zeros({3, 2}));
            }).find("gradients of different tables are added"),
            std::string::npos);
  // Row numbers are not values: adding or scaling leaf by leaf would give other rows.
  const auto add_leaves = [](const Tensor& x, const Tensor& y) { return x + y; };
  EXPECT_NE(message_of<StructureError>([&] {
              tree_map(add_leaves, a, b);
            }).find("tree_map: a gradient in the tree consists of rows of an EmbeddingTable"),
            std::string::npos);
  EXPECT_NE(
      message_of<StructureError>([&] { tree_map(add_leaves, whole, b); }).find("with_dense_tables"),
      std::string::npos);
  const EmbeddingTable mapped = tree_map(add_leaves, with_dense_tables(a), with_dense_tables(b));
  expect_values(mapped.dense(), values_of(both.to_dense()));
}

}  // namespace
}  // namespace reel
