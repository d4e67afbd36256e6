#include "reel/frontend/loops/state/finished_capture_view.h"

#include <algorithm>

#include "reel/core/types/dim_expression.h"

namespace reel {

FinishedCaptureView::FinishedCaptureView(const Tensor& running, Dims kept, std::uint64_t loop_begin,
                                         FilledCaptures& filled)
    : outer_(thread_mode.entries),
      loop_begin_(loop_begin),
      begin_(next_block_id()),
      dims_(std::move(kept)),
      filled_(filled) {
  dims_.set_running(running);
}

Tensor FinishedCaptureView::visible(const Tensor& input) {
  // Filling an input runs ops itself. The first reader may stand in an inner loop, but the result
  // belongs to this loop's iteration.
  ModeScope aside({nullptr, thread_mode.tape, nullptr, begin_});
  for (const Dim& dim : input.dims()) visible(dim);
  const Tensor seen = outer_ ? outer_->visible(input) : input;
  const std::uint64_t id = input.block()->id;
  if (!seen.type().is_named() || (is_made_inside(id) && !dims_.affects(seen.type()))) return seen;
  for (const Known& known : cache_)
    if (known.id == id && known.tape == thread_mode.tape) return known.filled;
  std::shared_ptr<FilledEntries> shared;
  if (!is_made_inside(id)) {
    std::shared_ptr<FilledEntries>& known = filled_[id];
    if (!known) known = std::make_shared<FilledEntries>();
    shared = known;
  }
  cache_.push_back({id, thread_mode.tape, dims_.filled(seen, std::move(shared))});
  return cache_.back().filled;
}

Dim FinishedCaptureView::visible(const Dim& dim) {
  if (!dim.is_ragged() || dim.is_symbol()) return dim;  // a body may record graphs too
  ModeScope aside({nullptr, thread_mode.tape, nullptr});
  const Dim seen = outer_ ? outer_->visible(dim) : dim;
  if (is_captured(dim)) dims_.add(seen);
  return dims_(seen);
}

Tensor FinishedCaptureView::filled(const Tensor& x) {
  for (const Dim& dim : x.dims()) visible(dim);
  return dims_.filled(x);
}

void FinishedCaptureView::restore(TreeLeaves& leaves) {
  for (TreeLeaf& leaf : leaves)
    if (leaf.kind == TreeLeaf::Kind::dim)
      leaf.dim = dims_.restored(leaf.dim);
    else if (leaf.kind == TreeLeaf::Kind::tensor && leaf.tensor.is_defined())
      leaf.tensor = dims_.restored(visible(leaf.tensor));
}

void FinishedCaptureView::restore_state(TreeLeaves& state, const TreeLeaves& before) {
  restore(state);
  const auto is_tensor = [](const TreeLeaf& leaf) {
    return leaf.kind == TreeLeaf::Kind::tensor && leaf.tensor.is_defined();
  };
  for (std::size_t i = 0; i < std::min(state.size(), before.size()); ++i)
    if (is_tensor(state[i]) && is_tensor(before[i]) &&
        state[i].tensor.dtype() == before[i].tensor.dtype())
      state[i].tensor = dims_.completed(state[i].tensor, before[i].tensor);
}

bool FinishedCaptureView::is_made_inside(std::uint64_t id) const {
  return is_id_since(id, loop_begin_);
}

/// True if the dim was made before the loop or computed from such a dim. Also true for the form in
/// which an outer loop shows such a dim, which may be first requested inside.
bool FinishedCaptureView::is_captured(const Dim& dim) const {
  if (const DimExpression* expression = expression_of(dim))
    return std::any_of(expression->operands.begin(), expression->operands.end(),
                       [&](const Dim& of) { return is_captured(of); });
  return dim.is_ragged() &&
         (!is_made_inside(dim.node()->lengths->id) || (outer_ && outer_->shows(dim)));
}

}  // namespace reel
