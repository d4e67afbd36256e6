// Backward inside a body, branch or trace that the tape was opened outside of.
#include "reel/autodiff/backward.h"
#include "reel/core/graph/graph_builder.h"
#include "reel/core/graph/passes/without_effects.h"
#include "reel/core/op/bind.h"
#include "reel/core/ops.h"
#include "reel/core/ops/loop/loop.h"

namespace reel {
namespace {

Tensor seen_here(const Tensor& tensor) {
  if (thread_mode.builder) return thread_mode.builder->lift(tensor);
  return thread_mode.entries ? thread_mode.entries->visible(tensor) : tensor;
}

/// Operands of a record as the active body, branch or trace names them.
class OperandsHere {
 public:
  OperandsHere() = default;
  OperandsHere(const OperandsHere&) = delete;
  OperandsHere& operator=(const OperandsHere&) = delete;
  ~OperandsHere() {
    for (TapeOperand& operand : operands_) operand.let_go_of_view();
  }
  void add(const TapeOperand& operand, const Tensor& tensor) {
    if (tensor.is_defined())
      operands_.push_back(operand.with(seen_here(tensor)));
    else
      operands_.push_back(operand.with(type_here(operand.type())));
    has_other_dims_ = has_other_dims_ || !(operands_.back().type() == operand.type());
  }
  const TapeOperand* data() const { return operands_.data(); }
  bool has_other_dims() const { return has_other_dims_; }

 private:
  std::vector<TapeOperand> operands_;
  bool has_other_dims_ = false;
};

}  // namespace

[[gnu::noinline]] void Backward::apply_vjp_elsewhere(const OpRecord& record,
                                                     const TapeOperand* operands) {
  OperandsHere here;
  for (std::size_t i = 0; i < record.input_count + record.output_count; ++i)
    here.add(operands[i],
             operands[i].is_tensor() ? constant_to_tape(operands[i].tensor()) : Tensor());
  has_other_dims_ = here.has_other_dims();
  apply_vjp(record, here.data());
}

/// Returns the mode in which the tape's trace continues around the active one.
ThreadMode Backward::mode_around() const {
  const GraphBuilder* const own = tape_.own_builder();
  const GraphBuilder* inside = thread_mode.builder;
  while (inside->outer() != own) inside = inside->outer();
  ThreadMode mode = inside->around();
  if (tape_.is_recording_) mode.tape = tape_.outer;
  return mode;
}

Tensor Backward::constant_to_tape(const Tensor& tensor) {
  const GraphBuilder* const own = tape_.own_builder();
  const bool is_around = own ? own->sees(tensor) : !tensor.is_traced();
  if (thread_mode.builder == own || !tape_.is_recording_ || !is_around) return tensor;
  const auto [found, is_new] = constants_.try_emplace(tensor.block()->id);
  if (is_new) {
    const ModeScope scope(mode_around());
    found->second = {identity(tensor), tensor};
  }
  return found->second.constant;
}

/// Returns nothing if the walk is not in a trace inside the tape's trace, if an input was made
/// inside, or if dims differ there.
std::optional<Tensors> Backward::apply_around(const Op& op, const Tensors& inputs,
                                              const AttrsRef& attrs) {
  GraphBuilder* const here = thread_mode.builder;
  const GraphBuilder* const own = tape_.own_builder();
  if (here == own || !own || has_other_dims_) return std::nullopt;
  Tensors around = inputs;
  for (Tensor& input : around) {
    for (const GraphBuilder* builder = here; builder != own; builder = builder->outer())
      if (input.is_defined()) input = builder->outside(input);
    if (!input.is_defined()) return std::nullopt;
    for (const auto& [id, of] : constants_)
      if (of.constant.block() == input.block()) input = of.original;
  }
  Tensors results;
  {
    const ModeScope scope(mode_around());
    results = bind_all(op, around, attrs);
  }
  for (Tensor& result : results) result = here->lift(result);
  return results;
}

AttrsRef Backward::without_effects(const Op& op, const AttrsRef& attrs) {
  if (&op != &loop_op) return attrs;
  LoopAttrs loop = get<LoopAttrs>(attrs.get());
  for (SubGraph* part : {&loop.cond, &loop.body}) {
    if (!*part) continue;
    DimEnv names = part->env();
    *part = make_sub_graph(reel::without_effects(*part->graph), names);
  }
  return make_attrs(std::move(loop));
}

}  // namespace reel
