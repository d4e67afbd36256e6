#include "reel/core/ops/loop/loop.h"

#include <algorithm>
#include <array>
#include <utility>

#include "reel/core/dims/dim_slices.h"
#include "reel/core/ops/registry.h"
#include "reel/core/types/dim_expression.h"
#include "reel/core/types/dim_symbol.h"

namespace reel {
namespace {

Dim new_symbol(const LoopAttrs& attrs) {
  if (attrs.trips.new_dim.empty()) return Dim::unknown();
  return dim_symbol(attrs.trips.new_dim, attrs.entries.dims);
}

/// Makes a new symbol for each dim that a loop's iterations change.
class NewDims {
 public:
  NewDims(const LoopAttrs& attrs, DimEnv& env) : changing_(changing_dims(attrs)), env_(env) {
    for (const Dim& dim : changing_) make(dim);
  }
  /// True if the dim changes, or is computed from a dim that changes.
  bool has(const Dim& dim) const {
    if (const DimExpression* expression = expression_of(dim))
      return std::any_of(expression->operands.begin(), expression->operands.end(),
                         [&](const Dim& of) { return has(of); });
    return contains(changing_, dim);
  }
  Dim of(const Dim& dim) const {
    if (!has(dim)) return env_.knows(dim) ? env_.resolve(dim) : dim;
    if (const DimExpression* expression = expression_of(dim)) {
      Dims operands;
      for (const Dim& operand : expression->operands) operands.push_back(of(operand));
      return recompute(*expression, operands);
    }
    return made_[find(changing_, dim)];
  }

 private:
  void make(const Dim& dim) {
    Dims length_dims;
    for (const Dim& over : dim.length_dims()) length_dims.push_back(of(over));
    made_.push_back(dim_symbol(dim.name(), std::move(length_dims)));
    join_slices(std::array{dim}, made_.back(), env_);
  }

  Dims changing_, made_;
  DimEnv& env_;
};

/// The dims of a list's elements, seen from outside of the loop that makes them.
///
/// A dim that only an iteration knows stays a symbol of the body. Its lengths run over outer dims,
/// so a DimEnv that binds dims by the list's type binds these too.
class ElementDims {
 public:
  ElementDims(const NewDims& last, DimEnv& env) : last_(last), env_(env) {}

  TensorType operator()(const TensorType& element) {
    if (!element.node()->has_symbols) return element;
    Dims dims;
    for (const Dim& dim : element.dims()) dims.push_back(of(dim));
    return element.with(dims);
  }

 private:
  Dim of(const Dim& dim) {
    if (!dim.is_named() || last_.has(dim)) return dim;
    if (env_.knows(dim)) return env_.resolve(dim);
    if (!dim.is_symbol() || dim.length_dims().empty()) return dim;
    for (const auto& [inside, outside] : made_)
      if (inside == dim) return outside;
    Dims over;
    for (const Dim& length_dim : dim.length_dims()) over.push_back(of(length_dim));
    if (over == dim.length_dims()) return dim;
    return made_.emplace_back(dim, dim_symbol(dim.name(), std::move(over))).second;
  }

  const NewDims& last_;
  DimEnv& env_;
  std::vector<std::pair<Dim, Dim>> made_;
};

void loop_type(TypeArgs& a) {
  const LoopAttrs& attrs = a.attr<LoopAttrs>();
  const Graph& body = *attrs.body.graph;
  DimEnv env = body_env(attrs, a.in);
  const NewDims last(attrs, env);
  // Returns a type of the body as seen from outside: dims that an iteration determines are unknown.
  const auto outside = [&](const TensorType& type) {
    if (!type.node()->has_symbols) return type;
    Dims dims;
    for (const Dim& dim : type.dims())
      dims.push_back(last.has(dim)                        ? Dim::unknown()
                     : env.knows(dim)                     ? env.resolve(dim)
                     : !dim.is_symbol() || dim.has_size() ? dim
                                                          : Dim::unknown());
    return type.with(dims);
  };
  const auto initial = operands_of(attrs, a.in).carries;
  const auto formal = body_inputs(attrs).carries;
  // A carry with sizes that may change leaves with unknown sizes.
  for (std::size_t i = 0; i < attrs.carries.size(); ++i) {
    Dims dims = attrs.carries[i].final_dims;
    const Dims& inside = body.types[formal[i]].dims();
    for (std::size_t axis = dims.size(); axis < inside.size(); ++axis) {
      const Dim& dim = inside[axis];
      dims.push_back(dim.is_symbol() && !dim.is_named() ? Dim::unknown()
                     : last.has(dim)                    ? last.of(dim)
                                                        : initial[i].dims()[axis]);
    }
    a.out.push_back(initial[i].with(dims));
  }
  const Dim fresh = attrs.trips.makes_dim ? new_symbol(attrs) : Dim(0);
  ElementDims element_dims(last, env);
  const auto outputs = body_outputs(attrs);
  for (std::size_t j = 0; j < attrs.stacks.size(); ++j) {
    const LoopStack& stack = attrs.stacks[j];
    const TensorType& term = body.types[outputs.stacks[j]];
    if (stack.is_list) {  // dims of elements may be known to their iteration only
      a.out.push_back(element_dims(element_of_stack(attrs, j, term)).as_list());
      continue;
    }
    Dims dims{attrs.trips.makes_dim ? fresh : stack.dim};
    const TensorType seen = outside(remove_chunk_dim(attrs, term));
    dims.insert(dims.end(), seen.dims().begin(), seen.dims().end());
    a.out.push_back(seen.with(dims));
  }
  for (const ValueId term : outputs.sums) a.out.push_back(outside(body.types[term]));
  a.out.push_back(TensorType(i32));
  if (attrs.makes_lengths()) a.out.push_back(TensorType(i32, attrs.entries.dims));
  if (attrs.trips.makes_dim) a.out.push_back(token_type(fresh));
}

}  // namespace

const Op loop_op{
    .name = "loop",
    .type = loop_type,
    .kernel = run_loop,
    .vjp = loop_vjp,
    .reads = {.inputs = kAll, .outputs = kAll},
    .samples = [] { return OpSamples{}; },  // tests/frontend tests loops in every mode
    .kernel_decides_types = true,
    .takes_lists = kAll,
    .takes_unranked = true,
};

}  // namespace reel
