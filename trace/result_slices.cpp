#include "reel/trace/result_slices.h"

#include <cstring>
#include <new>
#include <utility>

#include "reel/core/dims/dim_slices.h"
#include "reel/core/ops/shape/dims.h"
#include "reel/core/ops/shape/slice.h"
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

/// Returns true if two dims have the same lengths over the same dims, as far as they are known.
/// known: the dims that stand for dims of b's lengths.
bool has_same_lengths(const Dim& a, const Dim& b, const DimChanges& known) {
  if (a.is_symbol() || b.is_symbol()) return true;
  if (!a.is_ragged() || !b.is_ragged() || a.length_dims() != known(b.length_dims())) return false;
  const Tensor x = a.lengths(), y = b.lengths();
  return !std::memcmp(x.data<char>(), y.data<char>(), static_cast<std::size_t>(x.type().bytes()));
}

}  // namespace

ResultSlices::ResultSlices(const Graph& graph, const Tensors& captured, const Dims& symbols) {
  if (!has_slices()) return;
  symbols_ = symbols;
  Dims& made = made_;
  std::vector<Place>& places = places_;
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
    if (const auto outside = captured_dim(graph, captured, made[i])) {  // stays
      captured_.bind(made[i], *outside);
      continue;
    }
    for (auto whole = reel::whole_of(made[i]); whole; whole = reel::whole_of(*whole)) {
      Slice slice{places[i], place_of(symbols, *whole), std::nullopt, Dim(), {}};
      if (const auto of = place_of(made, *whole)) slice.output = places[*of];
      if (!whole->is_symbol())
        slice.outside = *whole;
      else if (const auto outside = captured_dim(graph, captured, *whole))
        slice.outside = *outside;
      if (!slice.argument && !slice.output && !slice.outside.node()) continue;
      if (const auto known = noted_slice(made[i]); known && known->whole.node() == whole->node()) {
        slice.key = known->key;
        for (const Dim& dim : slice.key.dims())
          for_each_symbol(dim, [&](const Dim& symbol) {
            if (const auto outside = captured_dim(graph, captured, symbol))
              captured_.bind(symbol, *outside);
          });
      }
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

DimChanges ResultSlices::find_or_note(const Tensors& outputs, const Dims& arguments) const {
  DimEnv env = captured_;
  for (std::size_t i = 0; i < symbols_.size(); ++i) env.bind(symbols_[i], arguments[i]);
  for (std::size_t i = 0; i < made_.size(); ++i)
    if (const auto dim = dim_at(outputs, places_[i])) env.bind(made_[i], *dim);
  DimChanges known;
  for (const Slice& slice : slices_) {
    const auto dim = dim_at(outputs, slice.place), whole = whole_of(slice, outputs, arguments);
    if (!dim || !whole || !dim->is_named() || *dim == *whole || place_of(arguments, *dim)) continue;
    const SliceKey key = slice.key.with_dims([&](const Dim& of) { return known(env.resolve(of)); });
    const Dim of = known(*whole);
    if (const auto same = known_slice(of, key); same && has_same_lengths(*same, *dim, known))
      known.add(*dim, *same);
    else
      note_slice(*dim, of, of, key);
  }
  return known;
}

void ResultSlices::note(Tensors& outputs, const Dims& arguments) const noexcept {
  if (slices_.empty()) return;
  try {
    const DimChanges known = find_or_note(outputs, arguments);
    if (known.empty()) return;
    Tensors changed = outputs;
    for (Tensor& output : changed) {
      if (output.type().is_list() || !known.affects(output.type())) continue;
      const bool is_token = output.rank() == 2 && output.type() == token_type(output.dims()[1]);
      output =
          is_token ? dim_token(known(output.dims()[1])) : resized(output, known(output.dims()));
    }
    outputs = std::move(changed);
  } catch (const std::bad_alloc&) {
  } catch (const Error&) {
  }
}

}  // namespace reel
