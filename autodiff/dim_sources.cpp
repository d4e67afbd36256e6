#include "reel/autodiff/dim_sources.h"

namespace reel {
namespace {

bool is_computed_from(const Dim& computed, const Dim& dim) {
  bool result = false;
  if (expression_of(computed))
    for_each_symbol(computed, [&](const Dim& of) { result = result || of.node() == dim.node(); });
  return result;
}

bool determines(const TensorType& type, const Dim& dim) {
  bool result = false;
  for_each_bound(type, [&](const Dim& of) { result = result || of.node() == dim.node(); });
  return result;
}

/// Returns the dims that forward records make in a run. A dim may have no other mention there: a
/// result that gets the name of a known dim is renamed at once, and only the vjp of the rename
/// mentions the dim of the result.
Dims dims_made_forward(const RecordedReversal& both) {
  const Graph& graph = *both.graph;
  std::unordered_set<const DimNode*> known;
  for (const Dim& dim : graph.schedule().free_symbols) known.insert(dim.node());
  for (const ValueId v : graph.inputs)
    for_each_bound(graph.types[v], [&](const Dim& dim) { known.insert(dim.node()); });
  Dims result;
  for (std::size_t r = 0; r < both.forward_records; ++r)
    for (const ValueId v : graph.outputs_of(graph.records[r]))
      if (!graph.types[v].is_list())  // a list may not know the dims of its elements
        for_each_bound(graph.types[v], [&](const Dim& dim) {
          if (!dim.has_size() && known.insert(dim.node()).second) result.push_back(dim);
        });
  return result;
}

}  // namespace

DimSources::DimSources(const Graph& forward, const ReversalSpec& spec, const RecordedReversal& both)
    : spec_(spec), both_(both), takes_input_(forward.inputs.size(), 0) {
  find_own_dims();
  if (!spec.is_varying.empty()) find_varying_dims(forward);
  find_forward_dims();
}

void DimSources::find_own_dims() {
  for (const auto& [symbol, here] : both_.dims) {
    own_.insert(here.node());
    // A dim that the graph renews is made in it; the size of a plain dim may change.
    if (symbol.node() != here.node() || !symbol.is_named()) local_.insert(here.node());
  }
  for (const Dim& dim : dims_made_forward(both_)) {
    own_.insert(dim.node());
    local_.insert(dim.node());
  }
}

/// Adds the dims of varying inputs, except those that other inputs or the enclosing graph fix.
void DimSources::find_varying_dims(const Graph& forward) {
  DimSet fixed;
  for (const Dim& dim : forward.schedule().free_symbols) fixed.insert(dim.node());
  const auto each_dim_of_inputs = [&](bool varying, auto&& visit) {
    for (std::size_t i = 0; i < forward.inputs.size(); ++i)
      if (static_cast<bool>(spec_.is_varying[i]) == varying)
        for_each_symbol(forward.types[forward.inputs[i]], visit);
  };
  each_dim_of_inputs(false, [&](const Dim& dim) { fixed.insert(dim.node()); });
  each_dim_of_inputs(true, [&](const Dim& dim) {
    if (!fixed.count(dim.node())) local_.insert(dim.node());
  });
}

/// A list of residuals over hist + 1 does not determine hist.
void DimSources::find_forward_dims() {
  const Graph& graph = *both_.graph;
  const auto add = [&](ValueId v) {
    for_each_bound(graph.types[v], [&](const Dim& dim) { forward_.insert(dim.node()); });
  };
  for (const ValueId v : graph.inputs) add(v);
  for (std::size_t r = 0; r < both_.forward_records; ++r)
    for (const ValueId v : graph.outputs_of(graph.records[r])) add(v);
}

bool DimSources::is_local(const TensorType& type) const {
  bool result = false;
  for_each_symbol(type, [&](const Dim& dim) { result = result || local_.count(dim.node()); });
  return result;
}

void DimSources::add_value(const TensorType& type) {
  for_each_bound(type, [&](const Dim& dim) { bound_.insert(dim.node()); });
  for (const Dim& dim : type.dims())
    if (expression_of(dim)) bound_.insert(dim.node());
}

void DimSources::take_input(std::size_t input) {
  takes_input_[input] = 1;
  add_value(type_of_input(input));
}

void DimSources::require(const Dim& dim) {
  // A body or branch knows the dims that do not differ between its runs from the enclosing graph.
  const DimSet& needs_source = spec_.is_enclosed ? local_ : own_;
  if (!needs_source.count(dim.node()) || bound_.count(dim.node())) return;
  take_inputs_with(dim);
  if (!forward_.count(dim.node()) && !bound_.count(dim.node())) require_dims_computed_from(dim);
  // A static dim without a source was made inside, and can be made again.
  if (bound_.insert(dim.node()).second && !dim.has_size()) tokens_.push_back(dim);
}

/// Takes free inputs of the forward graph until one determines the dim.
void DimSources::take_inputs_with(const Dim& dim) {
  for (std::size_t i = 0; i < takes_input_.size() && !bound_.count(dim.node()); ++i)
    if (spec_.is_free[i] && determines(type_of_input(i), dim)) take_input(i);
}

/// Provides the dims that are computed from `dim` (hist + 1) and that forward inputs have.
void DimSources::require_dims_computed_from(const Dim& dim) {
  for (std::size_t i = 0; i < takes_input_.size(); ++i)
    for (const Dim& computed : type_of_input(i).dims()) {
      if (!is_computed_from(computed, dim)) continue;
      bound_.insert(dim.node());
      if (!bound_.insert(computed.node()).second) continue;
      if (spec_.is_free[i])
        takes_input_[i] = 1;
      else
        tokens_.push_back(computed);
    }
}

}  // namespace reel
