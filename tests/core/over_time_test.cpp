// Requirements on every op with a rule that batches it across iterations: it gives the results of
// the single iterations.
#include "reel/core/ops/shape/iteration_batching.h"

#include <gtest/gtest.h>

#include "reel/core/op/bind.h"
#include "reel/core/ops.h"
#include "reel/core/ops/creation/draws.h"
#include "reel/tests/check.h"
#include "reel/tests/core/sample_values.h"

namespace reel {
namespace {

constexpr std::size_t kSteps = 3;

std::vector<const Op*> ops_with_rules() {
  std::vector<const Op*> result;
  for (const Op* op : all_ops())
    if (iteration_batching_rule(*op) && op->samples) result.push_back(op);
  return result;
}

/// True if the op's attributes contain the shape of one iteration.
bool is_of_one_step(const Op& op) { return op.name == "ensure_shape"; }
/// True if the rule declines iterations of a loop unless their results are summed: each result is
/// as large as the operand that it updates, reads nothing but its type, or has a key of its own.
bool is_for_rows_of_vmap(const Op& op) {
  return op.name == "scatter_add" || op.name == "scatter_max" || op.name == "fold_key" ||
         op.name == "full_like" || op.name == "axes_size" || is_draw(op);
}
/// True if the rule declines some uses of the op: rows of a table that is the same in every
/// iteration, draws whose sizes another operand gives.
bool may_decline(const Op& op) { return op.name == "gather" || is_draw(op) || is_of_one_step(op); }

/// The iterations that a rule applies an op to.
enum class Over { loop, summed_loop, vmap };

/// An op applied in three iterations, with some inputs that differ between them.
class Steps {
 public:
  Steps(const Op& op, const OpSample& sample, std::vector<std::uint8_t> is_many, const Dim& time)
      : op_(op), sample_(sample), is_many_(std::move(is_many)), time_(time) {
    const Tensors once = draw_sample(sample, false);
    for (std::size_t t = 0; t < kSteps; ++t) {
      Tensors inputs = draw_sample(sample, false, 31 + static_cast<std::uint32_t>(t));
      for (std::size_t i = 0; i < inputs.size(); ++i)
        if (!is_many_[i]) inputs[i] = once[i];
      outputs_.push_back(bind_all(op, inputs, sample.attrs));
      inputs_.push_back(std::move(inputs));
    }
  }
  const Tensors& outputs(std::size_t step) const { return outputs_[step]; }

  /// True if all tensors are like the time dim: all named, or all plain.
  bool fits_time() const {
    const auto fits = [&](const Tensor& x) {
      return x.rank() == 0 || x.type().is_named() == time_.is_named();
    };
    return std::all_of(inputs_[0].begin(), inputs_[0].end(), fits) &&
           std::all_of(outputs_[0].begin(), outputs_[0].end(), fits);
  }
  /// Returns the rule's outputs, or none if it declines the op as batch_across_iterations would.
  Tensors at_once(Over over) const {
    const bool is_summed = over == Over::summed_loop;
    Tensors in;
    for (std::size_t i = 0; i < is_many_.size(); ++i) in.push_back(of_steps(i));
    std::vector<TensorType> step_out;
    for (const Tensor& output : outputs_[0]) step_out.push_back(output.type());
    Tensors made;
    try {
      made = iteration_batching_rule(op_)(
          {op_, sample_.attrs, in, is_many_, step_out, time_, is_summed, over == Over::vmap});
    } catch (const Error&) {
      return {};
    }
    if (made.size() != step_out.size()) return {};
    for (std::size_t k = 0; k < made.size(); ++k) {
      Dims dims = step_out[k].dims();
      if (!is_summed) dims.insert(dims.begin(), time_);
      const bool is_common = over == Over::vmap && made[k].type() == step_out[k];
      if (is_common)
        made[k] = expand(made[k], dims);
      else if (made[k].type() != step_out[k].with(dims))
        return {};
    }
    return made;
  }

 private:
  Tensor of_steps(std::size_t i) const {
    if (!is_many_[i]) return inputs_[0][i];
    Tensors steps;
    for (const Tensors& inputs : inputs_) steps.push_back(inputs[i]);
    return stack(steps, time_);
  }

  const Op& op_;
  const OpSample& sample_;
  std::vector<std::uint8_t> is_many_;
  Dim time_;
  std::vector<Tensors> inputs_, outputs_;  ///< by iteration
};

class OverTimeOfEveryOp : public ::testing::TestWithParam<const Op*> {
 protected:
  const Op& op() const { return *GetParam(); }

  /// Calls fn(steps) for each sample, each choice of inputs that differ by iteration, and a plain
  /// and a named dim of iterations.
  template <class Fn>
  void each(Fn&& fn) const {
    for (const OpSample& sample : op().samples()) {
      const std::size_t count = sample.inputs.size();
      for (std::size_t bits = 1; bits < std::size_t{1} << count; ++bits) {
        std::vector<std::uint8_t> is_many;
        for (std::size_t i = 0; i < count; ++i) is_many.push_back(bits >> i & 1);
        for (const Dim& time : {Dim(kSteps), Dim("steps of all", kSteps)}) {
          std::string types;
          for (std::size_t i = 0; i < count; ++i)
            types += str(i ? ", " : "", is_many[i] ? "many " : "", sample.inputs[i].type);
          SCOPED_TRACE(str(op().name, '(', types, "), steps along ", time));
          const Steps steps(op(), sample, is_many, time);
          if (steps.fits_time()) fn(steps);
        }
      }
    }
  }

  /// Compares the rule's outputs with each iteration's. Returns how often the rule took the op.
  int check_each(Over over, bool may_decline) const {
    int taken = 0;
    each([&](const Steps& steps) {
      const Tensors made = steps.at_once(over);
      taken += !made.empty();
      EXPECT_TRUE(!made.empty() || may_decline) << "the rule does not take it";
      for (std::size_t k = 0; k < made.size(); ++k) {
        const Tensors parts = unstack(made[k], 0);
        for (std::size_t t = 0; t < kSteps; ++t) {
          const Tensor part = mask_padding(parts[t]), step = mask_padding(steps.outputs(t)[k]);
          EXPECT_EQ(part.type(), step.type());
          if (op().gains_from_batching)  // a product of other sizes adds in another order
            expect_all_close(part, step, 1e-6);
          else
            expect_same_bits(part, step);
        }
      }
    });
    return taken;
  }
};

INSTANTIATE_TEST_SUITE_P(Ops, OverTimeOfEveryOp, ::testing::ValuesIn(ops_with_rules()),
                         [](const auto& info) { return std::string(info.param->name); });

TEST_P(OverTimeOfEveryOp, BatchedOpHasTheResultOfEachIteration) {
  const int taken = check_each(Over::loop, may_decline(op()) || is_for_rows_of_vmap(op()));
  EXPECT_TRUE(taken > 0 || is_of_one_step(op()) || is_for_rows_of_vmap(op()));
}

TEST_P(OverTimeOfEveryOp, RowsOfVmapAreThoseOfEachRow) {
  const int taken = check_each(Over::vmap, may_decline(op()));
  EXPECT_TRUE(taken > 0 || is_of_one_step(op()));
}

TEST_P(OverTimeOfEveryOp, BatchedOpAddsUpTheResultsOfIterations) {
  if (!op().gains_from_batching) return;
  int taken = 0;
  each([&](const Steps& steps) {
    const Tensors made = steps.at_once(Over::summed_loop);
    EXPECT_TRUE(!made.empty() || may_decline(op()) || is_for_rows_of_vmap(op()))
        << "the rule does not take it";
    taken += !made.empty();
    for (std::size_t k = 0; k < made.size(); ++k) {
      Tensor total = mask_padding(steps.outputs(0)[k]);
      for (std::size_t t = 1; t < kSteps; ++t) total = total + mask_padding(steps.outputs(t)[k]);
      expect_all_close(mask_padding(made[k]), total, 1e-5);
    }
  });
  EXPECT_GT(taken, 0);
}

}  // namespace
}  // namespace reel
