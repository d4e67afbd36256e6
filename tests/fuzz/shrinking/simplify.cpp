#include "reel/tests/fuzz/shrinking/simplify.h"

#include <algorithm>
#include <functional>

#include "reel/tests/fuzz/rules/rule.h"

namespace reel::fuzz {
namespace {

void erase_at(std::vector<int>& list, int position) { list.erase(list.begin() + position); }

int ys_of(const Instruction& loop) {
  return static_cast<int>(loop.outputs.size()) - loop.loop.states;
}

bool is_loop(const Instruction& instruction) {
  return instruction.control == Control::while_loop || instruction.control == Control::scan;
}

/// Removes a leaf that has no readers from a loop. Leaves at least one output, one tensor of xs,
/// and one state of a while_loop.
bool remove_leaves(Instruction& loop, const std::vector<int>& reads) {
  Block& body = loop.blocks[0];
  const int ys = ys_of(loop), xs = loop.loop.xs;
  for (int i = 0; i < ys; ++i) {
    if (reads[loop.outputs[i]] || loop.outputs.size() < 2) continue;
    erase_at(loop.outputs, i);
    erase_at(body.results, i);
    return true;
  }
  for (int i = 0; i < xs && xs > 1; ++i) {
    if (reads[body.params[i]]) continue;
    erase_at(loop.inputs, i);
    erase_at(body.params, i);
    --loop.loop.xs;
    return true;
  }
  for (int i = 0; i < loop.loop.states && loop.outputs.size() > 1; ++i) {
    const int param = body.params[xs + i];
    const int handed_on = body.results[ys + i] == param;
    const bool by_cond = loop.blocks.size() > 1 && reads[loop.blocks[1].params[i]];
    if (reads[loop.outputs[ys + i]] || reads[param] > handed_on || by_cond) continue;
    if (loop.control == Control::while_loop && loop.loop.states == 1) continue;
    remove_state(loop, i);
    return true;
  }
  return false;
}

bool remove_arguments(Instruction& call, const std::vector<int>& reads) {
  std::vector<int>& params = call.blocks[0].params;
  for (std::size_t i = 0; i < params.size(); ++i) {
    if (reads[params[i]]) continue;
    erase_at(params, static_cast<int>(i));
    erase_at(call.inputs, static_cast<int>(i));
    return true;
  }
  return false;
}

bool remove_results_of_blocks(Instruction& in, const std::vector<int>& reads) {
  for (std::size_t i = 0; i < in.outputs.size() && in.outputs.size() > 1; ++i) {
    if (reads[in.outputs[i]]) continue;
    erase_at(in.outputs, static_cast<int>(i));
    for (Block& branch : in.blocks) erase_at(branch.results, static_cast<int>(i));
    return true;
  }
  return false;
}

bool remove_inputs(Program& program, const std::vector<int>& reads) {
  std::vector<int>& params = program.main.params;
  for (std::size_t i = 0; i < params.size() && params.size() > 1; ++i) {
    if (reads[params[i]]) continue;
    Program without = program;
    erase_at(without.main.params, static_cast<int>(i));
    without.inputs.erase(without.inputs.begin() + static_cast<std::ptrdiff_t>(i));
    const std::vector<bool> used = dims_in_use(without);
    const auto is_brought = [&](int dim) {
      for (std::size_t k = 0; k < without.inputs.size(); ++k)
        if (!without.inputs[k].is_captured &&
            contains(without.values[without.main.params[k]].dims, dim))
          return true;
      return false;
    };
    bool is_needed = false;
    for (std::size_t dim = 0; dim < used.size(); ++dim) {
      const DimInfo& info = program.dims[dim];
      is_needed = is_needed ||
                  (used[dim] && info.comes_with_arguments() && !is_brought(static_cast<int>(dim)));
    }
    if (is_needed) continue;
    program = without;
    return true;
  }
  return false;
}

bool remove_something(Program& program) {
  const std::vector<int> reads = count_reads(program);
  bool removed = false;
  for_each_block(program.main, [&](Block& block) {
    const auto is_unused = [&](const Instruction& in) {
      return std::all_of(in.outputs.begin(), in.outputs.end(), [&](int v) { return !reads[v]; });
    };
    removed = std::erase_if(block.body, is_unused) > 0 || removed;
    for (Instruction& in : block.body) {
      if (removed) break;
      if (is_loop(in)) removed = remove_leaves(in, reads);
      if (in.control == Control::cond || in.control == Control::call)
        removed = remove_results_of_blocks(in, reads);
      if (in.control == Control::call) removed = removed || remove_arguments(in, reads);
    }
  });
  return removed || remove_inputs(program, reads);
}

}  // namespace

std::vector<int> count_reads(const Program& program) {
  std::vector<int> reads(program.values.size());
  for_each_block(program.main, [&](const Block& block) {
    for (const Instruction& in : block.body)
      for (const int value : in.inputs) ++reads[value];
    for (const int value : block.results) ++reads[value];
  });
  return reads;
}

bool is_term(const Instruction& in) { return in.rule->name() == "sum(0.5 * a + sin(a))"; }

bool feeds_terms_alone(const Program& program, int value) {
  bool result = true;
  for_each_block(program.main, [&](const Block& block) {
    for (const Instruction& in : block.body)
      if (contains(in.inputs, value)) result = result && is_term(in);
    result = result && !contains(block.results, value);
  });
  return result;
}

bool branches_have_one_order(const Program& program) {
  if (!program.is_named) return true;
  bool result = true;
  for_each_block(program.main, [&](const Block& block) {
    for (const Instruction& in : block.body) {
      if (in.control != Control::cond) continue;
      for (const Block& branch : in.blocks)
        for (std::size_t i = 0; i < branch.results.size(); ++i) {
          const ValueType &type = program.values[branch.results[i]],
                          &first = program.values[in.blocks[0].results[i]];
          result = result && (type.element != Element::real || type.dims == first.dims);
        }
    }
  });
  return result;
}

std::vector<bool> dims_in_use(const Program& program) {
  std::vector<bool> used(program.dims.size());
  const std::function<void(const std::vector<int>&)> use = [&](const std::vector<int>& dims) {
    for (const int dim : dims) {
      if (dim < 0 || used[dim]) continue;
      used[dim] = true;
      use(program.dims[dim].over);
      use({program.dims[dim].whole});
    }
  };
  for_each_block(program.main, [&](const Block& block) {
    for (const int value : block.params) use(program.values[value].dims);
    for (const Instruction& in : block.body) {
      for (const int value : in.outputs) use(program.values[value].dims);
      use(in.dims);
      use({in.loop.spatial});
      use(in.loop.cond_dims);
    }
  });
  return used;
}

void replace_reads(Program& program, int value, int by) {
  for_each_block(program.main, [&](Block& block) {
    for (Instruction& in : block.body) std::replace(in.inputs.begin(), in.inputs.end(), value, by);
    std::replace(block.results.begin(), block.results.end(), value, by);
  });
}

void remove_unused(Program& program) {
  while (remove_something(program)) {
  }
}

bool remove_unused_input(Program& program) { return remove_inputs(program, count_reads(program)); }

void remove_state(Instruction& loop, int k) {
  Block& body = loop.blocks[0];
  const int ys = ys_of(loop), xs = loop.loop.xs;
  erase_at(loop.inputs, xs + k);
  erase_at(loop.outputs, ys + k);
  erase_at(body.params, xs + k);
  erase_at(body.results, ys + k);
  if (loop.blocks.size() > 1) erase_at(loop.blocks[1].params, k);
  --loop.loop.states;
}

}  // namespace reel::fuzz
