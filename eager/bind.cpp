// bind(): applies an op in the active context.
#include "reel/core/op/bind.h"

#include "reel/core/base/str.h"
#include "reel/core/graph/graph_builder.h"
#include "reel/core/op/check_results.h"
#include "reel/core/op/list_operands.h"
#include "reel/core/op/op_errors.h"
#include "reel/core/op/take.h"
#include "reel/core/runtime/no_memory.h"
#include "reel/core/runtime/residual_source.h"
#include "reel/core/types/empty_tensor.h"
#include "reel/core/types/mode.h"

namespace reel {

Tensor take_or_allocate(OpInputs inputs, const TensorType& type) {
  for (const OpInput& input : inputs)
    if (may_take(input, type)) return take(input);
  return Tensor(allocate_block(type));
}

Tensor& KernelArgs::alias(std::size_t i, std::size_t of, std::int64_t offset) const {
  const Tensor& source = input(of);
  if (out[i].is_defined()) {
    out[i].block()->data = source.data<char>() + offset;
    return out[i];
  }
  return out[i] = Tensor(allocate_view(types[i], source.ref(), source.data<char>() + offset));
}

namespace {

[[noreturn]] void refuse_promise(const Op& op, const Tensor& tensor) {
  throw TraceError(str(op.name, ": ", leak_text(*tensor.block())));
}

[[noreturn]] void refuse_empty(const Op& op) {
  throw ArgumentError(str(op.name, ": ", kGivenEmptyTensor));
}

/// Checks an input that is no tensor in memory.
[[gnu::noinline]] void check_kind(const Op& op, OpInputs inputs, std::size_t i) {
  const Tensor& tensor = *inputs[i].tensor;
  if (tensor.block()->kind == BlockKind::promise) refuse_promise(op, tensor);
  check_list_operand(op, i, tensor.type());
}

/// Collects the types of inputs. Throws if one has no value, or is a list that the op does not
/// take. Returns true if any is a temporary.
inline bool check_inputs(const Op& op, OpInputs inputs, TypeViews& types) {
  bool any_temporary = false;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const OpInput& input = inputs[i];
    const TensorBlock* block = input.tensor->block();
    if (!block) refuse_empty(op);
    if (block->kind > BlockKind::view) check_kind(op, inputs, i);
    types.push_back(block->type);
    any_temporary = any_temporary || input.temporary;
  }
  return any_temporary;
}

[[gnu::noinline]] Tensor compute_one(const Op& op, const AttrsRef& attrs, OpInputs inputs,
                                     bool may_reuse) {
  TypeViews in(inputs.size());
  may_reuse = check_inputs(op, inputs, in) && may_reuse;
  TypeList out;
  TypeArgs rule{op, attrs.get(), in, out};
  apply_type_rule(rule);
  Tensor result;
  KernelArgs args{op, attrs.get(), inputs, may_reuse, out, {&result, 1}};
  as_op(op, [&] { op.kernel(args); });
  return result;
}

[[gnu::always_inline]] inline Tensor compute(const Op& op, const AttrsRef& attrs, OpInputs inputs,
                                             bool may_reuse) {
  if (op.of_one_type)
    if (Tensor result = as_op(op, [&] { return op.of_one_type(inputs, may_reuse); });
        result.is_defined())
      return result;
  return compute_one(op, attrs, inputs, may_reuse);
}

/// Tapes tell values apart by their blocks. An output that is also an input, an element of a list,
/// or another output gets a block of its own.
void make_own(Tensors& outputs) {
  for (Tensor& output : outputs) {
    if (output.ref().unique()) continue;
    output = with_dims_of(output, output.type());
  }
}

Tensors compute_all(const Op& op, const AttrsRef& attrs, OpInputs inputs, bool may_reuse) {
  TypeViews in(inputs.size());
  may_reuse = check_inputs(op, inputs, in) && may_reuse;
  Tensors outputs;
  if (op.kernel_decides_types) {
    {
      ModeScope plain({});  // such kernels apply ops themselves, which no tape may record
      KernelArgs args{op, attrs.get(), inputs, may_reuse, {}, {}, &outputs};
      as_op(op, [&] { op.kernel(args); });
    }
    if (thread_mode.tape) make_own(outputs);
    return outputs;
  }
  TypeList out;
  TypeArgs rule{op, attrs.get(), in, out};
  apply_type_rule(rule);
  outputs.resize(out.size());
  KernelArgs args{op, attrs.get(), inputs, may_reuse, out, outputs};
  as_op(op, [&] { op.kernel(args); });
  return outputs;
}

void tell_tapes(const Op& op, const AttrsRef& attrs, OpInputs inputs,
                std::span<const Tensor> outputs) {
  for (Recorder* tape = thread_mode.tape; tape; tape = tape->outer)
    tape->record(op, attrs, inputs, outputs);
}

/// The inputs as the active context shows them, held while an op is applied.
class SeenInputs {
 public:
  explicit SeenInputs(OpInputs inputs) {
    tensors_.reserve(inputs.size());
    if (thread_mode.builder) {  // a tape in a trace knows a captured tensor by its promise
      for (const OpInput& input : inputs)
        tensors_.push_back(thread_mode.builder->lift(*input.tensor));
    } else if (!thread_mode.entries) {
      for (const OpInput& input : inputs) tensors_.push_back(*input.tensor);
    } else {  // values of finished entries of a scan must be hidden
      EntryScope* entries = thread_mode.entries;
      ModeScope aside(
          {nullptr, thread_mode.tape, nullptr});  // replacing an input applies ops itself
      for (const OpInput& input : inputs) {
        if (!input.tensor->is_defined()) throw ArgumentError(kGivenEmptyTensor);
        tensors_.push_back(entries->visible(*input.tensor));
      }
    }
    inputs_.assign(tensors_.begin(), tensors_.end());
  }
  operator OpInputs() const { return inputs_; }

 private:
  Tensors tensors_;
  std::vector<OpInput> inputs_;
};

/// Computes, and throws NumericsError as DetectNan says.
Tensors compute_checked(const Op& op, const AttrsRef& attrs, OpInputs inputs) {
  Tensors outputs = compute_all(op, attrs, inputs, false);
  check_results(op, inputs, outputs);
  return outputs;
}

Tensors apply_in_context(const Op& op, const AttrsRef& attrs, OpInputs given) {
  const SeenInputs inputs = as_function(op.name, [&] { return SeenInputs(given); });
  Tensors outputs = thread_mode.builder      ? thread_mode.builder->record(op, attrs, inputs)
                    : thread_mode.nan_checks ? compute_checked(op, attrs, inputs)
                                             : compute_all(op, attrs, inputs, false);
  tell_tapes(op, attrs, inputs, outputs);
  return outputs;
}

[[gnu::noinline]] Tensor bind_first(const Op& op, OpInputs inputs, const AttrsRef& attrs) {
  Tensors outputs = bind_all(op, inputs, attrs);
  return std::move(outputs[0]);
}

}  // namespace

Tensor bind(const Op& op, OpInputs inputs, AttrsRef attrs) try {
  if (!thread_mode.is_plain || op.kernel_decides_types) return bind_first(op, inputs, attrs);
  if (!thread_mode.tape) return compute(op, attrs, inputs, true);
  const Tensor output = compute(op, attrs, inputs, false);
  tell_tapes(op, attrs, inputs, {&output, 1});
  return output;
} catch (const std::bad_alloc&) {
  throw_no_memory_in(op.name);
}

Tensors bind_all(const Op& op, OpInputs inputs, AttrsRef attrs) try {
  if (!thread_mode.is_plain) return apply_in_context(op, attrs, inputs);
  if (!thread_mode.tape) return compute_all(op, attrs, inputs, true);
  Tensors outputs = compute_all(op, attrs, inputs, false);
  tell_tapes(op, attrs, inputs, outputs);
  return outputs;
} catch (const std::bad_alloc&) {
  throw_no_memory_in(op.name);
}

Tensor bind(const Op& op, const Tensors& inputs, AttrsRef attrs) {
  const std::vector<OpInput> in(inputs.begin(), inputs.end());
  return bind(op, OpInputs(in), std::move(attrs));
}
Tensors bind_all(const Op& op, const Tensors& inputs, AttrsRef attrs) {
  const std::vector<OpInput> in(inputs.begin(), inputs.end());
  return bind_all(op, OpInputs(in), std::move(attrs));
}

}  // namespace reel
