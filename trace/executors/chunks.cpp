#include "reel/trace/executors/chunks.h"

#include <unistd.h>

#include <bit>

namespace reel {
namespace {

/// Fewer are not worth a walk through what goes before and after the loop; more are of no use, and
/// keep waiting whoever reads what the loop stacks.
constexpr std::int64_t kFewest = 16, kMost = 64;
/// Where matrices do not stay in the second cache: the bytes of a chunk's steps over theirs.
constexpr std::int64_t kOverMatrices = 12, kMostOfLarge = 128;

/// Beside so many chunks a shorter one does not count.
constexpr std::int64_t kFewChunks = 8;

std::int64_t second_cache() {
#ifdef _SC_LEVEL2_CACHE_SIZE
  static const std::int64_t bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
#else
  static const std::int64_t bytes = 0;
#endif
  return bytes > 0 ? bytes : 1024 * 1024;
}

std::int64_t bytes_of(const TensorType& type) {
  return type.is_known() && !type.is_list() ? type.bytes() : 0;
}

/// By what a chunk does for all its steps, beside the loop over them.
bool is_read_outside(const Graph& body, ValueId v) {
  return std::any_of(body.records.begin(), body.records.end(), [&](const OpRecord& record) {
    const auto in = body.inputs_of(record);
    return record.op != &loop_op && std::find(in.begin(), in.end(), v) != in.end();
  });
}

Dim dim_of(const Dim& time, std::int64_t steps) {
  return time.is_named() ? Dim(time.name(), steps) : Dim(steps);
}

}  // namespace

std::int64_t steps_of_chunk(std::int64_t step, std::int64_t matrices) {
  step = std::max<std::int64_t>(step, 1);
  const std::int64_t steps = std::clamp(2 * second_cache() / step, kFewest, kMost);
  if (matrices <= second_cache()) return steps;
  return std::max(steps, std::min(kOverMatrices * matrices / step, kMostOfLarge));
}

Chunks chunks_of(const LoopAttrs& attrs, std::span<const TensorType> inputs) {
  const Graph& body = *attrs.body.graph;
  const Dim& time = inputs[attrs.first_slice()].dims()[0];
  Chunks chunks;
  chunks.steps = time.size();
  chunks.size = attrs.chunk_steps;
  if (!chunks.size) {
    DimEnv env = DimEnv::renaming(body_env(attrs, inputs));
    std::int64_t step = 0, matrices = 0;
    for (std::size_t i = attrs.first_slice(); i < attrs.first_capture(); ++i)
      step += bytes_of(slice_type(inputs[i]));
    for (std::size_t k = attrs.first_stack(); k < attrs.first_sum(); ++k)
      if (!attrs.is_raw(k - attrs.first_stack()))  // that is what is saved
        step += bytes_of(env.resolve(one_step(attrs, body.types[body.outputs[k]])));
    for (std::size_t k = attrs.first_sum(); k < attrs.trips_output(); ++k)
      matrices += bytes_of(env.resolve(body.types[body.outputs[k]]));
    for (std::size_t i = 0; attrs.in_chunks && i < attrs.body_captures.size(); ++i)
      if (is_read_outside(body, body.inputs[body.formal_count + i]))
        matrices += bytes_of(inputs[attrs.first_capture() + attrs.body_captures[i]]);
    // Loops that stand beside each other wait for whole chunks: large ones would keep them waiting,
    // and chunks of different sizes do as well.
    const std::int64_t wanted = steps_of_chunk(step, attrs.is_handed_on ? 0 : matrices),
                       count = std::max<std::int64_t>((chunks.steps + wanted / 2) / wanted, 1);
    if (count <= kFewChunks)
      chunks.size = (chunks.steps + count - 1) / count;  // so that the last is no small rest
    else  // so that what lies between checkpoints, mostly a power of two, is whole chunks
      chunks.size = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(wanted)));
  }
  chunks.size = std::clamp<std::int64_t>(chunks.size, 1, std::max<std::int64_t>(chunks.steps, 1));
  chunks.dim = dim_of(time, chunks.size);
  chunks.rest_dim = dim_of(time, chunks.steps % chunks.size);
  return chunks;
}

}  // namespace reel
