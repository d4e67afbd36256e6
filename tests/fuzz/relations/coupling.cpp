#include "reel/tests/fuzz/relations/coupling.h"

#include <algorithm>

namespace reel::fuzz {
namespace {

bool couples(const Program& program, const Instruction& in, const std::vector<int>& dims) {
  const auto is_one = [&](int dim) { return contains(dims, dim); };
  if (is_one(in.loop.spatial) || std::any_of(in.axes.begin(), in.axes.end(), is_one)) return true;
  for (const int input : in.inputs)
    for (const int dim : program.values[input].dims)
      for (const int output : in.outputs)
        if (is_one(dim) && !contains(program.values[output].dims, dim)) return true;
  return false;
}

}  // namespace

bool couples_entries(const Program& program, const Instruction& in, const std::vector<int>& dims) {
  bool result = false;
  for (const Block& own : in.blocks)
    for_each_block(own, [&](const Block& block) {
      for (const Instruction& inner : block.body) result = result || couples(program, inner, dims);
    });
  return result;
}

}  // namespace reel::fuzz
