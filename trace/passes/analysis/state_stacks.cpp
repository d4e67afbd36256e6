#include "reel/trace/passes/analysis/state_stacks.h"

#include <algorithm>
#include <cstdint>
#include <optional>

namespace reel {
namespace {

bool is_tensor_in_memory(const LoopStack& stack) {
  return !stack.is_list && !stack.is_checkpoint() && stack.residence == Residence::memory;
}

/// Collects pairs of stacks, each stack in one pair at most.
class Pairs {
 public:
  explicit Pairs(const LoopAttrs& attrs) : attrs_(attrs), is_taken_(attrs.stacks.size()) {}

  /// Adds the pair of a carry if both stacks exist. is_before(j), is_behind(j): true if stack j
  /// holds the carry before or behind iterations.
  template <class IsBefore, class IsBehind>
  void add(std::size_t carry, const IsBefore& is_before, const IsBehind& is_behind) {
    const auto before = find(is_before);
    if (!before) return;
    const auto behind = find([&](std::size_t j) {
      return j != *before && attrs_.stacks[j].role == StackRole::output && is_behind(j);
    });
    if (!behind) return;
    is_taken_[*before] = is_taken_[*behind] = 1;
    result_.push_back({carry, *before, *behind});
  }
  std::vector<StateStacks> take() { return std::move(result_); }

 private:
  template <class Is>
  std::optional<std::size_t> find(const Is& is) const {
    for (std::size_t j = 0; j < attrs_.stacks.size(); ++j)
      if (!is_taken_[j] && is_tensor_in_memory(attrs_.stacks[j]) && is(j)) return j;
    return std::nullopt;
  }

  const LoopAttrs& attrs_;
  std::vector<std::uint8_t> is_taken_;
  std::vector<StateStacks> result_;
};

/// Adds the pairs of loops inside the body that run a chunk: their carries are this loop's carries,
/// and their stacks are the terms of its stacks.
void add_pairs_of_chunks(const LoopAttrs& attrs, Pairs& pairs) {
  const Graph& body = *attrs.body.graph;
  const auto formals = body_inputs(attrs).carries;
  const auto made = body_outputs(attrs);
  for (const OpRecord& record : body.records) {
    if (record.op != &loop_op) continue;
    const auto& inner = get<LoopAttrs>(record.attrs.get());
    if (!inner.chunking.within_chunk || inner.trips.is_reverse != attrs.trips.is_reverse) continue;
    const auto in = operands_of(inner, body.inputs_of(record));
    const auto out = results_of(inner, body.outputs_of(record));
    for (const StateStacks& pair : state_stacks(inner))
      for (std::size_t i = 0; i < attrs.carries.size(); ++i)
        if (in.carries[pair.carry] == formals[i] && out.carries[pair.carry] == made.carries[i])
          pairs.add(
              i, [&](std::size_t j) { return made.stacks[j] == out.stacks[pair.before]; },
              [&](std::size_t j) { return made.stacks[j] == out.stacks[pair.behind]; });
  }
}

}  // namespace

std::vector<StateStacks> state_stacks(const LoopAttrs& attrs) {
  if (!attrs.trips.is_full || attrs.cond || attrs.has_entries()) return {};
  Pairs pairs(attrs);
  if (attrs.chunking.over_chunks) {
    add_pairs_of_chunks(attrs, pairs);
    return pairs.take();
  }
  const auto formals = body_inputs(attrs).carries;
  const auto made = body_outputs(attrs);
  for (std::size_t i = 0; i < attrs.carries.size(); ++i)
    pairs.add(
        i, [&](std::size_t j) { return made.stacks[j] == formals[i]; },
        [&](std::size_t j) { return made.stacks[j] == made.carries[i]; });
  return pairs.take();
}

}  // namespace reel
