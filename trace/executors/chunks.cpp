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
/// More than kMost steps are of use where each has few rows; where they have not, a chunk of these
/// takes much memory, under whatever policy.
constexpr std::int64_t kMostBytes = std::int64_t{16} << 20;

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

/// The body of a step has loops: of a loop in chunks, that of the loop over a chunk's steps.
bool steps_have_loops(const LoopAttrs& attrs) {
  const Graph& body = *attrs.body.graph;
  if (!attrs.in_chunks) return has_loops(body);
  return std::any_of(body.records.begin(), body.records.end(), [](const OpRecord& record) {
    if (record.op != &loop_op) return false;
    const auto& steps = get<LoopAttrs>(record.attrs.get());
    return steps.has_chunk && has_loops(*steps.body.graph);
  });
}

/// By what a chunk does for all its steps, beside the loop over them.
bool is_read_outside(const Graph& body, ValueId v) {
  return std::any_of(body.records.begin(), body.records.end(), [&](const OpRecord& record) {
    const auto in = body.inputs_of(record);
    return record.op != &loop_op && std::find(in.begin(), in.end(), v) != in.end();
  });
}

/// Of a ragged dim of so many steps.
Ref<DimNode> ragged_node(const Dim& time, std::int64_t steps, Ref<TensorBlock> lengths) {
  Ref<DimNode> node(new DimNode);
  node->name = time.name();
  node->kind = DimKind::ragged;
  node->size = steps;
  node->lengths = std::move(lengths);
  node->length_dims = time.length_dims();
  return node;
}

/// What of the lengths lies in the node's steps, if `first` is the first of them.
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
  const std::int64_t steps =
      std::clamp(2 * second_cache() / step, has_loops ? std::int64_t{1} : kFewest, kMost);
  if (matrices <= second_cache()) return steps;
  const std::int64_t most = std::clamp(kMostBytes / step, kMost, kMostOfLarge);
  return std::max(steps, std::min(kOverMatrices * matrices / step, most));
}

std::vector<TensorType> step_types(const LoopAttrs& attrs, std::span<const TensorType> inputs) {
  const Graph& body = *attrs.body.graph;
  DimEnv env = DimEnv::renaming(body_env(attrs, inputs));
  std::vector<TensorType> types;
  for (std::size_t i = attrs.first_slice(); i < attrs.first_capture(); ++i)
    types.push_back(slice_type(inputs[i]));
  for (std::size_t k = attrs.first_stack(); k < attrs.first_sum(); ++k)
    if (!attrs.is_raw(k - attrs.first_stack()))  // that is what is saved
      types.push_back(env.resolve(one_step(attrs, body.types[body.outputs[k]])));
  return types;
}

Chunks chunks_of(const LoopAttrs& attrs, std::span<const TensorType> inputs) {
  const Graph& body = *attrs.body.graph;
  const Dim& time = inputs[attrs.first_slice() + *first_dense_slice(attrs, inputs)].dims()[0];
  Chunks chunks;
  chunks.time = time;
  chunks.steps = time.size();
  chunks.size = attrs.chunk_steps;
  if (!chunks.size) {
    DimEnv env = DimEnv::renaming(body_env(attrs, inputs));
    std::int64_t step = 0, matrices = 0;
    for (const TensorType& type :
         attrs.whole_step.empty() ? step_types(attrs, inputs) : attrs.whole_step)
      step += bytes_of(type);
    for (std::size_t k = attrs.first_sum(); k < attrs.trips_output(); ++k)
      matrices += bytes_of(env.resolve(body.types[body.outputs[k]]));
    // What a gradient reads besides depends on what a rule has computed again.
    const bool counts_captures = attrs.in_chunks && !attrs.counts_down;
    for (std::size_t i = 0; counts_captures && i < attrs.body_captures.size(); ++i)
      if (is_read_outside(body, body.inputs[body.formal_count + i]))
        matrices += bytes_of(inputs[attrs.first_capture() + attrs.body_captures[i]]);
    // Loops that stand beside each other wait for whole chunks: large ones would keep them waiting,
    // and chunks of different sizes do as well.
    const std::int64_t wanted = steps_of_chunk(step, attrs.is_handed_on ? 0 : matrices,
                                               steps_have_loops(attrs)),
                       count = std::max<std::int64_t>((chunks.steps + wanted / 2) / wanted, 1);
    if (count <= kFewChunks)
      chunks.size = (chunks.steps + count - 1) / count;  // so that the last is no small rest
    else  // so that what lies between checkpoints, mostly a power of two, is whole chunks
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
