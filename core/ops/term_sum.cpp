#include "reel/core/ops/term_sum.h"

#include "reel/core/ops.h"
#include "reel/core/ops/list.h"

namespace reel {

void TermSum::end_block() {
  if (!block_.is_defined() || block_.dtype() != f32 || block_.type().is_list()) return;
  const Tensor block = cast(block_, f64);
  block_ = Tensor();
  blocks_ = blocks_.is_defined() ? reel::add(std::move(blocks_), block) : block;
}

void TermSum::add(Tensor&& term) {
  if (!block_.is_defined())
    block_ = std::move(term);
  else if (term.type().is_list())
    block_ = list_add(std::move(block_), std::move(term));
  else
    block_ = reel::add(std::move(block_), std::move(term));
}

Tensor TermSum::take() {
  if (!blocks_.is_defined()) return std::move(block_);
  end_block();
  return cast(std::exchange(blocks_, Tensor()), f32);
}

}  // namespace reel
