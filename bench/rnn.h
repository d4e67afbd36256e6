// bench/rnn.h — the recurrent layers that are timed, with values for any library.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "reel/frontend/jit.h"

namespace reel::bench {

using Floats = std::vector<float>;

/// Arrays by name, row-major.
using Numbers = std::map<std::string, Floats>;

enum class Cell {
  lstm,              ///< LstmCell
  gru_reset_after,   ///< GruCell, as cuDNN has it
  gru_reset_before,  ///< GruCell, as in the paper
  layernorm_lstm,    ///< LayerNormLstmCell
  custom,            ///< CustomCell of cells.h
  weight_norm_lstm,  ///< WeightNormLstmCell of cells.h
};

/// Stacked recurrent layers over `batch` sequences, from a state of zeros. Results are the outputs
/// hs of the last layer, and the gradients of sum(hs · cotangent) with respect to x and all
/// parameters: the work of a training step, whatever the loss.
struct RnnProblem {
  Cell cell = Cell::lstm;
  int steps, batch, in, hidden;
  int layers = 1;
  bool is_ragged = false;  ///< sequences of 10 to 100 % of the steps, evenly spread

  /// Returns the name of the case: "lstm T=1000 B=16 I=64 H=128".
  std::string name() const;
  /// Returns the sizes as in names of cases: "T=1000 B=16 I=64 H=128".
  std::string sizes() const;
  int gates() const;
  /// Returns the flops of the matrix products at full length, forward and backward.
  double flops() const;

  /// Returns random numbers that depend on the name only: normally distributed, with variance 1 for
  /// x and cotangent, and 1 / hidden for parameters. Names and shapes:
  ///   x                      {steps, batch, in}
  ///   cotangent              {steps, batch, hidden}, as hs
  ///   cell.input_weight      {in, gates hidden}, gates in the order of LstmCell or GruCell
  ///   cell.recurrent_weight  {hidden, gates hidden}
  ///   cell.bias              {gates hidden}
  ///   cell.candidate_bias    {hidden}, if the reset comes after the product
  /// In layer i of several, names begin with cell.cells.i. instead.
  Floats draw(const std::string& name, std::size_t count) const;
  /// Returns the lengths of the sequences.
  std::vector<int> lengths() const;
};

/// One library's implementation.
struct RnnRun {
  /// Leaves the results in the library's tensors, as a user's training step would.
  std::function<void()> run;
  /// Returns hs and the gradients of the last run, by the names above.
  std::function<Numbers()> numbers;
};

/// Returns runs of `recur` over a cell written in ops: differentiated on the tape, or in a trace.
RnnRun eager_rnn(const RnnProblem& problem);
RnnRun traced_rnn(const RnnProblem& problem, const JitOptions& options = {});

/// Throws Error if the arrays differ. It names the first array that only one side has, or that
/// differs by more than 1e-3 of its largest element.
void check_same(const Numbers& expected, const Numbers& actual);

}  // namespace reel::bench
