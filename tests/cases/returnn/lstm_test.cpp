// An LSTM in scan, as RETURNN's users need it: rows 35 to 37.
#include "reel/tests/cases/returnn/returnn.h"

namespace reel {
namespace {

struct Lstm {
  Tensor input_weight, recurrent_weight, bias;
};
struct LstmState {
  Tensor h, c;
};

class ReturnnLstm : public ReturnnCase {
 protected:
  const Dim four{"batch", 4}, in{"in", 5}, hidden{"hidden", 3}, gate{"gate", 12};
  const std::vector<int> lengths{7, 3, 0, 5};
  const Dim steps{"time", tensor(lengths, {four})};

  Lstm weights() const {
    manual_seed(1);
    return {random_normal({in, gate}, f64) * 0.3, random_normal({hidden, gate}, f64) * 0.3,
            random_normal({gate}, f64)};
  }
  Tensor frames(double padding) const {
    manual_seed(2);
    return where(mask(steps), random_normal({four, steps, in}, f64), padding);
  }
  LstmState step(const Lstm& m, const Tensor& x, const LstmState& s) const {
    const auto [i, f, g, o] =
        split<4>(matmul(x, m.input_weight, in) + matmul(s.h, m.recurrent_weight, hidden) + m.bias,
                 gate, hidden);
    const Tensor c = sigmoid(f) * s.c + sigmoid(i) * tanh(g);
    return {sigmoid(o) * tanh(c), c};
  }
  Tensor scanned(const Lstm& m, const Tensor& x) const {
    const Tensor start = zeros({four, hidden}, f64);
    const auto result = scan(Scan{
        .spatial_dim = x.dim("time"),
        .initial = LstmState{start, start},
        .xs = x,
        .body =
            [&](const Tensor& x, const LstmState& s) {
              const LstmState next = step(m, x, s);
              return std::pair{next.h, next};
            },
    });
    return sum(square(result.ys)) + sum(result.state.c);
  }
};
REEL_IN_EVERY_MODE(ReturnnLstm);

TEST_P(ReturnnLstm, Case35_ScannedLstmEqualsItsUnrolledLoop) {
  const auto scanned = [&](const std::pair<Lstm, Tensor>& mx) {
    return this->scanned(mx.first, mx.second);
  };
  const auto unrolled = [&](const std::pair<Lstm, Tensor>& mx) {
    Tensor total = scalar(0.0, f64);
    const Tensors rows = unstack(mx.second, four);
    for (std::size_t b = 0; b < rows.size(); ++b) {
      LstmState s{zeros({hidden}, f64), zeros({hidden}, f64)};
      const Tensors of_row = unstack(rows[b], 0);
      for (int t = 0; t < lengths[b]; ++t) {
        s = step(mx.first, of_row[t], s);
        total = total + sum(square(s.h));
      }
      total = total + sum(s.c);
    }
    return total;
  };
  for (const double padding : kPaddings) {
    const std::pair at{weights(), frames(padding)};
    const auto [value, gradient] = run(value_and_grad(scanned))(at);
    const auto [expected, expected_gradient] = value_and_grad(unrolled)(at);
    expect_all_close(value, expected, 1e-12);
    expect_all_close(gradient.first.input_weight, expected_gradient.first.input_weight, 1e-11);
    expect_all_close(gradient.first.recurrent_weight, expected_gradient.first.recurrent_weight,
                     1e-11);
    expect_all_close(gradient.first.bias, expected_gradient.first.bias, 1e-11);
    expect_all_close(gradient.second, expected_gradient.second, 1e-11);
  }
}

TEST_P(ReturnnLstm, Case36_EntryAloneHasItsResultInTheBatch) {
  const Lstm m = weights();
  const auto f = run([&](const Lstm& m, const Tensor& x) {
    const Dim batch = x.dim("batch");
    const Tensor start = zeros({batch, hidden}, f64);
    return scan(Scan{
                    .spatial_dim = x.dim("time"),
                    .initial = LstmState{start, start},
                    .xs = x,
                    .body =
                        [&](const Tensor& x, const LstmState& s) {
                          const LstmState next = step(m, x, s);
                          return std::pair{next.h, next};
                        },
                })
        .state.h;
  });
  const Tensor all = f(m, frames(kNan));
  for (const int entry : {1, 2, 3}) {  // 3, 0 and 5 of 7 steps
    const Dim one("batch", 1), alone("time", tensor({lengths[entry]}, {one}));
    const Tensor row = slice(gather(frames(kNan), scalar(entry), four), 0, 0, lengths[entry]);
    const Tensor x = tensor(values_of(row), {one, alone, in}, f64);
    expect_all_close(f(m, x), slice(all, 0, entry, entry + 1), 1e-12);
  }
}

TEST_P(ReturnnLstm, Case37_ScanOfOneTimeStepHasTheBitsOfTheCell) {
  const Lstm m = weights();
  const Dim once("time", 1);
  manual_seed(3);
  const Tensor x = random_normal({four, in}, f64), h = random_normal({four, hidden}, f64),
               c = random_normal({four, hidden}, f64);
  const auto single = run([&](const Tensor& x, const LstmState& s) { return step(m, x, s); });
  const auto scanned = run([&](const Tensor& xs, const LstmState& s) {
    return scan(Scan{
                    .spatial_dim = xs.dim("time"),
                    .initial = s,
                    .xs = xs,
                    .body =
                        [&](const Tensor& x, const LstmState& s) {
                          const LstmState next = step(m, x, s);
                          return std::pair{next.h, next};
                        },
                })
        .state;
  });
  const LstmState start{h, c};
  const LstmState one = single(x, start), all = scanned(stack({x}, once), start);
  expect_same_bits(all.h, one.h);
  expect_same_bits(all.c, one.c);
}

}  // namespace
}  // namespace reel
