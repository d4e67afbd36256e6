// Optimisers on tables with sparse gradients: a step updates only the rows in the gradient.
#include <gtest/gtest.h>

#include "reel/tests/modes.h"
#include "reel/tests/own_folder.h"
#include "reel/tests/peaks.h"

namespace reel {
namespace {

struct Model {
  EmbeddingTable words;
  Tensor output;
};

/// A table of 5 rows of 2 elements, all different.
Tensor table(DType dtype = f64) {
  return tensor({{1., 2.}, {3., 4.}, {5., 6.}, {7., 8.}, {-1., 0.5}}, {}, dtype);
}
Model model() { return {EmbeddingTable(table()), tensor({0.5, -2.}, {}, f64)}; }

Tensor loss(const Model& model, const Tensor& ids) {
  return sum(square(sin(gather(model.words, ids))) * model.output);
}

/// Row numbers of three steps. Rows 0 and 4 are never read, and some are read twice in a step.
const std::vector<Tensor>& batches() {
  static const std::vector<Tensor> result{tensor({1, 3, 1}), tensor({3}), tensor({2, 1, 2, 2})};
  return result;
}

using SparseOptimisersTest = InEveryMode;
REEL_IN_EVERY_MODE(SparseOptimisersTest);

/// Expects that sparse training equals training each row alone, as a plain parameter with its own
/// optimiser. The optimiser of a row that is not read skips the step.
template <class MakeTable, class MakeRow>
void expect_steps_of_rows(RunMode mode, const MakeTable& make, const MakeRow& make_row) {
  Model m = model();
  auto optimiser = make(m);
  const InMode step(
      [](Model m, auto optimiser, const Tensor& ids) {
        const Model gradient = grad(loss)(m, ids);
        optimiser.update(m, gradient);
        return std::pair{m, optimiser};
      },
      mode);
  std::vector<Tensor> rows;
  for (std::int64_t i = 0; i < 5; ++i) rows.push_back(reshape(slice(table(), 0, i, i + 1), {2}));
  std::vector<std::decay_t<decltype(make_row(rows[0]))>> own;
  for (const Tensor& row : rows) own.push_back(make_row(row));
  Tensor output = model().output;
  auto of_output = make_row(output);
  for (const Tensor& ids : batches()) {
    std::tie(m, optimiser) = step(m, optimiser, ids);
    const std::vector<double> read = values_of(ids);
    const Tensor whole = stack(Tensors(rows.begin(), rows.end()));
    const auto plain = [&](const std::pair<Tensor, Tensor>& at) {
      return sum(square(sin(gather(at.first, ids, 0))) * at.second);
    };
    const auto g = grad(plain)(std::pair{whole, output});
    for (std::int64_t i = 0; i < 5; ++i) {
      Tensor g_row = reshape(slice(g.first, 0, i, i + 1), {2});
      if (std::count(read.begin(), read.end(), i))
        own[i].update(rows[i], g_row);
      else
        own[i].skip();
    }
    of_output.update(output, g.second);
    expect_all_close(m.words.dense(), stack(Tensors(rows.begin(), rows.end())), 1e-12);
    expect_all_close(m.output, output, 1e-12);
  }
  expect_same_bits(slice(m.words.dense(), 0, 0, 1), slice(table(), 0, 0, 1));
  expect_same_bits(slice(m.words.dense(), 0, 4, 5), slice(table(), 0, 4, 5));
}

// Steps of one row in plain doubles, by the formulas of the papers.

struct RowRule {
  std::function<void(std::vector<double>&, const std::vector<double>&, int)> rule;
  int t = 0;
  void update(Tensor& p, const Tensor& g) {
    std::vector<double> values = values_of(p);
    rule(values, values_of(g), ++t);
    p = tensor(values, {}, f64);
  }
  void skip() { ++t; }
};

TEST_P(SparseOptimisersTest, SgdUpdatesTheRowsThatAreRead) {
  expect_steps_of_rows(
      GetParam(), [](const Model& m) { return Sgd(m, {.learning_rate = 0.1}); },
      [](const Tensor&) {
        return RowRule{[](auto& p, const auto& g, int) {
          for (std::size_t k = 0; k < 2; ++k) p[k] -= 0.1 * g[k];
        }};
      });
}

TEST_P(SparseOptimisersTest, SgdWithMomentumOfTheRowsThatAreRead) {
  expect_steps_of_rows(
      GetParam(), [](const Model& m) { return Sgd(m, {.learning_rate = 0.1, .momentum = 0.9}); },
      [](const Tensor&) {
        return RowRule{[v = std::vector<double>(2)](auto& p, const auto& g, int) mutable {
          for (std::size_t k = 0; k < 2; ++k) p[k] -= 0.1 * (v[k] = 0.9 * v[k] + g[k]);
        }};
      });
}

/// A row's moments stay as they are while the row is not read; t counts all steps.
RowRule adam_of_a_row(double decay) {
  return {[decay, m = std::vector<double>(2), v = std::vector<double>(2)](auto& p, const auto& g,
                                                                          int t) mutable {
    for (std::size_t k = 0; k < 2; ++k) {
      m[k] = 0.9 * m[k] + 0.1 * g[k];
      v[k] = 0.99 * v[k] + 0.01 * g[k] * g[k];
      p[k] *= 1 - 0.1 * decay;
      p[k] -=
          0.1 * m[k] / (1 - std::pow(0.9, t)) / (std::sqrt(v[k] / (1 - std::pow(0.99, t))) + 1e-8);
    }
  }};
}

TEST_P(SparseOptimisersTest, AdamOfTheRowsThatAreRead) {
  expect_steps_of_rows(
      GetParam(), [](const Model& m) { return Adam(m, {.learning_rate = 0.1, .beta2 = 0.99}); },
      [](const Tensor&) { return adam_of_a_row(0); });
}

TEST_P(SparseOptimisersTest, AdamWDecaysTheRowsThatAreRead) {
  expect_steps_of_rows(
      GetParam(),
      [](const Model& m) {
        return AdamW(m, {.learning_rate = 0.1, .beta2 = 0.99, .weight_decay = 0.3});
      },
      [](const Tensor&) { return adam_of_a_row(0.3); });
}

TEST_P(SparseOptimisersTest, CenteredRmsPropWithMomentum) {
  expect_steps_of_rows(
      GetParam(),
      [](const Model& m) {
        return RmsProp(m, {.learning_rate = 0.1, .decay = 0.8, .momentum = 0.5, .centered = true});
      },
      [](const Tensor&) {
        return RowRule{[s = std::vector<double>(2), a = std::vector<double>(2),
                        v = std::vector<double>(2)](auto& p, const auto& g, int) mutable {
          for (std::size_t k = 0; k < 2; ++k) {
            s[k] = 0.8 * s[k] + 0.2 * g[k] * g[k];
            a[k] = 0.8 * a[k] + 0.2 * g[k];
            v[k] = 0.5 * v[k] + g[k] / (std::sqrt(s[k] - a[k] * a[k]) + 1e-8);
            p[k] -= 0.1 * v[k];
          }
        }};
      });
}

TEST_P(SparseOptimisersTest, SgdDecaysTheRowsThatAreRead) {
  expect_steps_of_rows(
      GetParam(),
      [](const Model& m) { return Sgd(m, {.learning_rate = 0.1, .weight_decay = 0.5}); },
      [](const Tensor&) {
        return RowRule{[](auto& p, const auto& g, int) {
          for (std::size_t k = 0; k < 2; ++k) p[k] -= 0.1 * (g[k] + 0.5 * p[k]);
        }};
      });
}

TEST_P(SparseOptimisersTest, AdagradUpdatesTheRowsThatAreRead) {
  expect_steps_of_rows(
      GetParam(), [](const Model& m) { return Adagrad(m, {.learning_rate = 0.1}); },
      [](const Tensor&) {
        return RowRule{[s = std::vector<double>(2)](auto& p, const auto& g, int) mutable {
          for (std::size_t k = 0; k < 2; ++k)
            p[k] -= 0.1 * g[k] / (std::sqrt(s[k] += g[k] * g[k]) + 1e-10);
        }};
      });
}

TEST_P(SparseOptimisersTest, LionUpdatesTheRowsThatAreRead) {
  expect_steps_of_rows(
      GetParam(),
      [](const Model& m) { return Lion(m, {.learning_rate = 0.1, .weight_decay = 0.5}); },
      [](const Tensor&) {
        return RowRule{[m = std::vector<double>(2)](auto& p, const auto& g, int) mutable {
          for (std::size_t k = 0; k < 2; ++k) {
            const double c = 0.9 * m[k] + 0.1 * g[k];
            p[k] -= 0.1 * ((c > 0) - (c < 0) + 0.5 * p[k]);
            m[k] = 0.99 * m[k] + 0.01 * g[k];
          }
        }};
      });
}

// ---- Beside a whole gradient --------------------------------------------------------------------

TEST_P(SparseOptimisersTest, PlainDescentHasTheBitsOfAWholeGradient) {
  const Tensor ids = tensor({1, 3, 1, 0});
  const auto f = [](const EmbeddingTable& t, const Tensor& ids) {
    return sum(sin(gather(t, ids)));
  };
  const auto step = run([&](EmbeddingTable t, const Tensor& ids) {
    Sgd sgd(t, {.learning_rate = 0.1});
    sgd.update(t, grad(f)(t, ids));
    return t.dense();
  });
  Tensor whole = table(f32);
  Sgd sgd(whole, {.learning_rate = 0.1});
  sgd.update(whole, grad([&](const Tensor& t) { return f(EmbeddingTable(t), ids); })(whole));
  expect_same_bits(step(EmbeddingTable(table(f32)), ids), whole);
}

TEST_P(SparseOptimisersTest, AWholeGradientOfATableIsAPlainStep) {
  const auto f = [](const EmbeddingTable& t) {
    return sum(sin(gather(t, tensor({1, 2})))) + sum(square(t.dense()));
  };
  const auto step = run([&](EmbeddingTable t) {
    Adam adam(t, {.learning_rate = 0.1});
    adam.update(t, grad(f)(t));
    return t.dense();
  });
  Tensor whole = table();
  Adam adam(whole, {.learning_rate = 0.1});
  adam.update(whole, grad([&](const Tensor& t) { return f(EmbeddingTable(t)); })(whole));
  expect_all_close(step(EmbeddingTable(table())), whole, 1e-12);
}

TEST_P(SparseOptimisersTest, MoreReadsThanRows) {
  const Tensor ids = cast(floor(random_uniform({500}) * 5.), i32);
  const auto f = [&](const EmbeddingTable& t) { return sum(sin(gather(t, ids))); };
  const auto step = run([&](EmbeddingTable t) {
    Sgd sgd(t, {.learning_rate = 0.1, .momentum = 0.9});
    sgd.update(t, grad(f)(t));
    return t.dense();
  });
  Tensor whole = table();
  Sgd sgd(whole, {.learning_rate = 0.1, .momentum = 0.9});
  sgd.update(whole, grad([&](const Tensor& t) { return f(EmbeddingTable(t)); })(whole));
  expect_all_close(step(EmbeddingTable(table())), whole, 1e-12);
}

TEST_P(SparseOptimisersTest, MoreReadsThanRowsByALoopOfUnknownLength) {
  const auto f = [](const EmbeddingTable& t) {
    const auto cond = [](const Tensor& i, const Tensor&) { return i < 12; };
    const auto body = [&](const Tensor& i, const Tensor& s) {
      return std::tuple{i + 1, s + sum(sin(gather(t, mod(i, 3))))};
    };
    return std::get<1>(while_loop(cond, body, std::tuple{0, scalar(0., f64)}));
  };
  const auto step = run([&](EmbeddingTable t) {
    Sgd sgd(t, {.learning_rate = 0.1});
    const EmbeddingTable gradient = grad(f)(t).coalesced();
    sgd.update(t, gradient);
    return std::pair{t.dense(), gradient.slices().indices};
  });
  std::vector<double> expected = values_of(table());
  for (std::size_t i = 0; i < 6; ++i) expected[i] -= 0.1 * 4 * std::cos(expected[i]);
  const auto [after, indices] = step(EmbeddingTable(table()));
  expect_values(after, expected, 1e-12);
  expect_values(indices, {0, 1, 2, -1, -1});
}

TEST_P(SparseOptimisersTest, NoReadNoChange) {
  const auto step = run([](Model m, const Tensor& ids) {
    Adam adam(m);
    adam.update(m, grad(loss)(m, ids));
    return m;
  });
  expect_same_bits(step(model(), zeros({0}, i32)).words.dense(), table());
}

TEST_P(SparseOptimisersTest, TablesMayHaveNamedDims) {
  const Dim vocab("vocab", 5), feature("feature", 2), batch("batch", 2);
  const Dim time("time", tensor({3, 1}, {batch}));
  const EmbeddingTable words(reshape(table(), {vocab, feature}));
  const Tensor ids = tensor({{0, 1, 1}, {3, 77, 78}}, {batch, time});
  const auto f = [](const EmbeddingTable& words, const Tensor& ids) {
    return sum(sin(gather(words, ids)));
  };
  const auto step = run([&](EmbeddingTable words, const Tensor& ids) {
    Sgd sgd(words, {.learning_rate = 0.1});
    sgd.update(words, grad(f)(words, ids));
    return words;
  });
  const auto after = step(words, ids);
  EXPECT_EQ(after.dense().type(), words.dense().type());
  std::vector<double> expected = values_of(table());
  const std::vector<double> reads{1, 1, 2, 2, 0, 0, 1, 1, 0, 0};
  for (std::size_t i = 0; i < 10; ++i) expected[i] -= 0.1 * reads[i] * std::cos(expected[i]);
  expect_values(after.dense(), expected, 1e-12);
}

// ---- In place -----------------------------------------------------------------------------------

const void* place_of(const Tensor& x) { return x.data<void>(); }

TEST(SparseUpdates, AreInPlaceEagerly) {
  Model m{EmbeddingTable(table() + 0.), model().output + 0.};
  Adam adam(m);
  const void* place = place_of(m.words.dense());
  adam.update(m, grad(loss)(m, tensor({1, 3})));
  adam.update(m, grad(loss)(m, tensor({2})));
  EXPECT_EQ(place_of(m.words.dense()), place);
}

TEST(SparseUpdates, AreInPlaceWhereArgumentsAreMovedIn) {
  using State = std::pair<Model, Adam<Model>>;
  const auto step = jit([](const State& state, const Tensor& ids) {
    auto [m, adam] = state;
    adam.update(m, clip_by_global_norm(grad(loss)(m, ids), 1.).first);
    return State{m, adam};
  });
  Model m{EmbeddingTable(table() + 0.), model().output + 0.};
  State state{m, Adam(m)};
  m = {};
  state = step(std::move(state), tensor({1, 3}));
  const void* place = place_of(state.first.words.dense());
  for (int i = 0; i < 3; ++i) state = step(std::move(state), tensor({2, 1}));
  EXPECT_EQ(place_of(state.first.words.dense()), place);
}

// A gradient of the whole table would be as large as another table.
TEST(SparseUpdates, NeverMakeTheWholeGradient) {
  using State = std::pair<Model, Adam<Model>>;
  constexpr std::int64_t kRows = 50'000, kTable = kRows * 2 * 8;
  const auto step = [](State state, const Tensor& ids) {
    auto& [m, adam] = state;
    adam.update(m, clip_by_global_norm(grad(loss)(m, ids), 1.).first);
    return state;
  };
  const auto peak_of = [&](const auto& train) {
    Model m{EmbeddingTable(zeros({kRows, 2}, f64)), model().output + 0.};
    State state{m, Adam(m)};
    m = {};
    state = train(std::move(state), tensor({1, 3}));  // makes the moments and the plan
    return peaks_of([&] { state = train(std::move(state), tensor({2, 1})); }).all.peak;
  };
  EXPECT_LT(peak_of(step), kTable / 10);
  EXPECT_LT(peak_of(jit(step)), kTable / 10);
}

TEST(SparseUpdates, LeaveATableHeldByAnotherReference) {
  Model m = model();
  const Tensor held = m.words.dense();
  Sgd sgd(m, {.learning_rate = 0.1});
  sgd.update(m, grad(loss)(m, tensor({1, 3})));
  expect_same_bits(held, table());
  EXPECT_NE(place_of(m.words.dense()), place_of(held));
}

// ---- Files --------------------------------------------------------------------------------------

class SparseFilesTest : public InOwnFolder {
 protected:
  SparseFilesTest() : InOwnFolder("training.safetensors") {}
};

TEST_F(SparseFilesTest, ARunGoesOnFromItsFile) {
  struct Training {
    Model model;
    Adam<Model> adam;
  };
  const auto go = [](Training& training, const Tensor& ids) {
    training.adam.update(training.model, grad(loss)(training.model, ids));
  };
  Training first{model(), Adam(model())};
  go(first, batches()[0]);
  save_checkpoint(path, first);
  EXPECT_EQ(tree_paths(first)[0], "model.words");
  Training second{model(), Adam(model())};
  load_checkpoint(path, second);
  for (Training* training : {&first, &second}) go(*training, batches()[2]);
  expect_same_bits(second.model.words.dense(), first.model.words.dense());
}

// ---- Errors -------------------------------------------------------------------------------------

Model gradient_with(const Tensor& values, const Tensor& indices, const Dims& dims) {
  return {EmbeddingTable({values, indices, tensor({5, 2})}, dims), zeros({2}, f64)};
}

TEST_P(SparseOptimisersTest, RowsThatAreNoneOfTheTableChangeNothing) {
  const auto step = run([](Model m, const Model& gradient) {
    Sgd sgd(m, {.learning_rate = 0.1});
    sgd.update(m, gradient);
    return m;
  });
  const Model beyond = gradient_with(ones({2, 2}, f64), tensor({0, 5}), {5, 2});
  EXPECT_EQ(message_of<IndexError>([&] { step(model(), beyond); }),
            "IndexedSlices: index 5 at [1] of i32[2] is out of range for a table with 5 rows");
}

TEST(SparseOptimisersErrors, NameTheTableAndLeaveAllAsItWas) {
  Model m = model();
  Sgd sgd(m, {.learning_rate = 0.1});
  EXPECT_EQ(message_of<ShapeError>([&] {
              sgd.update(m, gradient_with(ones({2, 3}, f64), tensor({0, 1}), {5, 3}));
            }),
            "Sgd: types differ from those of the parameters\n  words: f64[5,2], its gradient is "
            "rows f64[2,3] of a table with the dims [5,3]");
  EXPECT_EQ(message_of<DTypeError>([&] {
              sgd.update(m, gradient_with(ones({2, 2}), tensor({0, 1}), {5, 2}));
            }),
            "Sgd: types differ from those of the parameters\n  words: f64[5,2], its gradient is "
            "rows f32[2,2] of a table with the dims [5,2]");
  EXPECT_EQ(message_of<ShapeError>([&] {
              sgd.update(m, gradient_with(ones({2, 2}, f64), tensor({0, 1, 2}), {5, 2}));
            }),
            "IndexedSlices: values are one row for each index, with plain sizes, got values "
            "f64[2,2] and indices i64[3]");
  EXPECT_EQ(message_of<DTypeError>([&] {
              sgd.update(m, gradient_with(ones({1, 2}, f64), tensor({0.5}), {5, 2}));
            }),
            "IndexedSlices: indices are i32 or i64, got f32[1]");
  expect_same_bits(m.words.dense(), table());
  EXPECT_EQ(sgd.step().item<std::int64_t>(), 0);
}

}  // namespace
}  // namespace reel
