#include "reel/trace/executors/dataflow/loop_tokens.h"

#include <array>
#include <memory>
#include <mutex>
#include <utility>

#include "reel/core/ops.h"
#include "reel/core/ops/control/cond.h"
#include "reel/core/ops/list/list.h"
#include "reel/core/ops/list/term_sum.h"
#include "reel/core/ops/shape/join.h"
#include "reel/core/runtime/residual_source.h"
#include "reel/core/types/sizes.h"
#include "reel/trace/executors/checkpoints/stack_list.h"
#include "reel/trace/executors/leaves/residual_slices.h"
#include "reel/trace/executors/loop/chunks.h"
#include "reel/trace/executors/loop/finished_entries.h"
#include "reel/trace/executors/loop/iterations.h"
#include "reel/trace/executors/loop/loop_types.h"
#include "reel/trace/executors/loop/stack_writer.h"

namespace reel {
namespace {

/// Tokens are tensors. If a token stands for another object, the object is its attachment.
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
  std::vector<Tensors> slices;                  ///< elements; none for residuals in a file
  std::vector<const ResidualValue*> residuals;  ///< by slice; null if all elements are in memory
  std::vector<TensorType> types;  ///< of the op's inputs, if entries finish one by one
  const Chunks chunks;            ///< empty, since chunked loops stay one node

  Begun(const AttrsRef& attrs_ref, std::span<Tensor> inputs)
      : held(attrs_ref),
        attrs(get<LoopAttrs>(attrs_ref.get())),
        iterations(attrs, in_their_places(inputs)) {
    const Graph& body = *attrs.body.graph;
    const auto formals = body_inputs(attrs).slices;
    const auto all_slices = operands_of(attrs, given).slices;
    for (std::size_t j = 0; j < formals.size(); ++j) {
      const Tensor& all = all_slices[j];
      residuals.push_back(residual_value(all));
      const TensorType& slice = body.types[formals[j]];
      slices.push_back(residuals.back()       ? Tensors()
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

Tensor slice_at(const Begun& begun, std::size_t j, std::int64_t position) {
  const ResidualValue* residual = begun.residuals[j];
  if (!residual) return begun.slices[j][static_cast<std::size_t>(position)];
  const LeafContext leaves{begun.attrs, begun.types, begun.chunks, begun.iterations};
  const std::lock_guard lock(residual->steps->mutex);
  return ResidualSlices(leaves, begun.given[j]).slice(position);
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

/// A node to run.
struct LoopNode {
  const LoweredNode& node;
  const AttrsRef& attrs;
  std::span<Tensor> in;  ///< may be moved from

  std::size_t index() const { return static_cast<std::size_t>(node.index); }
  std::int64_t number(std::size_t input) const { return *in[input].data<std::int64_t>(); }
  const Begun& begun() const { return handle_of<Begun>(in[0]); }
  std::int64_t position(std::int64_t iteration) const { return begun().position(iteration); }
  /// Returns whether iteration k is within the loop's bound. k: the second input.
  bool is_in_bound() const { return number(1) < begun().iterations.limit; }
  const std::vector<TensorType>& types() const { return handle_of<Types>(in[1]).types; }
  /// Returns the entries of the handle in the last input; null if none have finished.
  const FinishedEntries* finished() const {
    const Finished& handle = handle_of<Finished>(in.back());
    return handle.is_active ? handle.entries.get() : nullptr;
  }
  /// Returns output `index` of the body as it is outside of the body.
  Tensor made() const { return finished()->made(in[0], index()); }
};

Tensor input_types(const LoopNode& at) {
  auto* const types = new Types;
  Tensor result = token(types);
  for (const Tensor& input : at.in) types->types.push_back(input.type());
  return result;
}

Tensor running_entries(const LoopNode& at) {
  const Tensor running = at.begun().iterations.running_at(at.position(at.number(1)));
  if (at.in.size() <= 2) return running;
  return running.is_defined() ? logical_and(running, at.in[2]) : at.in[2];
}

Tensor made_dim(const LoopNode& at) {
  const Iterations ran =
      at.begun().iterations.behind(at.number(1), at.in.size() > 2 ? at.in[2] : Tensor());
  return ran.token(ran.made_dim());
}

/// Computes the first output of a node.
using RunNode = Tensor (*)(const LoopNode& at);

// LoweredRole describes the inputs and outputs.
constexpr std::pair<LoweredRole, RunNode> kRoles[] = {
    {LoweredRole::begin, [](const LoopNode& at) { return token(new Begun(at.attrs, at.in)); }},
    {LoweredRole::types, input_types},
    {LoweredRole::bindings, [](const LoopNode& at) { return token(new Bindings(at.attrs)); }},
    {LoweredRole::in_bound, [](const LoopNode& at) { return truth(at.is_in_bound()); }},
    {LoweredRole::every_entry,
     [](const LoopNode& at) { return mask_padding(ones(at.begun().attrs.entries.dims, boolean)); }},
    {LoweredRole::no_steps,
     [](const LoopNode& at) { return zeros(at.begun().attrs.entries.dims, i32); }},
    {LoweredRole::running, running_entries},
    {LoweredRole::any_running,
     [](const LoopNode& at) { return truth(at.is_in_bound() && any_running(at.in[2])); }},
    {LoweredRole::both, [](const LoopNode& at) { return logical_and(at.in[0], at.in[1]); }},
    {LoweredRole::finished,
     [](const LoopNode& at) { return end_entries(at.in[0], at.in[1], at.in[2]); }},
    {LoweredRole::seen,
     [](const LoopNode& at) {
       return at.finished() ? at.finished()->seen(at.in[0], at.index()) : at.in[0];
     }},
    {LoweredRole::next,
     [](const LoopNode& at) {
       return at.finished() ? at.finished()->next(at.made(), at.in[1], at.index()) : at.in[0];
     }},
    {LoweredRole::term,
     [](const LoopNode& at) {
       return at.finished() ? at.finished()->term(at.made(), at.index()) : at.in[0];
     }},
    {LoweredRole::count_running, [](const LoopNode& at) { return at.in[0] + cast(at.in[1], i32); }},
    {LoweredRole::position,
     [](const LoopNode& at) {
       return scalar(at.begun().iterations.step_at(at.position(at.number(1))), i64);
     }},
    {LoweredRole::slice,
     [](const LoopNode& at) {
       return slice_at(at.begun(), at.index(), at.position(at.number(1)));
     }},
    {LoweredRole::put,
     [](const LoopNode& at) {
       return put(at.begun(), at.index(), at.number(1), std::move(at.in[2]), std::move(at.in[3]));
     }},
    {LoweredRole::add_term,
     [](const LoopNode& at) { return add_term(std::move(at.in[0]), std::move(at.in[1])); }},
    {LoweredRole::increment, [](const LoopNode& at) { return scalar(at.number(0) + 1, i64); }},
    {LoweredRole::made_dim, made_dim},
    {LoweredRole::stack,
     [](const LoopNode& at) {
       return finish_stack(at.begun(), at.types(), at.index(), at.number(2), at.in[3],
                           at.in.size() > 4 ? &at.in[4] : nullptr);
     }},
    {LoweredRole::sum,
     [](const LoopNode& at) {
       return finish_sum(at.begun(), at.types(), at.index(), std::move(at.in[2]));
     }},
    {LoweredRole::trips,
     [](const LoopNode& at) {
       return scalar(checked_i32(at.number(0), "loop", "the number of iterations"), i32);
     }},
};

/// By role; null for roles that belong to no loop.
constexpr auto kRunOf = [] {
  std::array<RunNode, static_cast<std::size_t>(LoweredRole::trips) + 1> table{};
  for (const auto& [role, run] : kRoles) table[static_cast<std::size_t>(role)] = run;
  return table;
}();

}  // namespace

DimEnv dims_of_handle(const Tensor& handle, int part) {
  return handle_of<Handle>(handle).dims(part);
}

std::int64_t iteration_number(const Tensor& begin, std::int64_t count) {
  return begin.is_defined() ? handle_of<Begun>(begin).iterations.behind(count).number() : count;
}

void run_loop_node(const LoweredNode& node, const AttrsRef& attrs, std::span<Tensor> in,
                   std::span<Tensor> out) {
  const RunNode run = kRunOf[static_cast<std::size_t>(node.role)];
  if (!run) throw InternalError("a node that is none of a loop");
  out[0] = run({node, attrs, in});
  if (node.role == LoweredRole::begin) out[1] = scalar(0, i64);  // the number of iterations so far
}

}  // namespace reel
