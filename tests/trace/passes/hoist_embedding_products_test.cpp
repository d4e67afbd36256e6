// Products of a whole table instead of the rows gathered in each step: graphs after the pass, and
// comparisons with plans without it and with the interpreter.
#include "reel/trace/passes/hoisting/hoist_embedding_products.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "reel/reel.h"
#include "reel/tests/threads.h"
#include "reel/tests/trace/plan/planned.h"
#include "reel/trace/passes/hoisting/batch_across_iterations.h"

namespace reel {
namespace {

struct Model {
  Tensor table, input, recurrent;  // {symbol, in}, {in, next}, {hidden, next}
};

/// An RNN over the rows of a table that a text selects.
class TextRnn {
 public:
  explicit TextRnn(int symbols = 9, int batch = 6, int steps = 10, int in = 20)
      : batch("batch", batch), time("time", steps), symbol("symbol", symbols), in("in", in) {
    manual_seed(5);
    model = {random_normal({symbol, this->in}, f64), random_normal({this->in, next}, f64),
             random_normal({hidden, next}, f64) * 0.3};
    std::vector<int> numbers;
    for (int i = 0; i < batch * steps; ++i) numbers.push_back(i * i % 7 % symbols);
    text = tensor(numbers, {this->batch, time});
  }

  /// Returns a function that computes the outputs of all steps.
  auto outputs(Checkpoint policy = {}) const {
    return [*this, policy](const Model& m, const Tensor& text) {
      return outputs_of(m, gather(m.table, text, symbol), policy);
    };
  }
  Tensor outputs_of(const Model& m, const Tensor& x, Checkpoint policy = {}) const {
    const auto step = [&](const Tensor& x, const Tensor& h) {
      const Tensor of_h = matmul(h, m.recurrent, hidden);  // first: compilers differ in their order
      const Tensor state = rename(tanh(matmul(x, m.input, in) + of_h), next, hidden);
      return std::pair{state, state};
    };
    return scan(Scan{.spatial_dim = time,
                     .initial = zeros({batch, hidden}, f64),
                     .xs = x,
                     .body = step,
                     .checkpoint = policy})
        .ys;
  }
  auto loss(Checkpoint policy = {}) const {
    return [ys = outputs(policy)](const Model& m, const Tensor& text) {
      return mean(square(ys(m, text)));
    };
  }

  Dim batch, time, symbol, in, hidden{"hidden", 8}, next{"next", 8};
  Model model;
  Tensor text;
};

std::string multiplied(const auto& f, const auto&... args) {
  return ops_behind([](const Graph& graph) { return hoist_embedding_products(*hoist_once(graph)); },
                    f, args...);
}

/// Expects that plans with and without the pass agree with the interpreter.
void expect_same(double tolerance, const auto& f, const auto&... args) {
  const TreeLeaves expected = flatten(jit(f, {.executor = Executor::interpreter})(args...));
  for (const bool multiplies : {true, false})
    for (const int chunk_steps : {0, 3})
      for (const int threads : {1, 2}) {
        SCOPED_TRACE(str(multiplies, ", chunks of ", chunk_steps, ", ", threads, " threads"));
        const Threads on(threads);
        const Passes passes{
            .multiply_tables = multiplies, .chunk_steps = chunk_steps, .block_rows = threads};
        const auto planned = jit(f, {.executor = Executor::plan, .passes = passes});
        const TreeLeaves actual = flatten(planned(args...));
        ASSERT_EQ(actual.size(), expected.size());
        for (std::size_t i = 0; i < actual.size(); ++i)
          if (actual[i].kind == TreeLeaf::Kind::tensor)
            expect_all_close(actual[i].tensor, expected[i].tensor, tolerance);
      }
}

TEST(MultiplyTablesTest, RowsAreGatheredFromTheProduct) {
  const TextRnn rnn;
  const auto f = jit(rnn.outputs());
  f(rnn.model, rnn.text);
  EXPECT_EQ(ops(f.graph()), "gather full transpose full loop{dot dot add tanh rename}");
  EXPECT_EQ(multiplied(rnn.outputs(), rnn.model, rnn.text),
            "full full dot transpose loop{dot gather add tanh rename}");
  expect_same(1e-12, rnn.outputs(), rnn.model, rnn.text);
}

TEST(MultiplyTablesTest, GradientsAreProductsOfSumsByIndex) {
  const TextRnn rnn;
  const auto f = value_and_grad(rnn.loss());
  EXPECT_EQ(multiplied(f, rnn.model, rnn.text),
            "full full dot transpose loop{dot gather add tanh rename} square sum full div full "
            "spread add mul transpose loop{add rename tanh_grad dot dot full scatter_add} "
            "full full scatter_add full greater full where dot dot full full scatter_add full "
            "greater full where");
  expect_same(1e-12, f, rnn.model, rnn.text);
}

TEST(MultiplyTablesTest, PlainDimsAndEitherOrderOfAProduct) {
  manual_seed(7);
  const auto loss = [](const std::pair<Tensor, Tensor>& model, const Tensor& text) {
    const auto& [table, w] = model;
    const Tensor x = gather(table, text, 0);
    const auto step = [&](const Tensor& x, const Tensor& h) {
      const Tensor of_h = h * 0.5;  // first: compilers differ in their order
      const Tensor state = tanh(matmul(x, transpose(w, {1, 0})) + of_h);
      return std::pair{state, state};
    };
    return sum(square(scan(Scan{.initial = zeros({4, 5}, f64), .xs = x, .body = step}).ys));
  };
  const auto f = value_and_grad(loss);
  const Tensor text = tensor({{0, 2, 1, 1}, {3, 4, 2, 2}, {-1, 2, 2, 0}, {1, 1, 1, 1}});
  const std::pair model{random_normal({5, 16}, f64), random_normal({5, 16}, f64)};
  const std::string made = multiplied(f, model, text);
  EXPECT_NE(made.find("loop{full mul gather add tanh}"), std::string::npos) << made;
  EXPECT_NE(made.find("loop{full add tanh_grad mul full scatter_add}"), std::string::npos) << made;
  expect_same(1e-12, f, model, text);
}

TEST(MultiplyTablesTest, GatheredProductsHaveTheSameBits) {
  TextRnn rnn;
  const auto cast_model = [](const Model& m) {
    return Model{cast(m.table, f32), cast(m.input, f32), cast(m.recurrent, f32)};
  };
  const Tensor zero = zeros({rnn.batch, rnn.hidden});
  const auto f = [&](const Model& m, const Tensor& text) {
    const auto step = [&](const Tensor& x, const Tensor& h) {
      const Tensor state = rename(matmul(x, m.input, rnn.in) + matmul(h, m.recurrent, rnn.hidden),
                                  rnn.next, rnn.hidden);
      return std::pair{state, state};
    };
    return scan(Scan{.spatial_dim = rnn.time,
                     .initial = zero,
                     .xs = gather(m.table, text, rnn.symbol),
                     .body = step})
        .ys;
  };
  const Model model = cast_model(rnn.model);
  EXPECT_NE(multiplied(f, model, rnn.text).find("gather"), std::string::npos);
  expect_same_without({.multiply_tables = false}, true, f, model, rnn.text);
}

/// Returns the model with infinities in one row of its table.
Model with_infinite_row(const TextRnn& rnn, int row) {
  Model model = rnn.model;
  const Dim one("one", 1);
  model.table =
      scatter_add(model.table, tensor({row}, {one}),
                  full({one, rnn.in}, std::numeric_limits<double>::infinity(), f64), rnn.symbol);
  return model;
}

TEST(MultiplyTablesTest, UnreadRowsMayHoldAnything) {
  const TextRnn rnn;  // the text uses seven of the nine symbols
  const auto f = value_and_grad(rnn.loss());
  const auto [value, gradient] = jit(f)(with_infinite_row(rnn, 8), rnn.text);
  const auto [expected, slope] = f(rnn.model, rnn.text);
  expect_all_close(value, expected, 1e-12);
  expect_all_close(gradient.table, slope.table, 1e-12);
  expect_all_close(gradient.input, slope.input, 1e-12);
}

TEST(MultiplyTablesTest, RowsThatAreTakenDoNot) {
  const TextRnn rnn;
  Model model = with_infinite_row(rnn, 1);
  model.input = abs(model.input);  // then tanh is 1, its gradient 0, and 0 times infinity NaN
  const auto gradient = jit(grad(rnn.loss()))(model, rnn.text),
             expected = grad(rnn.loss())(model, rnn.text);
  expect_same_bits(isnan(gradient.input), isnan(expected.input));
  expect_same_bits(isnan(gradient.table), isnan(expected.table));
  EXPECT_TRUE(any(isnan(expected.input)).item<bool>());
}

TEST(MultiplyTablesTest, TwoLoopsOverOneText) {
  const TextRnn rnn;
  const auto both = [&](const std::pair<Model, Model>& m, const Tensor& text) {
    return rnn.loss()(m.first, text) + rnn.loss()(m.second, text);
  };
  // Both loops may share the table; its gradient is a sum then.
  const auto shared = [&](const std::pair<Model, Tensor>& m, const Tensor& text) {
    Model second = m.first;
    second.input = m.second;
    return rnn.loss()(m.first, text) + rnn.loss()(second, text);
  };
  Model other = rnn.model;
  other.input = rnn.model.input * 0.5;
  expect_same(1e-12, value_and_grad(both), std::pair{rnn.model, other}, rnn.text);
  expect_same(1e-12, value_and_grad(shared), std::pair{rnn.model, other.input}, rnn.text);
}

TEST(MultiplyTablesTest, ALoopAroundLeavesGradientsAsTheyAre) {
  const TextRnn rnn;
  const auto f = [&](const Model& m, const Tensor& texts) {
    const auto body = [&](const Tensor& text, const Tensor& total) {
      return std::pair{None{}, total + rnn.loss()(m, text)};
    };
    const Dim text_dim = texts.dims()[0];
    return scan(
               Scan{.spatial_dim = text_dim, .initial = scalar(0., f64), .xs = texts, .body = body})
        .state;
  };
  const Tensor texts = expand(rnn.text, {Dim("piece", 3), rnn.batch, rnn.time});
  expect_same(1e-12, value_and_grad(f), rnn.model, texts);
}

TEST(MultiplyTablesTest, PoliciesChangeNoBits) {
  const TextRnn rnn(9, 6, 40);
  const auto keeping_all = jit(value_and_grad(rnn.loss()))(rnn.model, rnn.text).second;
  const auto again = [](const StepValue&) { return Saving::recompute; };
  for (const Checkpoint& policy : {Checkpoint::every(7), Checkpoint::budget(20'000),
                                   Checkpoint().where(again), Checkpoint::every(5).where(again)}) {
    const auto gradient = jit(value_and_grad(rnn.loss(policy)))(rnn.model, rnn.text).second;
    expect_same_bits(gradient.table, keeping_all.table);
    expect_same_bits(gradient.input, keeping_all.input);
    expect_same_bits(gradient.recurrent, keeping_all.recurrent);
  }
}

TEST(MultiplyTablesTest, WhereIndicesAreFewItStays) {
  const auto is_multiplied = [](const TextRnn& rnn) {
    const auto f = jit(value_and_grad(rnn.loss()));
    f(rnn.model, rnn.text);
    return ops(*hoist_embedding_products(f.graph())) != ops(f.graph());
  };
  EXPECT_TRUE(is_multiplied(TextRnn(30, 6, 10)));
  EXPECT_FALSE(is_multiplied(TextRnn(31, 6, 10)));  // each row is used twice
  EXPECT_TRUE(is_multiplied(TextRnn(96, 6, 100)));
  EXPECT_FALSE(is_multiplied(TextRnn(97, 6, 100)));    // rows of 16 steps
  EXPECT_FALSE(is_multiplied(TextRnn(9, 6, 10, 15)));  // too few columns
}

/// Returns the text with symbol 0 replaced, so that not every row of the table is used.
Tensor without_row_0(const Tensor& text) { return where(text == 0, 3, text); }

TEST(MultiplyTablesTest, IndicesThatAreClipped) {
  const TextRnn rnn;
  const auto f = value_and_grad([&](const Model& m, const Tensor& text) {
    return mean(square(rnn.outputs_of(m, gather(m.table, text, rnn.symbol, {.clip = true}))));
  });
  const Tensor text = without_row_0(rnn.text);
  for (const Tensor& indices : {text, where(text < 3, -1, text), text - 20, text + 5}) {
    const auto planned = jit(f);
    expect_same(1e-12, f, rnn.model, indices);
    planned(rnn.model, indices);  // if the plan failed, calls would run in the interpreter
    EXPECT_NE(planned.explain().find("hoisted: dot"), std::string::npos) << planned.explain();
  }
}

TEST(MultiplyTablesTest, TablesThatOneTextTakesRowsOf) {
  const Dim batch("batch", 6), time("time", 12), next("next", 5);
  const Dim in("in", 20), also_in("also_in", 16);
  struct Tables {
    Tensor table, by, other, other_by;
  };
  const auto check = [&](const Dim& symbol, const Dim& other_symbol, const GatherOptions& how,
                         const GatherOptions& other_how) {
    manual_seed(4);
    const auto loss = [&](const Tables& m, const Tensor& text) {
      const auto step = [&](const std::pair<Tensor, Tensor>& x, const Tensor& h) {
        const Tensor both = matmul(x.first, m.by, in) + matmul(x.second, m.other_by, also_in);
        const Tensor state = tanh(both * 0.2 + h);
        return std::pair{state, state};
      };
      return sum(square(scan(Scan{.spatial_dim = time,
                                  .initial = zeros({batch, next}, f64),
                                  .xs = std::pair{gather(m.table, text, symbol, how),
                                                  gather(m.other, text, other_symbol, other_how)},
                                  .body = step})
                            .ys));
    };
    std::vector<int> numbers;
    for (int i = 0; i < 72; ++i) numbers.push_back(i * i % 7 - 3);
    const Tables tables{random_normal({symbol, in}, f64), random_normal({in, next}, f64),
                        random_normal({other_symbol, also_in}, f64),
                        random_normal({also_in, next}, f64)};
    const auto f = value_and_grad(loss);
    const Tensor text = tensor(numbers, {batch, time});
    expect_same(1e-12, f, tables, text);
    return multiplied(f, tables, text);
  };
  const auto count = [](const std::string& made, const std::string& op) {
    std::size_t found = 0;
    for (std::size_t at = made.find(op); at != made.npos; at = made.find(op, at + 1)) ++found;
    return found;
  };
  const Dim nine("nine", 9), eleven("eleven", 11), also_nine("also_nine", 9);
  // The scatter_adds sum the steps, and count the uses of each row for each of two products.
  EXPECT_EQ(count(check(nine, nine, {}, {}), "scatter_add"), 1u + 4u);
  EXPECT_EQ(count(check(nine, eleven, {}, {}), "scatter_add"), 2u + 4u);
  EXPECT_EQ(count(check(nine, also_nine, {}, {}), "scatter_add"), 2u + 4u);
  EXPECT_EQ(count(check(nine, nine, {}, {.clip = true}), "scatter_add"), 2u + 4u);
}

TEST(MultiplyTablesTest, IndicesThatTheLoopMakes) {
  manual_seed(3);
  const auto f = [](const Tensor& x, const Tensor& w) {
    const auto step = [&](const Tensor& x, const Tensor& n) {
      return std::pair{std::pair{matmul(x, w), argmax(x, 1)}, n + 1.};
    };
    const auto [ys, n, steps] = scan(Scan{.initial = scalar(0.), .xs = x, .body = step});
    return std::pair{scatter_add(zeros({9, 16}, f64), ys.second, ys.first, 0), n};
  };
  expect_same(1e-12, f, random_normal({12, 6, 5}, f64), random_normal({5, 16}, f64));
}

TEST(MultiplyTablesTest, PrintsBetweenALoopAndItsLookupsStayInPlace) {
  const TextRnn rnn;
  const auto output_of = [](const auto& f, const auto&... args) {
    testing::internal::CaptureStdout();
    const std::string message = message_of<IndexError>([&] { f(args...); });
    return testing::internal::GetCapturedStdout() + message;
  };
  const auto before = [&](const Model& m, const Tensor& text) {
    const Tensor x = gather(m.table, text, rnn.symbol);
    return rnn.outputs_of(m, x + zeros_like(x)) + print(sum(m.input), "before");
  };
  const auto between = [&](const Model& m, const Tensor& text) {
    const Tensor x = gather(m.table, text, rnn.symbol);
    const Tensor shown = print(sum(m.input), "between");
    return rnn.outputs_of(m, x) + shown;
  };
  const auto in_a_loop = [&](const Model& m, const Tensor& text) {
    return fori_loop(
        0, 2, [&](const Tensor&, const Tensor& y) { return y + between(m, text); },
        zeros({rnn.time, rnn.batch, rnn.hidden}, f64));
  };
  const Tensor bad = rnn.text + 5;
  for (const auto& f : {std::function<Tensor(const Model&, const Tensor&)>(before),
                        std::function<Tensor(const Model&, const Tensor&)>(between),
                        std::function<Tensor(const Model&, const Tensor&)>(in_a_loop)})
    EXPECT_EQ(output_of(jit(f), rnn.model, bad), output_of(f, rnn.model, bad));
  // An effect behind the loop happens before the failing sums by index.
  const auto behind = [&](const Tensor& x, const Tensor& w, const Tensor& text) {
    const auto step = [&](const Tensor& x, const Tensor& n) {
      return std::pair{matmul(x, w), n + 1.};
    };
    const auto [ys, n, steps] = scan(Scan{.initial = zeros({}, f64), .xs = x, .body = step});
    const Tensor shown = print(n, "behind");
    return scatter_add(zeros({9, 16}, f64), text, ys, 0) + shown;
  };
  const Tensor x = random_normal({12, 6, 5}, f64), w = random_normal({5, 16}, f64);
  const Tensor text = tensor(std::vector<int>(72, 9), {12, 6});
  EXPECT_EQ(output_of(jit(behind), x, w, text), output_of(behind, x, w, text));
}

TEST(MultiplyTablesTest, NothingIsPrintedBeforeAnIndexIsFoundToBeOutOfRange) {
  const TextRnn rnn;
  const auto f = [&](const Model& m, const Tensor& text) {
    const auto step = [&](const Tensor& x, const Tensor& h) {
      const Tensor state = print(h, "h") + rename(matmul(x, m.input, rnn.in), rnn.next, rnn.hidden);
      return std::pair{state, state};
    };
    return scan(Scan{.spatial_dim = rnn.time,
                     .initial = zeros({rnn.batch, rnn.hidden}, f64),
                     .xs = gather(m.table, text, rnn.symbol),
                     .body = step})
        .ys;
  };
  const auto message = [&](const auto& of) {
    return message_of<IndexError>([&] { of(rnn.model, rnn.text + 5); });
  };
  testing::internal::CaptureStdout();
  const std::string expected = message(f), planned = message(jit(f));
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
  EXPECT_EQ(planned, expected);
}

TEST(MultiplyTablesTest, TablesOfAnySizeHaveTheSameGradients) {
  for (const auto& rnn : {TextRnn(3, 1, 1, 1), TextRnn(40, 2, 3, 2), TextRnn(1, 3, 5, 4)}) {
    const auto f = jit(value_and_grad(rnn.loss()),
                       {.executor = Executor::plan, .passes = {.multiply_any = true}});
    const auto [value, gradient] = f(rnn.model, rnn.text);
    const auto [expected, slope] = value_and_grad(rnn.loss())(rnn.model, rnn.text);
    expect_all_close(value, expected, 1e-12);
    expect_all_close(gradient.table, slope.table, 1e-12);
    expect_all_close(gradient.input, slope.input, 1e-12);
    EXPECT_NE(f.explain().find("of sums by index"), std::string::npos) << f.explain();
  }
}

TEST(MultiplyTablesTest, ExplainSaysSo) {
  const TextRnn rnn;
  const auto f = jit(value_and_grad(rnn.loss()));
  f(rnn.model, rnn.text);
  const std::string text = f.explain();
  for (const char* line :
       {"  hoisted: dot(f64[batch=6,in=20], f64[in=20,next=8]) -> f64[batch=6,next=8], once for "
        "each row of f64[symbol=9,in=20], from which its rows are gathered\n",
        "sunk: dot(f64[batch=6,in=20], f64[batch=6,next=8]) -> f64[in=20,next=8], of sums by "
        "index\n"})
    EXPECT_NE(text.find(line), std::string::npos) << text;
}

}  // namespace
}  // namespace reel
