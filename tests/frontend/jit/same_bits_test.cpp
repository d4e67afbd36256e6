// Eager mode, the interpreter and the dataflow executor give the same bits for values and
// gradients, and close higher gradients, over models of every kind.
#include <functional>

#include "reel/tests/modes.h"

namespace reel {
namespace {

using In = std::vector<Tensor>;
using Loss = std::function<Tensor(const In&)>;

struct Model {
  std::string name;
  Loss loss;
  In in;
};

Tensor numbers(const Dims& dims, double seed, DType dtype) {
  std::vector<double> values(static_cast<std::size_t>(TensorType(dtype, dims).numel()));
  for (double& value : values) value = std::sin(seed += 1.37) * 0.7;
  return dims.empty() ? scalar(values[0], dtype) : tensor(values, dims, dtype);
}

struct Lstm {
  Tensor c, h;
};

Model lstm(const std::string& name, const Dim& time, const Dim& batch, DType dtype) {
  const Dim in("in", 3), hidden("hidden", 4), gates("gates", 16);
  const auto loss = [=](const In& p) {
    const auto step = [&](const Tensor& x, const Lstm& s) {
      const Tensor z = matmul(x, p[1], in) + matmul(s.h, p[2], hidden) + p[3];
      const auto [i, f, g, o] = split<4>(z, gates, hidden);
      const Tensor c = s.c * sigmoid(f) + sigmoid(i) * tanh(g);
      const Tensor h = sigmoid(o) * tanh(c);
      return std::pair{h, Lstm{c, h}};
    };
    const Tensor zero = zeros({p[0].dim("batch"), hidden}, dtype);
    auto [ys, last, dim] = scan(Scan{
        .spatial_dim = p[0].dim("time"), .initial = Lstm{zero, zero}, .xs = p[0], .body = step});
    return sum(square(ys)) + sum(last.c * last.h);
  };
  return {name,
          loss,
          {numbers({batch, time, in}, 0.1, dtype), numbers({in, gates}, 0.2, dtype),
           numbers({hidden, gates}, 0.3, dtype), numbers({gates}, 0.4, dtype)}};
}

Model gru(const Dim& time, const Dim& batch, DType dtype) {
  const Dim in("in", 3), hidden("hidden", 4), next("next", 4);
  const auto loss = [=](const In& p) {
    const auto step = [&](const Tensor& x, const Tensor& h) {
      const auto gate = [&](int k, const Tensor& h) {
        return rename(matmul(x, p[k], in) + matmul(h, p[k + 1], hidden), next, hidden);
      };
      const Tensor z = sigmoid(gate(1, h)), r = sigmoid(gate(3, h));
      const Tensor h_next = (1.0 - z) * h + z * tanh(gate(5, r * h));
      return std::pair{h_next, h_next};
    };
    auto [ys, last, dim] = scan(Scan{.spatial_dim = p[0].dim("time"),
                                     .initial = zeros({p[0].dim("batch"), hidden}, dtype),
                                     .xs = p[0],
                                     .body = step,
                                     .reverse = true});
    return sum(square(ys)) + sum(last * last * last);
  };
  In p{numbers({batch, time, in}, 0.1, dtype)};
  for (int k = 0; k < 3; ++k) {
    p.push_back(numbers({in, next}, k + 0.2, dtype));
    p.push_back(numbers({hidden, next}, k + 0.6, dtype));
  }
  return {"Gru", loss, p};
}

std::vector<Model> models(DType dtype) {
  const Dim batch("batch", 3), time("time", 5), ragged("time", tensor({5, 2, 4}, {batch}));
  std::vector<Model> all{lstm("Lstm", time, batch, dtype), lstm("RaggedLstm", ragged, batch, dtype),
                         gru(ragged, batch, dtype)};
  const Tensor x = numbers({7}, 0.5, dtype), w = scalar(0.83, dtype), b = scalar(0.27, dtype);
  all.push_back(
      {"RepeatedSquaring",
       [](const In& p) {
         return fori_loop(
             0, 4, [&](const Tensor&, const Tensor& y) { return y * y * p[1] + y * p[0]; }, p[0]);
       },
       {w, b}});
  all.push_back({"CaptureUsedManyTimes",
                 [](const In& p) {
                   const auto last = while_loop(
                       [](const Tensor& i, const Tensor&) { return i < 5; },
                       [&](const Tensor& i, const Tensor& y) {
                         const Tensor u = tanh(y * p[1]) + p[0] * p[1];
                         return std::tuple{i + 1, u * p[1] + sin(y * p[2]) * p[1] + y * p[2]};
                       },
                       std::tuple{scalar(0), p[0]});
                   return sum(std::get<1>(last) * p[0]) * p[1];
                 },
                 {x, w, b}});
  all.push_back({"NestedLoops",
                 [](const In& p) {
                   return sum(fori_loop(
                       0, 3,
                       [&](const Tensor& i, const Tensor& y) {
                         const Tensor inner = fori_loop(
                             0, i + 1,
                             [&](const Tensor&, const Tensor& z) {
                               return tanh(z * p[1] + y * p[2]) + z * p[0];
                             },
                             y * p[1]);
                         return inner * p[2] + y * inner;
                       },
                       p[0]));
                 },
                 {x, w, b}});
  all.push_back({"LoopOfUnknownLengthInALoop",
                 [](const In& p) {
                   return fori_loop(
                       0, 3,
                       [&](const Tensor&, const Tensor& y) {
                         return while_loop(
                             [](const Tensor& z) { return z < 5.0; },
                             [&](const Tensor& z) { return z * 1.9 + p[1] * z * p[0]; },
                             y * 0.3 + p[1]);
                       },
                       p[0]);
                 },
                 {w, b}});
  all.push_back({"BranchInALoop",
                 [](const In& p) {
                   return sum(fori_loop(
                       0, 5,
                       [&](const Tensor& i, const Tensor& y) {
                         return cond(
                             i % 2 == 0, [&] { return y * p[1] + sin(y * p[1]); },
                             [&] { return y * y * p[2] + p[0] * y; });
                       },
                       p[0]));
                 },
                 {x, w, b}});
  all.push_back({"StateUsedTwiceAndStacked",
                 [](const In& p) {
                   auto [ys, last, dim] = scan(Scan{
                       .initial = std::pair{p[1], p[2]},
                       .xs = p[0],
                       .body =
                           [&](const Tensor& x, const std::pair<Tensor, Tensor>& s) {
                             const Tensor u = tanh(s.first * p[1] + x);
                             return std::pair{std::pair{u * s.second, s.first},
                                              std::pair{u * x + s.second * p[2], u * u + s.first}};
                           },
                   });
                   return sum(ys.first * p[0]) + sum(square(ys.second)) + last.first * last.second;
                 },
                 {x, w, b}});
  all.push_back({"StatesAndTermsThatAreOtherTensors",
                 [](const In& p) {
                   using State = std::array<Tensor, 4>;
                   auto [ys, last, dim] = scan(Scan{
                       .initial = State{p[1], p[2], p[1], p[2] * p[1]},
                       .xs = std::pair{p[0], p[0]},
                       .body =
                           [&](const std::pair<Tensor, Tensor>& x, const State& s) {
                             const Tensor u = tanh(s[0] * x.first + s[1] * x.second + s[3] * p[1]);
                             return std::pair{std::array{u, s[2], p[1], u, s[2], x.second},
                                              State{u, s[0], u, s[2]}};
                           },
                   });
                   Tensor total = last[0] * last[1] + last[2] * last[3] * p[1];
                   for (const Tensor& y : ys) total = total + sum(y * p[0]) + sum(square(y)) * p[2];
                   return total;
                 },
                 {x, w, b}});
  all.push_back({"BranchesThatReadTheSame",
                 [](const In& p) {
                   return sum(fori_loop(
                       0, 5,
                       [&](const Tensor& i, const Tensor& y) {
                         const Tensor before = y * p[1];
                         const auto [u, v, w] = cond(
                             i % 2 == 0,
                             [&] {
                               const Tensor u = sin(before * p[1]) + y * p[2];
                               return std::tuple{u * p[1], u * p[1], u};
                             },
                             [&] {
                               return std::tuple{y, before * y * p[1], before};
                             });
                         return (u * p[1] + v * y + w * p[2] + before * u) * 0.6;
                       },
                       p[0]));
                 },
                 {x, w, b}});
  all.push_back({"ArrayThatIsReadAndWritten",
                 [dtype](const In& p) {
                   const auto xs = TensorArray::unstack(p[0], 0);
                   const auto [i, y, array] = while_loop(
                       [](const Tensor& i, const Tensor&, const TensorArray&) { return i < 6; },
                       [&](const Tensor& i, const Tensor& y, const TensorArray& a) {
                         const Tensor read = a[i] * xs[i] + a[0] * p[1];
                         const Tensor next = tanh(read + y * xs[i + 1]) * p[1];
                         return std::tuple{i + 1, next, a.push_back(next * y)};
                       },
                       std::tuple{scalar(0), p[1], TensorArray({dtype, {}}).push_back(p[1])});
                   return sum(square(array.stack())) + y * array[3];
                 },
                 {x, w}});
  all.push_back({"DropoutInALoop",
                 [dtype](const In& p) {
                   return sum(fori_loop(
                       0, 5,
                       [&](const Tensor&, const Tensor& y) {
                         const Tensor keep = cast(random_uniform({7}) < 0.7, dtype);
                         return tanh(y * keep * p[1] + cast(random_normal({7}), dtype) * p[0]) +
                                y * p[1];
                       },
                       p[0]));
                 },
                 {x, w}});
  all.push_back({"EntriesThatEndByACondition",
                 [](const In& p) {
                   auto [ys, last, dim] =
                       scan(Scan{.cond_dims = p[0].dims(),
                                 .initial = p[0],
                                 .cond = [](const Tensor& s) { return s < 2.0; },
                                 .body =
                                     [&](const Tensor& s) {
                                       return std::pair{s * p[1], s * s * p[1] + s + p[2]};
                                     },
                                 .max_seq_len = 9});
                   return sum(square(ys)) + sum(last * p[0]);
                 },
                 {abs(numbers({batch}, 0.8, dtype)), w, b}});
  // Eager mode computes a capture's view for finished entries at its first read.
  const auto reads_in = [batch](const auto& inner) {
    return [=](const In& p) {
      auto [ys, last, dim] = scan(Scan{.spatial_dim = p[0].dim("time"),
                                       .initial = p[1],
                                       .xs = p[0],
                                       .body = [&](const Tensor& x, const Tensor& s) {
                                         const Tensor y = inner(x, s, p[2]);
                                         const Tensor next = y + p[2] * s;
                                         return std::pair{next, tanh(next)};
                                       }});
      return sum(square(ys)) + sum(last * p[2]);
    };
  };
  const In of_entries{numbers({batch, ragged}, 0.3, dtype), numbers({batch}, 0.4, dtype),
                      numbers({batch}, 0.6, dtype)};
  all.push_back({"CaptureThatAnInnerLoopReadsFirst",
                 reads_in([batch](const Tensor& x, const Tensor& s, const Tensor& capture) {
                   return fori_loop(
                       0, 3,
                       [&](const Tensor&, const Tensor& y) {
                         return tanh(y * capture + x) + y * sum(sin(capture * 1.3), batch) +
                                capture * capture * x;
                       },
                       s);
                 }),
                 of_entries});
  all.push_back(
      {"CaptureThatABranchInTwoLoopsReadsFirst",
       reads_in([](const Tensor& x, const Tensor& s, const Tensor& capture) {
         const auto inner = [&](const Tensor& i, const Tensor& y) {
           return fori_loop(
               0, i + 1,
               [&](const Tensor& k, const Tensor& z) {
                 return cond(
                     k % 2 == 0,
                     [&] { return tanh(z * capture + x * sin(capture * 1.3)) + capture * x; },
                     [&] { return z * y; });
               },
               y);
         };
         return fori_loop(0, 3, inner, s);
       }),
       of_entries});
  return all;
}

class SameBitsTest : public ::testing::TestWithParam<Model> {};
INSTANTIATE_TEST_SUITE_P(Models, SameBitsTest, ::testing::ValuesIn(models(f32)),
                         [](const auto& info) { return info.param.name; });

template <class F>
void compare_with_eager(const F& f, const Model& model,
                        void (*compare)(const Tensor&, const Tensor&)) {
  manual_seed(3);
  const In eager = f(model.in);
  for (const RunMode mode : {RunMode::interpreter, RunMode::dataflow1, RunMode::dataflow2,
                             RunMode::dataflow10, RunMode::dataflow32, RunMode::dataflow_threads}) {
    manual_seed(3);
    const In traced = InMode(f, mode)(model.in);
    for (std::size_t i = 0; i < eager.size(); ++i) {
      SCOPED_TRACE(str(mode, ", tensor ", i));
      compare(mask_padding(traced[i]), mask_padding(eager[i]));
    }
  }
}
void same_bits(const Tensor& a, const Tensor& b) { expect_same_bits(a, b); }

TEST_P(SameBitsTest, ValuesHaveTheBitsOfEagerMode) {
  compare_with_eager([loss = GetParam().loss](const In& p) { return In{loss(p)}; }, GetParam(),
                     same_bits);
}
TEST_P(SameBitsTest, FirstDerivativesHaveTheBitsOfEagerMode) {
  compare_with_eager(grad(GetParam().loss), GetParam(), same_bits);
}

// docs/decisions/0007 says why the last bits of higher derivatives differ.
class SameDerivativesTest : public ::testing::TestWithParam<Model> {
 protected:
  /// Returns a function of the gradient. Its own gradient needs every element.
  static Loss next_order(const Loss& loss) {
    return [loss](const In& p) {
      Tensor total = zeros({}, f64);
      for (const Tensor& g : grad(loss)(p)) total = total + sum(sin(mask_padding(g) * 0.1));
      return total;
    };
  }
  static void close(const Tensor& a, const Tensor& b) { expect_all_close(a, b, 1e-11); }
};
INSTANTIATE_TEST_SUITE_P(Models, SameDerivativesTest, ::testing::ValuesIn(models(f64)),
                         [](const auto& info) { return info.param.name; });

TEST_P(SameDerivativesTest, SecondDerivativesAreCloseToEagerMode) {
  compare_with_eager(grad(next_order(GetParam().loss)), GetParam(), close);
}
TEST_P(SameDerivativesTest, ThirdDerivativesAreCloseToEagerMode) {
  compare_with_eager(grad(next_order(next_order(GetParam().loss))), GetParam(), close);
}
TEST_P(SameDerivativesTest, TangentsOfGradients) {
  compare_with_eager([loss = GetParam().loss](const In& p) { return jvp(grad(loss), p, p).second; },
                     GetParam(), close);
}

}  // namespace
}  // namespace reel
