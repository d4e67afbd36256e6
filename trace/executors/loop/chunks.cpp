#include "reel/trace/executors/loop/chunks.h"

#include <unistd.h>

#include <bit>

#include "reel/core/ops/control/effects.h"

namespace reel {
namespace {

/// Smaller chunks do not pay for a pass over the ops before and after the inner loop. Larger ones
/// bring no gain, and delay loops that read the stacks.
constexpr std::int64_t kMinChunkSteps = 16, kMaxChunkSteps = 64;
/// If matrices do not stay in the second-level cache: bytes of a chunk's time steps over bytes of
/// matrices.
constexpr std::int64_t kOverMatrices = 12, kMaxLargeChunkSteps = 128;
/// More than kMaxChunkSteps time steps help if each has few batch rows. With many rows, a chunk of
/// them would take much memory, under any policy.
constexpr std::int64_t kMaxChunkBytes = std::int64_t{16} << 20;

/// With more chunks than this, a shorter last one costs little.
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

/// Returns true if a time step of the loop contains loops. In a chunked loop, this is about the
/// body of the inner loop.
bool steps_have_loops(const LoopAttrs& attrs) {
  const Graph& body = *attrs.body.graph;
  if (!attrs.chunking.over_chunks) return has_loops(body);
  return std::any_of(body.records.begin(), body.records.end(), [](const OpRecord& record) {
    if (record.op != &loop_op) return false;
    const auto& steps = get<LoopAttrs>(record.attrs.get());
    return steps.chunking.within_chunk && has_loops(*steps.body.graph);
  });
}

/// Returns true if an op of a chunk beside the inner loop reads the value.
bool is_read_outside(const Graph& body, ValueId v) {
  return std::any_of(body.records.begin(), body.records.end(), [&](const OpRecord& record) {
    const auto in = body.inputs_of(record);
    return record.op != &loop_op && std::find(in.begin(), in.end(), v) != in.end();
  });
}

/// Returns the node of a ragged dim with `steps` time steps.
Ref<DimNode> ragged_node(const Dim& time, std::int64_t steps, Ref<TensorBlock> lengths) {
  Ref<DimNode> node(new DimNode);
  node->name = time.name();
  node->kind = DimKind::ragged;
  node->size = steps;
  node->lengths = std::move(lengths);
  node->length_dims = time.length_dims();
  return node;
}

/// Writes the part of the lengths that lies in the node's time steps, from `first` on.
void write_part(DimNode& node, const Dim& time, std::int64_t first) {
  const Tensor lengths(time.node()->lengths), part(node.lengths);
  const std::int32_t* from = lengths.data<std::int32_t>();
  std::int32_t* to = part.data<std::int32_t>();
  node.is_full = true;
  for (std::int64_t i = 0; i < lengths.type().numel(); ++i) {
    to[i] = static_cast<std::int32_t>(std::clamp<std::int64_t>(from[i] - first, 0, node.size));
    node.is_full = node.is_full && to[i] == node.size;
  }
}

}  // namespace

std::int64_t steps_of_chunk(std::int64_t step, std::int64_t matrices, bool has_loops) {
  step = std::max<std::int64_t>(step, 1);
  const std::int64_t steps = std::clamp(
      2 * second_cache() / step, has_loops ? std::int64_t{1} : kMinChunkSteps, kMaxChunkSteps);
  if (matrices <= second_cache()) return steps;
  const std::int64_t most = std::clamp(kMaxChunkBytes / step, kMaxChunkSteps, kMaxLargeChunkSteps);
  return std::max(steps, std::min(kOverMatrices * matrices / step, most));
}

std::vector<TensorType> step_types(const LoopAttrs& attrs, std::span<const TensorType> inputs) {
  const Graph& body = *attrs.body.graph;
  DimEnv env = DimEnv::renaming(body_env(attrs, inputs));
  std::vector<TensorType> types;
  for (const TensorType& slices : operands_of(attrs, inputs).slices)
    types.push_back(slice_type(slices));
  const auto terms = body_outputs(attrs).stacks;
  for (std::size_t j = 0; j < terms.size(); ++j)
    if (!attrs.stacks[j].is_raw())  // residuals do not count
      types.push_back(env.resolve(remove_chunk_dim(attrs, body.types[terms[j]])));
  return types;
}

Chunks chunks_of(const LoopAttrs& attrs, std::span<const TensorType> inputs) {
  const Graph& body = *attrs.body.graph;
  const auto operands = operands_of(attrs, inputs);
  const Dim& time = operands.slices[*first_dense_slice(attrs, inputs)].dims()[0];
  Chunks chunks;
  chunks.time = time;
  chunks.steps = time.size();
  chunks.size = attrs.chunking.steps;
  if (!chunks.size) {
    DimEnv env = DimEnv::renaming(body_env(attrs, inputs));
    std::int64_t step = 0, matrices = 0;
    for (const TensorType& type :
         attrs.chunking.cost_types.empty() ? step_types(attrs, inputs) : attrs.chunking.cost_types)
      step += bytes_of(type);
    for (const ValueId term : body_outputs(attrs).sums)
      matrices += bytes_of(env.resolve(body.types[term]));
    // Captures of a gradient do not count: they depend on which values a rule recomputes.
    const bool counts_captures = attrs.chunking.over_chunks && !attrs.is_gradient_loop;
    const auto captures = body_inputs(attrs).captures;
    for (std::size_t i = 0; counts_captures && i < captures.size(); ++i)
      if (is_read_outside(body, captures[i]))
        matrices += bytes_of(operands.captures[attrs.body_captures[i]]);
    // Pipelined loops wait for whole chunks: large chunks, or chunks of different sizes, would
    // delay them.
    const std::int64_t wanted = steps_of_chunk(step, attrs.chunking.is_pipelined ? 0 : matrices,
                                               steps_have_loops(attrs)),
                       count = std::max<std::int64_t>((chunks.steps + wanted / 2) / wanted, 1);
    if (count <= kFewChunks)
      chunks.size = (chunks.steps + count - 1) / count;  // avoids a small last chunk
    else  // so that checkpoint gaps, mostly powers of two, are whole chunks
      chunks.size = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(wanted)));
  }
  chunks.size = std::clamp<std::int64_t>(chunks.size, 1, std::max<std::int64_t>(chunks.steps, 1));
  const std::int64_t rest = chunks.steps % chunks.size;
  if (!time.is_ragged() || !time.node()->lengths) {
    chunks.dim = time.is_named() ? Dim(time.name(), chunks.size) : Dim(chunks.size);
    chunks.rest_dim = time.is_named() ? Dim(time.name(), rest) : Dim(rest);
    return chunks;
  }
  chunks.lengths = Tensor(allocate_block(TensorType(i32, time.length_dims())));
  const Ref<TensorBlock> shown =
      allocate_placed(chunks.lengths.type(), chunks.lengths.data<void>());
  chunks.node = ragged_node(time, chunks.size, shown);
  chunks.rest_node = ragged_node(time, rest, shown);
  chunks.dim = Dim::of_node(chunks.node);
  chunks.rest_dim = Dim::of_node(chunks.rest_node);
  return chunks;
}

void Chunks::show_lengths(std::int64_t chunk) const {
  if (node) write_part(is_rest(chunk) ? *rest_node : *node, time, first(chunk));
}

Dim Chunks::made_dim(std::int64_t chunk) const {
  return part_of_dim(time, first(chunk), steps_of(chunk));
}

Dim part_of_dim(const Dim& time, std::int64_t first, std::int64_t count) {
  if (!time.is_named()) return Dim(count);
  if (!time.is_ragged()) return Dim(time.name(), count);
  const Ref<DimNode> node =
      ragged_node(time, count, allocate_block(TensorType(i32, time.length_dims())));
  write_part(*node, time, first);
  return Dim::of_node(node);
}

Dim part_symbol(const Dim& time) {
  Ref<DimNode> node(new DimNode);
  node->name = time.name();
  node->kind = !time.is_named()   ? DimKind::plain
               : time.is_ragged() ? DimKind::ragged
                                  : DimKind::dynamic;
  node->is_symbol = true;
  node->length_dims = time.length_dims();
  return Dim::of_node(node);
}

}  // namespace reel
