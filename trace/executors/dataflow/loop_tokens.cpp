#include "reel/trace/executors/dataflow/loop_tokens.h"

#include <array>
#include <memory>
#include <mutex>

#include "reel/core/ops.h"
#include "reel/core/ops/control/cond.h"
#include "reel/core/ops/list/list.h"
#include "reel/core/ops/list/term_sum.h"
#include "reel/core/ops/shape/join.h"
#include "reel/core/runtime/residual_source.h"
#include "reel/core/types/sizes.h"
#include "reel/trace/executors/checkpoints/stack_list.h"
#include "reel/trace/executors/loop/finished_entries.h"
#include "reel/trace/executors/loop/iterations.h"
#include "reel/trace/executors/loop/loop_types.h"
#include "reel/trace/executors/loop/stack_writer.h"

namespace reel {
namespace {

/// Tokens are tensors. A token that stands for another object has that object as its attachment.
struct Handle : BlockAttachment {
  virtual DimEnv dims(int part) const = 0;
};
Tensor token(Handle* handle) {
  static const auto& type = *new TensorType(TensorType(boolean).as_list());  // never destroyed
  return Tensor(allocate_list(type, Ref<const BlockAttachment>(handle)));
}
template <class T>
T& handle_of(const Tensor& token) {
  return const_cast<T&>(static_cast<const T&>(*token.block()->attachment));
}

/// The state that a loop begins with.
struct Begun final : Handle {
  AttrsRef held;
  const LoopAttrs& attrs;
  Tensors given;  ///< the op's inputs; after construction only the slices
  Iterations iterations;
  std::vector<Tensors> slices;
  std::vector<const ResidualValue*> saved;  ///< by slice; null if all its elements are in memory
  std::vector<TensorType> types;            ///< of the op's inputs, if entries finish one by one

  Begun(const AttrsRef& attrs_ref, std::span<Tensor> inputs)
      : held(attrs_ref),
        attrs(get<LoopAttrs>(attrs_ref.get())),
        iterations(attrs, in_their_places(inputs)) {
    const Graph& body = *attrs.body.graph;
    const auto formals = body_inputs(attrs).slices;
    const auto all_slices = operands_of(attrs, given).slices;
    for (std::size_t j = 0; j < formals.size(); ++j) {
      const Tensor& all = all_slices[j];
      saved.push_back(residual_value(all));
      const TensorType& slice = body.types[formals[j]];
      slices.push_back(saved.back()           ? Tensors()
                       : all.type().is_list() ? slices_of_list(all, slice, iterations.limit)
                                              : unstack_shown(all, 0));
    }
    if (inputs.size() == operand_count(attrs))
      for (const Tensor& input : given)
        if (input.is_defined()) types.push_back(input.type());
    given = Tensors(all_slices.begin(), all_slices.end());
  }

  std::int64_t position(std::int64_t k) const {
    return attrs.trips.is_reverse ? iterations.limit - 1 - k : k;
  }
  DimEnv dims(int part) const override { return (part ? attrs.cond : attrs.body).env(); }

 private:
  /// Returns the op's inputs by place; carries and captures may be missing.
  std::vector<OpInput> in_their_places(std::span<Tensor> inputs) {
    if (inputs.size() == operand_count(attrs)) {
      given.assign(inputs.begin(), inputs.end());
    } else {
      given.resize(operand_count(attrs));
      const auto others = inputs.first(inputs.size() - attrs.slices.size());
      std::copy(others.begin(), others.end(), given.begin());
      std::copy(others.end(), inputs.end(), operands_of(attrs, given).slices.begin());
    }
    return {given.begin(), given.end()};
  }
};

/// The values that finished entries read in one iteration.
struct Finished final : Handle {
  Tensor begun;                                    ///< handle of the loop
  std::shared_ptr<const FinishedEntries> entries;  ///< null until some entries have finished
  bool is_active = false;                          ///< some entries have finished
  DimEnv dims(int part) const override {
    return is_active ? entries->body().env() : handle_of<Begun>(begun).dims(part);
  }
};

/// The elements of one stack so far.
struct Stacked final : Handle {
  StackWriter writer;
  StackList list;
  Stacked(std::optional<Dim> dim, bool is_reverse, MemoryClass what)
      : writer(std::move(dim), what), list(is_reverse, what) {}
  DimEnv dims(int) const override { return {}; }
};

/// One sum so far, and the number of iterations that added to it.
struct Summed final : Handle {
  TermSum sum;
  std::int64_t iterations = 0;
  DimEnv dims(int) const override { return {}; }
};

struct Types final : Handle {
  std::vector<TensorType> types;
  DimEnv dims(int) const override { return {}; }
};

struct Bindings final : Handle {
  AttrsRef held;
  explicit Bindings(AttrsRef attrs) : held(std::move(attrs)) {}
  DimEnv dims(int part) const override {
    const auto& attrs = get<CondAttrs>(held.get());
    return (part ? attrs.on_false : attrs.on_true).env();
  }
};

const Tensor& truth(bool value) {
  static const auto& values = *new std::array{scalar(false, boolean), scalar(true, boolean)};
  return values[value];
}

Tensor begin_stack(const Begun& begun, std::size_t j) {
  const TripCount& trips = begun.attrs.trips;
  const LoopStack& stack = begun.attrs.stacks[j];
  const bool is_known = !stack.is_list && !trips.makes_dim && stack.dim.has_size();
  return token(new Stacked(is_known ? std::optional(stack.dim) : std::nullopt, trips.is_reverse,
                           stack.memory_class()));
}

Tensor put(const Begun& begun, std::size_t j, std::int64_t k, Tensor stack, Tensor term) {
  if (!stack.is_defined()) stack = begin_stack(begun, j);
  Stacked& stacked = handle_of<Stacked>(stack);
  if (begun.attrs.stacks[j].is_list)
    stacked.list.put(begun.position(k), begun.iterations.limit, std::move(term));
  else
    stacked.writer.put(begun.position(k), std::move(term));
  return stack;
}

/// dim_token: of the dim that the loop makes; null if it makes none.
Tensor finish_stack(const Begun& begun, const std::vector<TensorType>& types, std::size_t j,
                    std::int64_t trips, Tensor stack, const Tensor* dim_token) {
  const LoopAttrs& attrs = begun.attrs;
  const TensorType& term = attrs.body.graph->types[body_outputs(attrs).stacks[j]];
  const auto element = [&] { return type_without_iterations(attrs, types, term); };
  if (!stack.is_defined()) stack = begin_stack(begun, j);
  Stacked& stacked = handle_of<Stacked>(stack);
  if (attrs.stacks[j].is_list) {
    const Tensors& elements = stacked.list.elements();
    return make_list(elements.empty() ? element() : common_type(elements), elements);
  }
  const Dim& dim = dim_token ? dim_token->dims()[1] : attrs.stacks[j].dim;
  const Dim along = dim.has_size() ? dim : Dim(trips);
  if (!stacked.writer.is_empty()) return stacked.writer.finish(along);
  Dims dims{along};
  const TensorType one = element();
  dims.insert(dims.end(), one.dims().begin(), one.dims().end());
  return zeros(one.with(dims));
}

Tensor add_term(Tensor so_far, Tensor term) {
  if (!so_far.is_defined()) so_far = token(new Summed);
  Summed& summed = handle_of<Summed>(so_far);
  if (begins_block(summed.iterations++)) summed.sum.end_block();
  summed.sum.add(std::move(term));
  return so_far;
}

Tensor finish_sum(const Begun& begun, const std::vector<TensorType>& types, std::size_t j,
                  Tensor so_far) {
  if (so_far.is_defined()) return handle_of<Summed>(so_far).sum.take();
  const LoopAttrs& attrs = begun.attrs;
  const TensorType& term = attrs.body.graph->types[body_outputs(attrs).sums[j]];
  const TensorType type = type_without_iterations(attrs, types, term);
  return type.is_list() ? empty_list(type) : zeros(type);
}

Tensor slice_at(Begun& begun, std::size_t j, std::int64_t position) {
  const ResidualValue* saved = begun.saved[j];
  if (!saved) return begun.slices[j][static_cast<std::size_t>(position)];
  const std::lock_guard lock(saved->steps->mutex);
  saved->steps->need(position, 1);
  return step_of_residual(begun.given[j], position);
}

Tensor end_entries(const Tensor& begun, const Tensor& before, const Tensor& running) {
  auto* const finished = new Finished;
  Tensor result = token(finished);
  finished->begun = begun;
  if (before.is_defined()) finished->entries = handle_of<Finished>(before).entries;
  finished->is_active = !all_running(running);
  if (!finished->is_active) return result;
  if (finished->entries && finished->entries->has_running(running)) return result;
  const Begun& loop = handle_of<Begun>(begun);
  // A copy keeps the dims that it showed before as the same objects.
  const auto entries = finished->entries
                           ? std::make_shared<FinishedEntries>(*finished->entries)
                           : std::make_shared<FinishedEntries>(loop.attrs, loop.types);
  entries->set_running(running);
  finished->entries = entries;
  return result;
}

}  // namespace

DimEnv dims_of_handle(const Tensor& handle, int part) {
  return handle_of<Handle>(handle).dims(part);
}

std::int64_t iteration_number(const Tensor& begin, std::int64_t count) {
  return begin.is_defined() ? handle_of<Begun>(begin).iterations.behind(count).number() : count;
}

void run_loop_node(const LoweredNode& node, const AttrsRef& attrs, std::span<Tensor> in,
                   std::span<Tensor> out) {
  const auto begun = [&]() -> Begun& { return handle_of<Begun>(in[0]); };
  const auto number = [&](std::size_t i) { return *in[i].data<std::int64_t>(); };
  const auto index = static_cast<std::size_t>(node.index);
  // Finished entries, by the handle in the last input; null if none have finished.
  const auto finished = [&]() -> const FinishedEntries* {
    const Finished& handle = handle_of<Finished>(in.back());
    return handle.is_active ? handle.entries.get() : nullptr;
  };
  switch (node.role) {
    case LoweredRole::begin:
      out[0] = token(new Begun(attrs, in));
      out[1] = scalar(0, i64);
      break;
    case LoweredRole::types: {
      auto* const types = new Types;
      out[0] = token(types);
      for (const Tensor& input : in) types->types.push_back(input.type());
      break;
    }
    case LoweredRole::bindings:
      out[0] = token(new Bindings(attrs));
      break;
    case LoweredRole::in_bound:
      out[0] = truth(number(1) < begun().iterations.limit);
      break;
    case LoweredRole::every_entry:
      out[0] = mask_padding(ones(begun().attrs.entries.dims, boolean));
      break;
    case LoweredRole::no_steps:
      out[0] = zeros(begun().attrs.entries.dims, i32);
      break;
    case LoweredRole::running: {
      out[0] = begun().iterations.running_at(begun().position(number(1)));
      if (in.size() > 2) out[0] = out[0].is_defined() ? logical_and(out[0], in[2]) : in[2];
      break;
    }
    case LoweredRole::any_running:
      out[0] = truth(number(1) < begun().iterations.limit && any_running(in[2]));
      break;
    case LoweredRole::both:
      out[0] = logical_and(in[0], in[1]);
      break;
    case LoweredRole::finished:
      out[0] = end_entries(in[0], in[1], in[2]);
      break;
    case LoweredRole::seen:
      out[0] = finished() ? finished()->seen(in[0], index) : in[0];
      break;
    case LoweredRole::next:
      out[0] = finished() ? finished()->next(finished()->made(in[0], index), in[1], index) : in[0];
      break;
    case LoweredRole::term:
      out[0] = finished() ? finished()->term(finished()->made(in[0], index), index) : in[0];
      break;
    case LoweredRole::count_running:
      out[0] = in[0] + cast(in[1], i32);
      break;
    case LoweredRole::position:
      out[0] = scalar(begun().iterations.step_at(begun().position(number(1))), i64);
      break;
    case LoweredRole::slice:
      out[0] = slice_at(begun(), index, begun().position(number(1)));
      break;
    case LoweredRole::put:
      out[0] = put(begun(), index, number(1), std::move(in[2]), std::move(in[3]));
      break;
    case LoweredRole::add_term:
      out[0] = add_term(std::move(in[0]), std::move(in[1]));
      break;
    case LoweredRole::increment:
      out[0] = scalar(number(0) + 1, i64);
      break;
    case LoweredRole::made_dim: {
      const Iterations ran = begun().iterations.behind(number(1), in.size() > 2 ? in[2] : Tensor());
      out[0] = ran.token(ran.made_dim());
      break;
    }
    case LoweredRole::stack:
      out[0] = finish_stack(begun(), handle_of<Types>(in[1]).types, index, number(2), in[3],
                            in.size() > 4 ? &in[4] : nullptr);
      break;
    case LoweredRole::sum:
      out[0] = finish_sum(begun(), handle_of<Types>(in[1]).types, index, std::move(in[2]));
      break;
    case LoweredRole::trips:
      out[0] = scalar(checked_i32(number(0), "loop", "the number of iterations"), i32);
      break;
    default:
      throw InternalError("a node that is none of a loop");
  }
}

}  // namespace reel
