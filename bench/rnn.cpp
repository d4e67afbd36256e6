#include "rnn.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <random>

#include "cells.h"
#include "reel/reel.h"

namespace reel::bench {
namespace {

/// The variables of the gradients.
template <class C>
struct Arguments {
  Tensor x;
  C cell;
};

template <class C>
struct Results {
  Tensor hs;
  Arguments<C> gradient;
};

/// Computes hs and the gradients, in one function.
struct Step {
  template <class C>
  Results<C> operator()(const Arguments<C>& arguments, const Tensor& cotangent) const {
    const auto outputs = [](const Arguments<C>& a) {
      return recur(a.cell, a.x, a.x.dim("time")).outputs;
    };
    const auto [hs, pullback] = vjp(outputs, arguments);
    return {hs, pullback(cotangent)};
  }
};

/// Sets each parameter to the values that all libraries use. Scales of a normalisation stay at 1:
/// other values would change the cell.
template <class C>
C with_numbers(const C& cell, const RnnProblem& p) {
  TreeLeaves leaves = flatten(cell);
  const std::vector<std::string> paths = leaf_paths(cell, "cell");
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    Tensor& parameter = leaves[i].tensor;
    if (leaves[i].kind != TreeLeaf::Kind::tensor || paths[i].ends_with(".scale")) continue;
    const auto count = static_cast<std::size_t>(parameter.numel());
    parameter = tensor(p.draw(paths[i], count), parameter.dims());
  }
  return unflatten(cell, leaves);
}

template <class C>
Numbers numbers_of(const Results<C>& results) {
  Numbers numbers{{"hs", results.hs.template to_vector<float>()}};
  const TreeLeaves leaves = flatten(results.gradient);
  const std::vector<std::string> paths = leaf_paths(results.gradient);
  for (std::size_t i = 0; i < leaves.size(); ++i)
    if (leaves[i].kind == TreeLeaf::Kind::tensor)
      numbers[paths[i]] = leaves[i].tensor.to_vector<float>();
  return numbers;
}

template <class C>
RnnRun run_of(const RnnProblem& p, const C& cell, const std::optional<JitOptions>& traced) {
  const Dim batch("batch", p.batch);
  const Dim time = p.is_ragged ? Dim("time", tensor(p.lengths(), {batch})) : Dim("time", p.steps);
  const auto random = [&](const char* name, const Dim& feature) {
    const auto count = static_cast<std::size_t>(p.steps) * static_cast<std::size_t>(p.batch) *
                       static_cast<std::size_t>(feature.size());
    return tensor(p.draw(name, count), {time, batch, feature});
  };
  const Arguments<C> arguments{random("x", cell.in_dim()), with_numbers(cell, p)};
  const Tensor cotangent = random("cotangent", cell.out_dim());
  const auto last = std::make_shared<std::optional<Results<C>>>();
  const auto numbers = [=] { return numbers_of(**last); };
  if (traced)
    return {[=, step = jit(Step{}, *traced)] {
              last->reset();
              last->emplace(step(arguments, cotangent));
            },
            numbers};
  return {[=] {
            last->reset();
            last->emplace(Step{}(arguments, cotangent));
          },
          numbers};
}

/// Returns the words for a cell in names of cases: before the sizes, and behind them.
std::pair<const char*, const char*> words_of(Cell cell) {
  switch (cell) {
    case Cell::lstm:
      return {"lstm", ""};
    case Cell::gru_reset_after:
      return {"gru", " reset=after"};
    case Cell::gru_reset_before:
      return {"gru", " reset=before"};
    case Cell::layernorm_lstm:
      return {"layernorm_lstm", ""};
    case Cell::custom:
      return {"custom", ""};
    case Cell::weight_norm_lstm:
      return {"weight_norm_lstm", ""};
  }
  throw InternalError("no such cell");
}

}  // namespace

std::string RnnProblem::name() const {
  const auto [first, last] = words_of(cell);
  return str(first, is_ragged ? " ragged " : " ", sizes(),
             layers > 1 ? str(" layers=", layers) : "", last);
}

std::string RnnProblem::sizes() const {
  return str("T=", steps, " B=", batch, " I=", in, " H=", hidden);
}

int RnnProblem::gates() const {
  return cell == Cell::gru_reset_after || cell == Cell::gru_reset_before ? 3 : 4;
}

double RnnProblem::flops() const {
  const double columns = 1.0 * gates() * hidden, rows = 1.0 * steps * batch;
  const double inner = (in + hidden) + (layers - 1) * (hidden + hidden);
  return 3 * 2 * rows * inner * columns;  // forward, and backward to each of the two factors
}

Floats RnnProblem::draw(const std::string& name, std::size_t count) const {
  std::seed_seq seed(name.begin(), name.end());
  std::mt19937 generator(seed);
  const bool is_parameter = name.starts_with("cell.");
  std::normal_distribution<float> normal(0, is_parameter ? 1 / std::sqrt(1.0f * hidden) : 1.0f);
  Floats values(count);
  for (float& value : values) value = normal(generator);
  return values;
}

std::vector<int> RnnProblem::lengths() const {
  std::vector<int> lengths;
  for (int i = 0; i < batch; ++i) {
    const double share = is_ragged ? 1 - 0.9 * i / std::max(1, batch - 1) : 1;
    lengths.push_back(static_cast<int>(std::lround(share * steps)));
  }
  std::shuffle(lengths.begin(), lengths.end(), std::mt19937(1));
  return lengths;
}

namespace {

/// traced: nothing for eager mode.
RnnRun reel_rnn(const RnnProblem& p, const std::optional<JitOptions>& traced) {
  const Dim in("in", p.in), hidden("hidden", p.hidden);
  const auto make = [&](auto init) {
    if (p.layers == 1) return run_of(p, init(in, hidden), traced);
    std::vector<decltype(init(in, hidden))> cells{init(in, hidden)};
    while (static_cast<int>(cells.size()) < p.layers)
      cells.push_back(init(cells.back().out_dim(), Dim("hidden", p.hidden)));
    return run_of(p, stack_cells(cells), traced);
  };
  switch (p.cell) {
    case Cell::lstm:
      return make([](const Dim& i, const Dim& h) { return LstmCell::init(i, h); });
    case Cell::gru_reset_after:
      return make([](const Dim& i, const Dim& h) { return GruCell::init(i, h); });
    case Cell::gru_reset_before:
      return make(
          [](const Dim& i, const Dim& h) { return GruCell::init(i, h, {.reset_after = false}); });
    case Cell::layernorm_lstm:
      return make([](const Dim& i, const Dim& h) { return LayerNormLstmCell::init(i, h); });
    case Cell::custom:
      return make([](const Dim& i, const Dim& h) { return CustomCell::init(i, h); });
    case Cell::weight_norm_lstm:
      return make([](const Dim& i, const Dim& h) { return WeightNormLstmCell::init(i, h); });
  }
  throw InternalError("no such cell");
}

}  // namespace

RnnRun eager_rnn(const RnnProblem& problem) { return reel_rnn(problem, {}); }
RnnRun traced_rnn(const RnnProblem& problem, const JitOptions& options) {
  JitOptions named = options;
  named.name = problem.name();
  return reel_rnn(problem, named);
}

void check_same(const Numbers& expected, const Numbers& actual) {
  if (expected.size() != actual.size())
    throw Error(str(actual.size(), " arrays instead of ", expected.size()));
  for (const auto& [name, others] : actual) {
    const auto found = expected.find(name);
    if (found == expected.end()) throw Error(str("nothing to compare ", name, " with"));
    const Floats& values = found->second;
    if (values.size() != others.size())
      throw Error(str(name, " has ", values.size(), " elements and ", others.size()));
    float largest = 0, difference = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      largest = std::max(largest, std::abs(values[i]));
      difference = std::max(difference, std::abs(values[i] - others[i]));
    }
    if (!(difference <= 1e-3f * largest))
      throw Error(str(name, " is off by ", difference, ", its largest element is ", largest));
  }
}

}  // namespace reel::bench
