// The measure that shrink() reduces.
#include <algorithm>
#include <cstdlib>

#include "reel/tests/fuzz/shrinking/shrinker.h"
#include "reel/tests/fuzz/shrinking/simplify.h"

namespace reel::fuzz {
namespace {

/// Returns the number of instructions in the blocks of an instruction.
int count_inner(const Instruction& in) {
  int count = 0;
  for (const Block& block : in.blocks)
    for_each_block(block, [&](const Block& each) { count += static_cast<int>(each.body.size()); });
  return count;
}

}  // namespace

std::int64_t size_of(const Program& program) {
  std::int64_t size = 0;
  for_each_block(program.main, [&](const Block& block) {
    size += 100 * static_cast<int>(block.params.size() + block.results.size());
    for (const Instruction& in : block.body) {
      size += 1000 + 10 * in.inputs.size() + (in.constant != 1 && in.constant != 0.5);
      // A constant is smaller than any computed value.
      size -= in.inputs.empty() ? 600 : 0;
      // An instruction outside of blocks is smaller than an instruction in them.
      size += in.blocks.empty() ? 0 : 500 + count_inner(in);
      for (const std::int64_t number : in.numbers) size += std::abs(number);
      size += 20 * (in.loop.reverse + in.loop.has_bound + in.loop.has_cond) +
              20 * !in.loop.cond_before_body + 20 * (in.loop.truncate > 0) +
              20 * (in.policy.keeps_checkpoints() + (in.policy.letters >= 0) + in.policy.swaps);
    }
  });
  const std::vector<bool> used = dims_in_use(program);
  for (std::size_t i = 0; i < used.size(); ++i) {
    const DimInfo& dim = program.dims[i];
    if (!used[i]) continue;
    size += 10 + std::max(dim.size, 0);
    for (const int length : dim.lengths) size += length + 1;
    for (const int length : dim.elsewhere) size += length;
  }
  for (const InputInfo& input : program.inputs)
    size += input.is_captured + (input.low == input.high ? std::abs(input.low) : 50);
  return size;
}

}  // namespace reel::fuzz
