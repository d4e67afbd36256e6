#include "reel/core/ops/loop/loop_views.h"

#include <array>

#include "reel/core/base/errors.h"

namespace reel {
namespace {

/// The number of leaves of one kind.
struct Count {
  LeafKind kind;
  std::size_t count;
};

// The order of each list.
auto operands(const LoopAttrs& a) {
  return std::array{Count{LeafKind::bound, a.trips.has_bound},
                    Count{LeafKind::lengths, a.trips.has_lengths},
                    Count{LeafKind::chunk, a.chunking.within_chunk},
                    Count{LeafKind::carry, a.carries.size()},
                    Count{LeafKind::slice, a.slices.size()},
                    Count{LeafKind::capture, a.captures.size()}};
}
auto inputs_of_body(const LoopAttrs& a) {
  return std::array{Count{LeafKind::position, 1}, Count{LeafKind::carry, a.carries.size()},
                    Count{LeafKind::slice, a.slices.size()},
                    Count{LeafKind::capture, a.body_captures.size()}};
}
auto outputs_of_body(const LoopAttrs& a) {
  return std::array{Count{LeafKind::carry, a.carries.size()},
                    Count{LeafKind::stack, a.stacks.size()}, Count{LeafKind::sum, a.sums.size()}};
}
auto results(const LoopAttrs& a) {
  return std::array{
      Count{LeafKind::carry, a.carries.size()},    Count{LeafKind::stack, a.stacks.size()},
      Count{LeafKind::sum, a.sums.size()},         Count{LeafKind::trips, 1},
      Count{LeafKind::lengths, a.makes_lengths()}, Count{LeafKind::token, a.trips.makes_dim}};
}

template <class Counts>
std::size_t number_of(const Counts& counts, LoopLeaf leaf) {
  std::size_t first = 0;
  for (const auto& [kind, count] : counts) {
    if (kind == leaf.kind) return first + leaf.index;
    first += count;
  }
  throw InternalError("a loop has no such leaf there");
}
template <class Counts>
LoopLeaf leaf_at(const Counts& counts, std::size_t number) {
  for (const auto& [kind, count] : counts) {
    if (number < count) return {kind, number};
    number -= count;
  }
  throw InternalError("a loop has fewer leaves");
}
template <class Counts>
std::size_t sum_of(const Counts& counts) {
  std::size_t result = 0;
  for (const auto& [kind, count] : counts) result += count;
  return result;
}

}  // namespace

std::size_t operand_number(const LoopAttrs& attrs, LoopLeaf leaf) {
  return number_of(operands(attrs), leaf);
}
std::size_t body_input_number(const LoopAttrs& attrs, LoopLeaf leaf) {
  return number_of(inputs_of_body(attrs), leaf);
}
std::size_t body_output_number(const LoopAttrs& attrs, LoopLeaf leaf) {
  return number_of(outputs_of_body(attrs), leaf);
}
std::size_t result_number(const LoopAttrs& attrs, LoopLeaf leaf) {
  return number_of(results(attrs), leaf);
}

LoopLeaf operand_at(const LoopAttrs& attrs, std::size_t number) {
  return leaf_at(operands(attrs), number);
}
LoopLeaf body_input_at(const LoopAttrs& attrs, std::size_t number) {
  return leaf_at(inputs_of_body(attrs), number);
}
LoopLeaf body_output_at(const LoopAttrs& attrs, std::size_t number) {
  return leaf_at(outputs_of_body(attrs), number);
}
LoopLeaf result_at(const LoopAttrs& attrs, std::size_t number) {
  return leaf_at(results(attrs), number);
}

std::size_t operand_count(const LoopAttrs& attrs) { return sum_of(operands(attrs)); }
std::size_t result_count(const LoopAttrs& attrs) { return sum_of(results(attrs)); }

FinishedFill fill_of(const LoopAttrs& attrs, LoopLeaf body_input) {
  const std::size_t i = body_input.index;
  switch (body_input.kind) {
    case LeafKind::carry:
      return attrs.carries[i].fill;
    case LeafKind::slice:
      return attrs.slices[i].fill;
    case LeafKind::capture:
      return attrs.captures[static_cast<std::size_t>(attrs.body_captures[i])].fill;
    default:
      return FinishedFill::running;
  }
}

bool adds_finished(const LoopAttrs& attrs, LoopLeaf body_output) {
  const std::size_t i = body_output.index;
  switch (body_output.kind) {
    case LeafKind::carry:
      return attrs.carries[i].adds_finished;
    case LeafKind::stack:
      return attrs.stacks[i].adds_finished;
    default:
      return attrs.sums[i].adds_finished;
  }
}

}  // namespace reel
