#include "reel/trace/result_slices.h"

#include <new>
#include <utility>

#include "reel/core/dims/dim_slices.h"
#include "reel/core/types/dim_expression.h"

namespace reel {
namespace {

std::optional<std::size_t> place_of(const Dims& dims, const Dim& dim) {
  for (std::size_t i = 0; i < dims.size(); ++i)
    if (dims[i].node() == dim.node()) return i;
  return std::nullopt;
}

/// Returns the dim from outside that a symbol stands for in a graph, if a capture has it.
std::optional<Dim> captured_dim(const Graph& graph, const Tensors& captured, const Dim& symbol) {
  for (std::size_t i = 0; i < captured.size(); ++i) {
    const TensorType& inside = graph.types[graph.inputs[graph.formal_count + i]];
    if (const auto axis = place_of(inside.dims(), symbol)) return captured[i].dims()[*axis];
  }
  return std::nullopt;
}

}  // namespace

ResultSlices::ResultSlices(const Graph& graph, const Tensors& captured, const Dims& symbols) {
  if (!has_slices()) return;
  Dims made;
  std::vector<Place> places;
  const auto add = [&](auto&& self, const Dim& dim, Place place) -> void {
    if (const DimExpression* expression = expression_of(dim)) {
      place.operands.push_back(0);
      for (const Dim& of : expression->operands) {
        self(self, of, place);
        ++place.operands.back();
      }
      return;
    }
    if (!dim.is_symbol() || !dim.is_named() || place_of(symbols, dim) || place_of(made, dim))
      return;
    made.push_back(dim);
    places.push_back(std::move(place));
  };
  for (std::size_t k = 0; k < graph.outputs.size(); ++k) {
    const Dims& dims = graph.types[graph.outputs[k]].dims();
    for (std::size_t axis = 0; axis < dims.size(); ++axis) add(add, dims[axis], {k, axis, {}});
  }
  for (std::size_t i = 0; i < made.size(); ++i) {
    if (captured_dim(graph, captured, made[i])) continue;  // a dim from outside stays
    for (auto whole = reel::whole_of(made[i]); whole; whole = reel::whole_of(*whole)) {
      Slice slice{places[i], place_of(symbols, *whole), std::nullopt, Dim()};
      if (const auto of = place_of(made, *whole)) slice.output = places[*of];
      if (!whole->is_symbol())
        slice.outside = *whole;
      else if (const auto outside = captured_dim(graph, captured, *whole))
        slice.outside = *outside;
      if (!slice.argument && !slice.output && !slice.outside.node()) continue;
      slices_.push_back(std::move(slice));
      break;
    }
  }
}

std::optional<Dim> ResultSlices::dim_at(const Tensors& outputs, const Place& place) {
  const Dims& dims = outputs[place.output].dims();
  if (place.axis >= dims.size()) return std::nullopt;
  const Dim* dim = &dims[place.axis];
  for (const std::size_t i : place.operands) {
    const DimExpression* expression = expression_of(*dim);
    if (!expression || i >= expression->operands.size()) return std::nullopt;
    dim = &expression->operands[i];
  }
  return *dim;
}

std::optional<Dim> ResultSlices::whole_of(const Slice& slice, const Tensors& outputs,
                                          const Dims& arguments) const {
  if (slice.argument) return arguments[*slice.argument];
  if (slice.output) return dim_at(outputs, *slice.output);
  return slice.outside;
}

void ResultSlices::note(const Tensors& outputs, const Dims& arguments) const noexcept {
  try {
    for (const Slice& slice : slices_) {
      const auto dim = dim_at(outputs, slice.place), whole = whole_of(slice, outputs, arguments);
      if (dim && whole && dim->is_named() && !(*dim == *whole) && !place_of(arguments, *dim))
        note_slice(*dim, *whole, *whole, {});
    }
  } catch (const std::bad_alloc&) {
  }
}

}  // namespace reel
