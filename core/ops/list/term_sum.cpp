#include "reel/core/ops/list/term_sum.h"

#include "reel/core/ops.h"
#include "reel/core/ops/list/list.h"

namespace reel {

namespace {

/// Adds one to a binary number. Its digits are sums.
void carry(Tensors& digits, Tensor block) {
  std::size_t i = 0;
  for (; i < digits.size() && digits[i].is_defined(); ++i)
    block = list_add(std::exchange(digits[i], Tensor()), std::move(block));
  if (i == digits.size()) digits.emplace_back();
  digits[i] = std::move(block);
}

}  // namespace

void TermSum::end_block() {
  if (!block_.is_defined() || block_.dtype() != f32) return;
  if (block_.type().is_list()) return carry(list_blocks_, std::exchange(block_, Tensor()));
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
  for (Tensor& before : std::exchange(list_blocks_, Tensors()))
    if (before.is_defined())
      block_ =
          block_.is_defined() ? list_add(std::move(before), std::move(block_)) : std::move(before);
  if (!blocks_.is_defined()) return std::exchange(block_, Tensor());
  end_block();
  return cast(std::exchange(blocks_, Tensor()), f32);
}

}  // namespace reel
