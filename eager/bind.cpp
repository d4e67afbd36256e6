// The door: bind() applies an op in the active context.
#include "reel/core/bind.h"

#include "reel/core/graph_builder.h"
#include "reel/core/mode.h"
#include "reel/core/str.h"

namespace reel {

Tensor& KernelArgs::reuse(std::size_t i) const {
  const TensorType& type = types[i];
  for (const Input& input : in) {
    Block* block = input.tensor->block();
    if (!input.temporary || block->kind != BlockKind::dense || !input.tensor->ref().unique() || block->attachment)
      continue;
    if (block->type == type) {
      block->id = next_block_id();  // it is another value from now on
      return out[i] = std::move(const_cast<Tensor&>(*input.tensor));
    }
  }
  return make(i);
}

Tensor& KernelArgs::alias(std::size_t i, std::size_t of, std::int64_t offset) const {
  const Tensor& source = input(of);
  return out[i] = Tensor(allocate_view(types[i], source.ref(), source.data<char>() + offset));
}

namespace {

void refuse_promise(const Op& op, const Tensor& tensor) {
  throw TraceError(str(op.name, ": a value of type ", tensor.type(), " belongs to a trace that is not active any more; ",
                       "values leave a traced function only through what it returns, and a body through its state"));
}

void check_inputs(const Op& op, Inputs inputs, TypeList& types) {
  for (const Input& input : inputs) {
    if (!input.tensor->is_defined()) throw ArgumentError(str(op.name, ": was given an empty Tensor"));
    if (input.tensor->is_traced()) refuse_promise(op, *input.tensor);
    types.push_back(input.tensor->type());
  }
}

Tensors compute_all(const Op& op, const AttrsRef& attrs, Inputs inputs) {
  TypeList in, out;
  check_inputs(op, inputs, in);
  Tensors outputs;
  if (op.kernel_decides_types) {
    ModeScope plain({});  // such kernels apply ops themselves, which concern no tape
    KernelArgs args{op, attrs.get(), inputs, {}, {}, &outputs};
    op.kernel(args);
    return outputs;
  }
  TypeArgs rule{op, attrs.get(), in, out};
  op.type(rule);
  outputs.resize(out.size());
  KernelArgs args{op, attrs.get(), inputs, out, outputs};
  op.kernel(args);
  return outputs;
}

Tensors apply_in_mode(const Op& op, const AttrsRef& attrs, Inputs inputs) {
  Tensors seen;  // what the op reads where a scan's ended entries must not show
  std::vector<Input> replaced;
  if (mode.entries && !mode.builder) {
    EntryScope* entries = mode.entries;
    ModeScope aside({nullptr, mode.tape, nullptr});  // replacing an input applies ops itself
    seen.reserve(inputs.size());
    for (const Input& input : inputs) {
      seen.push_back(entries->visible(*input.tensor));
      replaced.emplace_back(seen.back());
    }
    inputs = replaced;
  }
  Tensors lifted;
  std::vector<Input> lifted_inputs;
  if (mode.builder && mode.tape) {  // a tape in a trace knows a captured tensor by its promise
    lifted.reserve(inputs.size());
    for (const Input& input : inputs) {
      lifted.push_back(mode.builder->lift(*input.tensor));
      lifted_inputs.emplace_back(lifted.back());
    }
    inputs = lifted_inputs;
  }
  Tensors kept;
  if (mode.tape) {  // the tape is told afterwards: inputs must outlive the op
    kept.reserve(inputs.size());
    for (const Input& input : inputs) kept.push_back(*input.tensor);
  }
  Tensors outputs = mode.builder ? mode.builder->record(op, attrs, inputs) : compute_all(op, attrs, inputs);
  if (mode.tape) {
    std::vector<Input> again(kept.begin(), kept.end());
    for (Recorder* tape = mode.tape; tape; tape = tape->outer) tape->record(op, attrs, again, outputs);
  }
  return outputs;
}

bool is_plain_eager() { return !mode.builder && !mode.tape && !mode.entries; }

}  // namespace

Tensor bind(const Op& op, Inputs inputs, AttrsRef attrs) {
  if (is_plain_eager() && !op.kernel_decides_types) {
    TypeList in, out;
    check_inputs(op, inputs, in);
    TypeArgs rule{op, attrs.get(), in, out};
    op.type(rule);
    Tensor result;
    KernelArgs args{op, attrs.get(), inputs, out, {&result, 1}};
    op.kernel(args);
    return result;
  }
  Tensors outputs = apply_in_mode(op, attrs, inputs);
  return std::move(outputs[0]);
}

Tensors bind_all(const Op& op, Inputs inputs, AttrsRef attrs) {
  if (is_plain_eager()) return compute_all(op, attrs, inputs);
  return apply_in_mode(op, attrs, inputs);
}

Tensor bind(const Op& op, const Tensors& inputs, AttrsRef attrs) {
  const std::vector<Input> in(inputs.begin(), inputs.end());
  return bind(op, Inputs(in), std::move(attrs));
}
Tensors bind_all(const Op& op, const Tensors& inputs, AttrsRef attrs) {
  const std::vector<Input> in(inputs.begin(), inputs.end());
  return bind_all(op, Inputs(in), std::move(attrs));
}

}  // namespace reel
