#include "reel/tests/fuzz/modes.h"

#include <cstring>
#include <memory>

#include "reel/core/types/mode.h"
#include "reel/frontend/jit.h"
#include "reel/tests/many_threads.h"

namespace reel::fuzz {
namespace {

/// Returns copies with a reference count of one, so that a call may update them in place. Under a
/// tape it returns the tensors themselves, since the tape watches these.
Tensors to_be_used_up(Tensors tensors) {
  if (thread_mode.tape) return tensors;
  for (Tensor& tensor : tensors) {
    const Tensor copy(allocate_block(tensor.type()));
    std::memcpy(copy.data<void>(), tensor.data<void>(),
                static_cast<std::size_t>(tensor.type().bytes()));
    tensor = copy;
  }
  return tensors;
}

using Run = std::function<Runner(const Function&, const Passes&)>;

/// Runs f as a graph.
Run traced(JitOptions options) {
  return [options = std::move(options)](const Function& f, const Passes& passes) {
    JitOptions all = options;
    all.passes = passes;
    const auto jitted = std::make_shared<Jitted<Function>>(jit(f, all));
    return Runner{[jitted](const Tensors& x) { return (*jitted)(to_be_used_up(x)); },
                  [jitted] { return jitted->trace_count(); },
                  [jitted] { return jitted->explain(); }};
  };
}

/// Runs f by tokens, on threads that are called for every op.
Run on_many_threads() {
  return [run = traced({.executor = Executor::dataflow, .parallel_iterations = 10})](
             const Function& f, const Passes& passes) {
    Runner runner = run(f, passes);
    runner.call = [call = runner.call](const Tensors& x) {
      const OnManyThreads threads;
      return call(x);
    };
    return runner;
  };
}

Run by_tokens(std::uint64_t seed) {
  constexpr int kInFlight[] = {1, 2, 10, 32};
  if (seed % 5 == 4) return on_many_threads();
  return traced({.executor = Executor::dataflow, .parallel_iterations = kInFlight[seed % 5]});
}

/// Returns the dims that come with arguments.
Dims dynamic_dims(const Program& program) {
  std::vector<int> found;
  for (std::size_t i = 0; i < program.inputs.size(); ++i) {
    if (program.inputs[i].is_captured) continue;
    for (const int dim : program.values[program.main.params[i]].dims)
      if (program.dims[dim].kind == DimInfo::Kind::dynamic &&
          program.dims[dim].comes_with_arguments() && !contains(found, dim))
        found.push_back(dim);
  }
  Dims dims;
  for (const int dim : found) dims.emplace_back(program.dims[dim].name);
  return dims;
}

/// Chooses passes by bits of the seed. About half of all programs leave out a given pass; half make
/// row blocks of one or two rows; half pack small matrices too.
Passes some_passes(std::uint64_t seed) {
  // Consecutive seeds have equal high bits without a hash (Knuth's multiplicative one).
  std::uint64_t bits = seed * 0x9E3779B97F4A7C15u >> 32;
  const auto next = [&] {
    const bool result = bits & 1;
    bits >>= 1;
    return result;
  };
  return {.simplify = next(),
          .hoist_invariants = next(),
          .multiply_tables = next(),
          .batch_over_time = next() || next(),
          .split_loops = next(),
          .chunk_loops = next() || next(),
          .adjoin_loops = next(),
          .pack_weights = next(),
          .fuse_pointwise = next(),
          .cut_rows = next(),
          .shrink_batch = next(),
          .reuse_memory = next(),
          .flush_denormals = next(),
          .chunk_steps = next() ? 3 : 0,
          .block_rows = next() ? 1 + next() : 0,
          .multiply_any = next(),
          .pack_small = next()};
}

}  // namespace

std::vector<Mode> all_modes(const Program& program) {
  const Run plan = traced({.executor = Executor::plan});
  std::vector<Mode> modes{
      {"traced", true, traced({.executor = Executor::interpreter}), {}},
      {"by tokens", true, by_tokens(program.seed), {}},
      {"planned", false, plan, {}},
      {"chunked", false, plan, {.chunk_steps = 2, .block_rows = 1, .pack_small = true}},
      {"partly planned", false, plan, some_passes(program.seed)}};
  // One trace for all sizes of static dims.
  if (Dims dims = dynamic_dims(program); !dims.empty()) {
    const bool is_planned = program.seed % 2;
    modes.push_back({.name = "of any size",
                     .is_exact = !is_planned,
                     .run = traced({.executor = is_planned ? Executor::plan : Executor::interpreter,
                                    .dynamic = std::move(dims)}),
                     .passes = {},
                     .takes_static = true});
  }
  return modes;
}

}  // namespace reel::fuzz
