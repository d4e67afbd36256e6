// Loops that are nodes RNN, GRU or LSTM in a model.
#include "reel/tests/onnx/saved/saved_case.h"

namespace reel {
namespace {

struct Sizes {
  Dim batch{"batch", 3}, in{"in", 2}, hidden{"hidden", 4}, steps{"time", 5};
  Dim time{"time", tensor({5, 1, 3}, {batch})};
};

/// Adds the cell over a plain and a ragged dim, forwards and backwards, from a given state.
template <class Cell>
void add_cell(std::vector<SavedCase>& cases, const std::string& name, const Cell& cell,
              const Sizes& at) {
  using State = typename Cell::State;
  const State state = tree_map([](const Tensor& x) { return random_normal(x.dims()); },
                               cell.initial_state({at.batch}));
  for (const Dim& time : {at.steps, at.time})
    for (const bool reverse : {false, true})
      cases.push_back(saved_case(
          str(name, time.is_ragged() ? ", ragged" : "", reverse ? ", backwards" : ""),
          [=](const Cell& cell, const Tensor& xs, const State& state) {
            auto made = recur(cell, xs, xs.dim("time"), {.initial = state, .reverse = reverse});
            return std::pair{made.outputs, made.state};
          },
          std::tuple{cell, random_normal({at.batch, time, at.in}), state},
          {.arguments = {"", "xs", "state"}, .results = {"ys", "last"}, .parameters = {0}}));
}

void add_cells(std::vector<SavedCase>& cases) {
  const Sizes at;
  manual_seed(21);
  add_cell(cases, "a node RNN", RnnCell::init(at.in, at.hidden), at);
  add_cell(cases, "a node GRU", GruCell::init(at.in, at.hidden), at);
  add_cell(cases, "a node GRU that resets the state",
           GruCell::init(at.in, at.hidden, {.reset_after = false}), at);
  add_cell(cases, "a node LSTM", LstmCell::init(at.in, at.hidden), at);
  LstmCell peeping = LstmCell::init(at.in, at.hidden, {.has_peepholes = true});
  for (Tensor* const weight :
       {&peeping.peepholes->input, &peeping.peepholes->forget, &peeping.peepholes->output})
    *weight = random_normal({at.hidden});
  add_cell(cases, "a node LSTM with peepholes", peeping, at);
}

void add_entries(std::vector<SavedCase>& cases) {
  const Sizes at;
  manual_seed(22);
  const auto outputs = [](const LstmCell& cell, const Tensor& xs) {
    auto made = recur(cell, xs, xs.dim("time"));
    return std::pair{made.outputs, made.state};
  };
  const LstmCell cell = LstmCell::init(at.in, at.hidden);
  const Dim beam("beam", 2), any("time", scalar(4));
  const SaveOnnxOptions options{.arguments = {"", "xs"}, .results = {"ys", "last"}};
  cases.push_back(saved_case("a node LSTM without entries", outputs,
                             std::tuple{cell, random_normal({at.steps, at.in})}, options));
  cases.push_back(saved_case("a node LSTM with entries over two dims", outputs,
                             std::tuple{cell, random_normal({at.batch, at.steps, beam, at.in})},
                             options));
  cases.push_back(saved_case("a node LSTM with entries over two dims, ragged", outputs,
                             std::tuple{cell, random_normal({beam, at.batch, at.time, at.in})},
                             options));
  cases.push_back(saved_case("a node LSTM over a dim of any size", outputs,
                             std::tuple{cell, random_normal({at.batch, any, at.in})}, options));
}

/// An LSTM by hand on plain axes: a matrix for each gate, sums in another order.
struct PlainLstm {
  Tensor wi, wf, wo, wg, ui, uf, uo, ug, bi, bf, bo;
};

void add_cells_by_hand(std::vector<SavedCase>& cases) {
  manual_seed(23);
  const auto in = [] { return random_normal({2, 3}); };
  const auto recurrent = [] { return random_normal({3, 3}); };
  const auto bias = [] { return random_normal({3}); };
  const PlainLstm weights{in(),        in(),        in(),   in(),   recurrent(), recurrent(),
                          recurrent(), recurrent(), bias(), bias(), bias()};
  const Tensor xs = random_normal({4, 2, 2});
  cases.push_back(saved_case(
      "a node LSTM, by hand",
      [](const PlainLstm& m, const Tensor& xs) {
        using State = std::pair<Tensor, Tensor>;  // c, h
        const auto body = [&](const Tensor& x, const State& s) {
          const auto& [c, h] = s;
          const Tensor i = sigmoid(m.bi + matmul(h, m.ui) + matmul(x, m.wi));
          const Tensor f = sigmoid(matmul(h, m.uf) + (matmul(x, m.wf) + m.bf));
          const Tensor o = sigmoid(m.bo + (matmul(x, m.wo) + matmul(h, m.uo)));
          const Tensor next = tanh(matmul(x, m.wg) + matmul(h, m.ug)) * i + c * f;
          const Tensor y = tanh(next) * o;
          return std::pair{y, State{next, y}};
        };
        auto [ys, state, dim] =
            scan(Scan{.initial = State{zeros({2, 3}), zeros({2, 3})}, .xs = xs, .body = body});
        return std::pair{ys, state};
      },
      std::tuple{weights, xs}, {.arguments = {"", "xs"}, .results = {"ys", "last"}}));
  cases.push_back(saved_case(
      "a node GRU, by hand",
      [](const std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor, Tensor>& m, const Tensor& xs) {
        const auto& [wz, wr, wn, uz, ur, un] = m;
        const auto body = [&, &wz = wz, &wr = wr, &wn = wn, &uz = uz, &ur = ur, &un = un](
                              const Tensor& x, const Tensor& h) {
          const Tensor z = sigmoid(matmul(x, wz) + matmul(h, uz));
          const Tensor r = sigmoid(matmul(x, wr) + matmul(h, ur));
          const Tensor n = tanh(matmul(x, wn) + matmul(r * h, un));
          const Tensor next = z * h + (1 - z) * n;
          return std::pair{next, next};
        };
        auto [ys, state, dim] = scan(Scan{.initial = zeros({2, 3}), .xs = xs, .body = body});
        return std::pair{ys, state};
      },
      std::tuple{std::tuple{in(), in(), in(), recurrent(), recurrent(), recurrent()}, xs},
      {.arguments = {"", "xs"}, .results = {"ys", "last"}}));
  cases.push_back(saved_case(
      "a node RNN, its products computed before",
      [](const Tensor& w, const Tensor& u, const Tensor& b, const Tensor& xs) {
        const Tensor products = matmul(xs, w) + b;
        const auto body = [&](const Tensor& x, const Tensor& h) {
          const Tensor next = relu(x + matmul(h, u) + b);
          return std::pair{next, next};
        };
        auto [ys, state, dim] = scan(Scan{.initial = zeros({2, 3}), .xs = products, .body = body});
        return std::pair{ys, state};
      },
      std::tuple{in(), recurrent() * 0.5, bias(), xs}, {.arguments = {"w", "u", "b", "xs"}}));
}

}  // namespace

std::vector<SavedCase> recurrent_cases() {
  std::vector<SavedCase> cases;
  add_cells(cases);
  add_entries(cases);
  add_cells_by_hand(cases);
  return cases;
}

}  // namespace reel
