#include "reel/trace/executors/plan/loop/iteration_series.h"

#include <algorithm>

#include "reel/core/ops/control/fused.h"
#include "reel/trace/executors/plan/loop/planned_loop.h"
#include "reel/trace/passes/fusion/iteration_body.h"

namespace reel {

/// Collects the leaves of a body that is one fused op. Each function returns false if an iteration
/// needs other work, too.
class IterationSeries::Builder {
 public:
  explicit Builder(const PlannedLoop& loop)
      : loop_(loop), attrs_(loop.loop()), body_(*attrs_.body.graph) {}

  std::optional<IterationSeries> build() {
    const bool is_plain = !attrs_.cond && !attrs_.has_entries() && !attrs_.chunking.over_chunks &&
                          attrs_.carries.size() > 0 && !loop_.context.is_checked;
    if (!is_plain || !has_dense_leaves() || !find_fused() || !find_operands() || !find_results())
      return std::nullopt;
    made_.record_ = static_cast<std::size_t>(fused_ - body_.records.data());
    made_.program_ = std::make_unique<TileProgram>(*program(), operand_types(), sub().env());
    made_.program_->set_carried(carried());
    return std::move(made_);
  }

 private:
  const SubGraph& sub() const { return get<FusedAttrs>(fused_->attrs.get()).body; }

  /// Returns false if slices or stacks will not be dense tensors, as far as attributes and types
  /// tell.
  bool has_dense_leaves() const {
    const auto slices = operands_of(attrs_, loop_.input_types).slices;
    const bool grows = attrs_.trips.makes_dim && !attrs_.stacks.empty();
    return !grows && !attrs_.has_windows() &&
           std::none_of(slices.begin(), slices.end(),
                        [](const TensorType& type) { return type.is_list(); });
  }

  /// Finds the only record that reads anything; others make constants of the plan.
  bool find_fused() {
    for (const OpRecord& record : body_.records) {
      if (record.input_count == 0 && !record.op->has_effect) continue;
      if (fused_ || record.op != &fused_op) return false;
      fused_ = &record;
    }
    return fused_;
  }

  bool find_operands() {
    for (const ValueId v : body_.inputs_of(*fused_)) {
      const auto input = std::find(body_.inputs.begin(), body_.inputs.end(), v);
      if (input == body_.inputs.end()) {
        void* const constant = loop_.body->constant(v);
        if (!constant) return false;
        made_.operands_.push_back({{}, constant});
        continue;
      }
      const auto number = static_cast<std::size_t>(input - body_.inputs.begin());
      const LoopLeaf leaf = body_input_at(attrs_, number);
      if (leaf.is(LeafKind::position)) return false;
      made_.operands_.push_back({leaf});
    }
    return true;
  }

  /// Returns the number of the fused op's output that is this value; nothing for other values.
  std::optional<std::size_t> result_of(ValueId v) const {
    const auto all = body_.outputs_of(*fused_);
    const auto found = std::find(all.begin(), all.end(), v);
    if (found == all.end()) return std::nullopt;
    return static_cast<std::size_t>(found - all.begin());
  }

  bool find_results() {
    const auto outputs = body_outputs(attrs_);
    leaf_of_.resize(fused_->output_count);
    for (std::size_t i = 0; i < outputs.carries.size(); ++i) {
      const auto result = result_of(outputs.carries[i]);
      const PlannedLoop::Carry& carry = loop_.carries[i];
      const bool is_written = !carry.is_list && !carry.is_updated &&
                              loop_.body->output_is_placed(loop_.output_numbers().carries[i]);
      if (!result || leaf_of_[*result] || !is_written) return false;
      leaf_of_[*result] = LoopLeaf{LeafKind::carry, i};
    }
    for (std::size_t j = 0; j < outputs.stacks.size(); ++j)
      if (!add_stack(j, outputs.stacks[j])) return false;
    for (std::size_t i = 0; i < outputs.sums.size(); ++i) {
      const auto result = result_of(outputs.sums[i]);
      if (!result || body_.types[outputs.sums[i]].is_list()) return false;
      sums_.push_back(*result);
    }
    return true;
  }

  bool add_stack(std::size_t j, ValueId term) {
    const LoopStack& stack = attrs_.stacks[j];
    if (stack.is_list || stack.is_checkpoint() || stack.is_in_file()) return false;
    if (loop_.shares_carry[j]) return true;  // the carry is written there
    const auto result = result_of(term);
    if (result && !leaf_of_[*result]) {
      if (!loop_.body->output_is_placed(loop_.output_numbers().stacks[j])) return false;
      leaf_of_[*result] = LoopLeaf{LeafKind::stack, j};
      return true;
    }
    const auto carried = body_inputs(attrs_).carries;
    const auto carry = std::find(carried.begin(), carried.end(), term);
    if (!loop_.repeats_states[j] || carry == carried.end()) return false;
    made_.repeated_stacks_.push_back({j, static_cast<std::size_t>(carry - carried.begin())});
    return true;
  }

  /// Returns the graph of the tile program, and adds the operands and results of its sums.
  Ref<Graph> program() {
    std::vector<std::size_t> results;
    for (std::size_t k = 0; k < leaf_of_.size(); ++k) {
      if (!leaf_of_[k]) continue;
      results.push_back(k);
      made_.results_.push_back(*leaf_of_[k]);
    }
    for (std::size_t i = 0; i < sums_.size(); ++i) {
      const LoopLeaf sum{LeafKind::sum, i};
      made_.operands_.push_back({sum});
      made_.results_.push_back(sum);
    }
    return iteration_body(*sub().graph, results, sums_);
  }

  /// Returns the operands that an iteration reads from results of the one before.
  std::vector<TileProgram::Carried> carried() const {
    std::vector<TileProgram::Carried> result;
    for (std::size_t i = 0; i < made_.operands_.size(); ++i)
      for (std::size_t k = 0; k < made_.results_.size(); ++k) {
        const Operand& read = made_.operands_[i];
        const LoopLeaf& made = made_.results_[k];
        const bool is_carried = made.is(LeafKind::carry) || made.is(LeafKind::sum);
        if (!read.constant && is_carried && read.leaf.is(made.kind) &&
            read.leaf.index == made.index)
          result.push_back({i, k});
      }
    return result;
  }

  std::vector<TensorType> operand_types() const {
    std::vector<TensorType> types;
    for (const ValueId v : body_.inputs_of(*fused_)) types.push_back(loop_.body->type_of(v));
    for (std::size_t i = 0; i < sums_.size(); ++i)
      types.push_back(loop_.body->output_type(loop_.output_numbers().sums[i]));
    return types;
  }

  const PlannedLoop& loop_;
  const LoopAttrs& attrs_;
  const Graph& body_;
  const OpRecord* fused_ = nullptr;
  std::vector<std::optional<LoopLeaf>> leaf_of_;  ///< by output of the fused op
  std::vector<std::size_t> sums_;                 ///< by sum: the output that is its term
  IterationSeries made_;
};

std::optional<IterationSeries> IterationSeries::make(const PlannedLoop& loop) {
  return Builder(loop).build();
}

}  // namespace reel
