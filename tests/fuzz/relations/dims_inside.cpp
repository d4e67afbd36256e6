// Relation: dims that are made in a body or a trace, or taken from an argument there, give the
// results of dims that are made outside of all.
// Domain: programs with named dims of a fixed size. A dim is made in the innermost block that has
// all values and instructions with the dim; there it is another Dim in each run.
// Tolerance: bits in eager mode, rounding in others.
#include "reel/tests/fuzz/compare.h"
#include "reel/tests/fuzz/relations/trial.h"

namespace reel::fuzz {
namespace {

bool has_dim(const Program& program, const std::vector<int>& values, int dim) {
  for (const int value : values)
    if (contains(program.values[value].dims, dim)) return true;
  return false;
}

/// True if the instruction itself has the dim, apart from its blocks.
bool has_dim(const Program& program, const Instruction& in, int dim) {
  for (const SlicedDim& sliced : in.sliced)
    if (sliced.whole == dim) return true;
  for (const SlicedDim& sliced : in.slices)
    if (sliced.whole == dim) return true;
  return contains(in.dims, dim) || (program.is_named && contains(in.axes, dim)) ||
         contains(in.loop.cond_dims, dim) || in.loop.spatial == dim ||
         has_dim(program, in.inputs, dim) || has_dim(program, in.outputs, dim);
}

/// True if the block or any inner block has the dim.
bool has_dim(const Program& program, const Block& block, int dim) {
  bool result = false;
  for_each_block(block, [&](const Block& inner) {
    result = result || has_dim(program, inner.params, dim) || has_dim(program, inner.results, dim);
    for (const Instruction& in : inner.body) result = result || has_dim(program, in, dim);
  });
  return result;
}

/// Makes the dim in the innermost block that has all of it.
void make_inside(Program& program, int dim) {
  Block* block = &program.main;
  while (true) {
    Block* inner = nullptr;
    int places = 0;
    for (Instruction& in : block->body) {
      places += has_dim(program, in, dim);
      for (Block& candidate : in.blocks) {
        if (!has_dim(program, candidate, dim)) continue;
        ++places;
        inner = &candidate;
      }
    }
    const bool comes_in =
        inner && (has_dim(program, inner->params, dim) || has_dim(program, inner->results, dim));
    if (places != 1 || !inner || comes_in || has_dim(program, block->params, dim) ||
        has_dim(program, block->results, dim))
      break;
    block = inner;
  }
  block->makes.push_back(dim);
}

/// True if lengths of a dim run over this one: they are made outside.
bool has_lengths_over(const Program& program, int dim) {
  for (const DimInfo& info : program.dims)
    if (contains(info.over, dim)) return true;
  return false;
}

Outcome check(Trial& trial) {
  const Program& program = trial.program();
  Program inside = program;
  bool changed = false;
  for (std::size_t i = 0; i < program.dims.size(); ++i) {
    const int dim = static_cast<int>(i);
    if (program.dims[i].kind != DimInfo::Kind::fixed) continue;
    bool is_passed = false, is_captured = has_lengths_over(program, dim);
    for (std::size_t k = 0; k < program.inputs.size(); ++k)
      if (contains(program.values[program.main.params[k]].dims, dim))
        (program.inputs[k].is_captured ? is_captured : is_passed) = true;
    if (is_passed)
      inside.dims[i].is_read = true;
    else if (!is_captured)
      make_inside(inside, dim);
    changed = changed || is_passed || !is_captured;
  }
  if (!changed) return Outcome::does_not_apply;
  const Arguments arguments = make_arguments(program, {});
  const Tensors x = passed_arguments(program, arguments);
  const Function f = with_gradient(Trial::function_of(program, arguments)),
                 g = with_gradient(Trial::function_of(inside, arguments));
  const Mode mode = trial.draw_mode();
  const Tensors expected = trial.call("eager", f, x);
  const Reference reference = trial.reference(f, x, program, arguments);
  trial.expect_same("eager", expected, trial.call("eager", g, x), kAnyZero, reference);
  trial.expect_same(mode.name, expected, trial.call(mode.name, mode.run(g, mode.passes).call, x),
                    trial.close(), reference);
  return Outcome::holds;
}

}  // namespace

Relation dims_inside_relation() { return {"dims inside", check, generate}; }

}  // namespace reel::fuzz
