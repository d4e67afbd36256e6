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

template <Executor executor, int parallel_iterations = 0>
Runner traced(const Function& f, const Passes& passes) {
  const auto jitted = std::make_shared<Jitted<Function>>(
      jit(f, {.executor = executor, .passes = passes, .parallel_iterations = parallel_iterations}));
  return {[jitted](const Tensors& x) { return (*jitted)(to_be_used_up(x)); },
          [jitted] { return jitted->trace_count(); }, [jitted] { return jitted->explain(); }};
}

/// Runs f by tokens, on threads that are called for every op.
Runner on_many_threads(const Function& f, const Passes& passes) {
  Runner runner = traced<Executor::dataflow, 10>(f, passes);
  runner.call = [call = runner.call](const Tensors& x) {
    const OnManyThreads threads;
    return call(x);
  };
  return runner;
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
  constexpr auto kDataflow = Executor::dataflow;
  constexpr Runner (*kOverlapped[])(const Function&, const Passes&) = {
      traced<kDataflow, 1>, traced<kDataflow, 2>, traced<kDataflow, 10>, traced<kDataflow, 32>,
      on_many_threads};
  return {{"traced", true, traced<Executor::interpreter>, {}},
          {"by tokens", true, kOverlapped[program.seed % 5], {}},
          {"planned", false, traced<Executor::plan>, {}},
          {"chunked",
           false,
           traced<Executor::plan>,
           {.chunk_steps = 2, .block_rows = 1, .pack_small = true}},
          {"partly planned", false, traced<Executor::plan>, some_passes(program.seed)}};
}

}  // namespace reel::fuzz
