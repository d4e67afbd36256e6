#include "reel/onnx/writers/loop_parts.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "reel/core/ops.h"
#include "reel/onnx/borders.h"
#include "reel/onnx/writers/lists.h"

namespace reel::exported {
namespace {

/// Returns true if the values of all iterations have one size, as far as the type tells.
bool is_even(const TensorType& type) {
  const Dims& dims = type.dims();
  return std::all_of(dims.begin(), dims.end(), [](const Dim& dim) { return known_size(dim) >= 0; });
}

}  // namespace

Name LoopParts::limit() {
  Names limits;
  if (values_.bound) {
    const Name bound = to_.cast(to_.name(*values_.bound), i64);
    limits.push_back(to_.add("Max", {bound, model_.integer(0)}));
  }
  std::vector<Dim> dims;
  for (std::size_t i = 0; i < values_.slices.size(); ++i) {
    if (types_.slices[i].is_list()) continue;
    const Dim& dim = types_.slices[i].dims()[0];
    if (std::find(dims.begin(), dims.end(), dim) != dims.end()) continue;
    dims.push_back(dim);
    limits.push_back(to_.squeeze(to_.size(dim), {0}));
  }
  for (std::size_t i = 0; i < values_.slices.size() && limits.empty(); ++i)
    limits.push_back(to_.squeeze(list_size(to_, to_.name(values_.slices[i])), {0}));
  if (values_.lengths && !has_cond())
    limits.push_back(to_.squeeze(to_.largest(to_.name(*values_.lengths)), {0}));
  if (limits.empty()) return "";
  return limits.size() == 1 ? limits[0] : to_.add("Min", limits);
}

std::int64_t LoopParts::known_limit() const {
  std::int64_t known = -1;
  if (values_.bound)
    if (const auto bound = model_.known_integer(to_.name(*values_.bound)))
      known = std::max<std::int64_t>(*bound, 0);
  for (const TensorType& slice : types_.slices)
    if (!slice.is_list() && known_size(slice.dims()[0]) >= 0)
      known =
          known < 0 ? known_size(slice.dims()[0]) : std::min(known, known_size(slice.dims()[0]));
  return known;
}

void LoopParts::add_position(const Name& position, std::int64_t more) {
  if (model_.options().draws != OnnxDraws::inputs) return;
  imported::Declared::Size count;
  if (const std::int64_t known = known_limit(); known >= 0)
    count.size = known + more;
  else
    count.name = model_.unique_size_name("iterations");
  model_.add_position(position, {std::move(count)});
}

Name LoopParts::without_padding(Name mask) {
  const Dims& entries = attrs_.entries.dims;
  for (const Dim& dim : entries) {
    if (!dim.is_ragged()) continue;
    Dims dims = dim.length_dims();
    dims.push_back(dim);
    mask = to_.add("And", {mask, to_.aligned(to_.mask(dim), dims, entries)});
  }
  return mask;
}

Name LoopParts::stacked(std::size_t i, const Name& elements) {
  Name result = with_sizes(elements, slice_type(to_.type(results_.stacks[i])));
  if (attrs_.trips.is_reverse)
    result = to_.add("Slice", {result, model_.integers({-1}),
                               model_.integers({std::numeric_limits<std::int64_t>::min() + 1}),
                               model_.integers({0}), model_.integers({-1})});
  const LoopStack& stack = attrs_.stacks[i];
  const bool is_whole = attrs_.trips.is_full || attrs_.trips.makes_dim || stack.is_list;
  if (is_whole || !(stack.dim.is_named() || known_size(stack.dim) > 0)) return result;
  const TensorType& type = to_.type(results_.stacks[i]);
  const Name missing = to_.add("Sub", {to_.shape(type.dims()), to_.add("Shape", {result})});
  const std::vector<std::int64_t> before(static_cast<std::size_t>(type.rank()));
  const Name pads = to_.concat({model_.integers(before), missing}, 0);
  const DType dtype = type.dtype() == boolean ? i32 : type.dtype();
  if (dtype != type.dtype()) result = to_.cast(result, dtype);
  result = to_.add("Pad", {result, pads, model_.number(0, dtype)});
  return dtype == type.dtype() ? result : to_.cast(result, boolean);
}

/// Returns a stack with the sizes of its elements. A Loop without iterations, which makes no
/// element, only tells those that its body declares.
Name LoopParts::with_sizes(const Name& stack, const TensorType& element) {
  const Dims& dims = element.dims();
  const auto is_declared = [](const Dim& dim) { return known_size(dim) > 0; };
  if (known_limit() > 0 && !has_cond()) return stack;
  if (element.is_list() || is_token(element)) return stack;
  if (std::all_of(dims.begin(), dims.end(), is_declared)) return stack;
  try {
    const Name sizes = to_.concat({list_size(to_, stack), to_.shape(dims)}, 0);
    return to_.add("Reshape", {stack, sizes}, {{"allowzero", integer(1)}});
  } catch (const NotExpressible&) {
    return stack;  // elements have sizes that only the body knows
  }
}

bool LoopParts::is_joined(std::size_t stack) const {
  return attrs_.stacks[stack].is_list && is_only_joined(to_, results_.stacks[stack]);
}

bool LoopParts::is_uneven(std::size_t stack, const GraphWriter& body) const {
  const ValueId term = body_outputs(attrs_).stacks[stack];
  return attrs_.stacks[stack].is_list && !is_joined(stack) &&
         !is_even(element_type(body.type(term)));
}

TensorType LoopParts::element_type(const TensorType& value) {
  const TensorType type = leaving_type(value);
  if (!type.is_list()) return type;
  Dims dims{Dim::unknown()};
  for (const Dim& dim : type.dims())
    dims.push_back(known_size(dim) < 0 ? Dim::unknown() : Dim(known_size(dim)));
  return {type.dtype(), dims};
}

void LoopParts::check_expressible() const {
  if (attrs_.keeps_few_steps() || attrs_.has_windows())
    throw NotExpressible{std::string(reason_against("recompute"))};
  for (const LoopStack& stack : attrs_.stacks)
    if (stack.role == StackRole::inner_checkpoints)
      throw NotExpressible{std::string(reason_against("recompute"))};
}

}  // namespace reel::exported
