#include "reel/trace/executors/chunks.h"

#include <unistd.h>

namespace reel {
namespace {

constexpr std::int64_t kFewest = 32, kMost = 256;

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

Dim dim_of(const Dim& time, std::int64_t steps) {
  return time.is_named() ? Dim(time.name(), steps) : Dim(steps);
}

}  // namespace

std::int64_t steps_of_chunk(std::int64_t bytes_per_step) {
  return std::clamp(second_cache() / std::max<std::int64_t>(bytes_per_step, 1), kFewest, kMost);
}

Chunks chunks_of(const LoopAttrs& attrs, std::span<const TensorType> inputs) {
  const Graph& body = *attrs.body.graph;
  const Dim& time = inputs[attrs.first_slice()].dims()[0];
  Chunks chunks;
  chunks.steps = time.size();
  chunks.size = attrs.chunk_steps;
  if (!chunks.size) {
    DimEnv env = DimEnv::renaming(body_env(attrs, inputs));
    std::int64_t bytes = 0;
    for (int i = 0; i < attrs.slices; ++i)
      bytes += bytes_of(slice_type(inputs[attrs.first_slice() + i]));
    for (int j = 0; j < attrs.stacks; ++j)
      bytes +=
          bytes_of(env.resolve(one_step(attrs, body.types[body.outputs[attrs.first_stack() + j]])));
    chunks.size = steps_of_chunk(bytes);
  }
  chunks.size = std::clamp<std::int64_t>(chunks.size, 1, std::max<std::int64_t>(chunks.steps, 1));
  chunks.dim = dim_of(time, chunks.size);
  chunks.rest_dim = dim_of(time, chunks.steps % chunks.size);
  return chunks;
}

}  // namespace reel
