#include "reel/core/ops/elementwise/pointwise_kernels.h"

#include <algorithm>

#include "reel/core/ops/elementwise/broadcast.h"
#include "reel/core/runtime/instruction_set.h"

namespace reel {
namespace {

// ---- The instruction set ------------------------------------------------------------------------

constexpr const PointwiseTable* kTables[] = REEL_TABLES(table);

// ---- Walking over broadcast operands ------------------------------------------------------------

/// Strides of operands relative to a contiguous result. Axes are ordered from the outermost to the
/// innermost. Axes of size 1 are dropped, and others are merged if every operand allows it. Strides
/// are in elements, 0 where an operand repeats.
struct Layout {
  int rank = 0;
  int operands;
  std::int64_t size[kMaxBroadcastAxes];
  std::int64_t stride[kMaxOperands][kMaxBroadcastAxes];

  bool is_contiguous(int operand) const {
    std::int64_t expected = 1;
    for (int axis = rank - 1; axis >= 0; expected *= size[axis--])
      if (stride[operand][axis] != expected) return false;
    return true;
  }
};

Layout lay_out(const TypeNode& result, const TypeNode* const* operands, int count) {
  Layout layout;
  layout.operands = count;
  // Built from the innermost axis outwards, then reversed.
  for (int axis = static_cast<int>(result.dims.size()) - 1; axis >= 0; --axis) {
    if (result.sizes[axis] == 1) continue;
    std::int64_t strides[kMaxOperands];
    const int inner = layout.rank - 1;
    bool merges = layout.rank > 0;
    for (int k = 0; k < count; ++k) {
      strides[k] = broadcast_stride(*operands[k], result, axis);
      merges = merges && strides[k] == layout.stride[k][inner] * layout.size[inner];
    }
    if (merges) {
      layout.size[inner] *= result.sizes[axis];
      continue;
    }
    for (int k = 0; k < count; ++k) layout.stride[k][layout.rank] = strides[k];
    layout.size[layout.rank++] = result.sizes[axis];
  }
  std::reverse(layout.size, layout.size + layout.rank);
  for (int k = 0; k < count; ++k) std::reverse(layout.stride[k], layout.stride[k] + layout.rank);
  return layout;
}

const void* advance(const void* data, std::int64_t bytes) {
  return static_cast<const char*>(data) + bytes;
}

/// A place in the result, and the offset of one operand there.
struct Cursor {
  std::int64_t index[kMaxBroadcastAxes];
  std::int64_t offset = 0;

  void start(const Layout& layout) { std::fill_n(index, layout.rank, 0); }

  /// Advances by `by` steps along an axis. Requires that this does not pass its end; at the end,
  /// continues with the next row.
  void step(const Layout& layout, int operand, int axis, std::int64_t by) {
    const std::int64_t* stride = layout.stride[operand];
    offset += by * stride[axis];
    index[axis] += by;
    while (index[axis] == layout.size[axis] && axis > 0) {
      offset -= layout.size[axis] * stride[axis];
      index[axis--] = 0;
      ++index[axis];
      offset += stride[axis];
    }
  }
};

/// Copies the next `count` elements of an operand, in the order of the result.
template <class T>
void gather(const Layout& layout, int operand, const void* data, Cursor& cursor, void* out,
            std::int64_t count) {
  const T* from = static_cast<const T*>(data);
  T* to = static_cast<T*>(out);
  const int inner = layout.rank - 1;
  const std::int64_t stride = layout.stride[operand][inner];
  while (count > 0) {
    const std::int64_t take = std::min(count, layout.size[inner] - cursor.index[inner]);
    const T* source = from + cursor.offset;
    for (std::int64_t i = 0; i < take; ++i) to[i] = source[i * stride];
    cursor.step(layout, operand, inner, take);
    to += take;
    count -= take;
  }
}

/// Handles any layout: copies operands that are not contiguous into the order of the result, kChunk
/// elements at a time.
void run_gathered(const Layout& layout, const void* const* in, const std::int64_t* width, void* out,
                  std::int64_t out_width, std::int64_t count, RowsLoop loop) {
  constexpr std::int64_t kChunk = 256;
  alignas(64) char copies[kMaxOperands][kChunk * sizeof(double)];
  Cursor cursors[kMaxOperands];
  bool contiguous[kMaxOperands];
  for (int k = 0; k < layout.operands; ++k) {
    contiguous[k] = layout.is_contiguous(k);
    cursors[k].start(layout);
  }
  for (std::int64_t done = 0; done < count; done += kChunk) {
    const std::int64_t chunk = std::min(kChunk, count - done);
    const void* operands[kMaxOperands];
    for (int k = 0; k < layout.operands; ++k) {
      operands[k] = contiguous[k] ? advance(in[k], done * width[k]) : copies[k];
      if (contiguous[k]) continue;
      if (width[k] == 8)
        gather<std::uint64_t>(layout, k, in[k], cursors[k], copies[k], chunk);
      else if (width[k] == 4)
        gather<std::uint32_t>(layout, k, in[k], cursors[k], copies[k], chunk);
      else
        gather<std::uint8_t>(layout, k, in[k], cursors[k], copies[k], chunk);
    }
    loop(operands, static_cast<char*>(out) + done * out_width, PointwiseRows{.columns = chunk});
  }
}

/// Passes the two inner axes to each call of the loop and iterates over the others.
void run_in_place(const Layout& layout, const void* const* in, const std::int64_t* width, void* out,
                  std::int64_t out_width, RowsLoop loop) {
  const int inner = layout.rank - 1, outer = layout.rank - 3;
  Cursor cursors[kMaxOperands];
  PointwiseRows rows{.columns = layout.rank ? layout.size[inner] : 1,
                     .rows = layout.rank > 1 ? layout.size[inner - 1] : 1};
  for (int k = 0; k < layout.operands; ++k) {
    rows.repeats[k] = layout.rank > 0 && layout.stride[k][inner] == 0;
    rows.step[k] = layout.rank > 1 ? layout.stride[k][inner - 1] : 0;
    cursors[k].start(layout);
  }
  std::int64_t blocks = 1;
  for (int axis = 0; axis <= outer; ++axis) blocks *= layout.size[axis];
  for (std::int64_t block = 0; block < blocks; ++block) {
    const void* operands[kMaxOperands];
    for (int k = 0; k < layout.operands; ++k) {
      operands[k] = advance(in[k], cursors[k].offset * width[k]);
      if (outer >= 0) cursors[k].step(layout, k, outer, 1);
    }
    loop(operands, out, rows);
    out = static_cast<char*>(out) + rows.rows * rows.columns * out_width;
  }
}

}  // namespace

const PointwiseTable* find_pointwise_table(std::string_view name) {
  for (const PointwiseTable* table : kTables) {
    if (table->name == name) return table;
    if (table->name == instruction_set()) return nullptr;
  }
  return nullptr;
}

const PointwiseTable& choose_pointwise_table() {
  const PointwiseTable* const table = find_pointwise_table(instruction_set());
  chosen_pointwise_table.store(table, std::memory_order_relaxed);
  return *table;
}

void run_broadcast(KernelArgs& args, RowsLoop loop) {
  const int count = static_cast<int>(args.in.size());
  const void* in[kMaxOperands];
  std::int64_t width[kMaxOperands];
  const TypeNode* types[kMaxOperands];
  const TypeNode& result = *args.types[0].node();
  bool is_flat = true;  // every operand is a scalar or has the dims of the result
  PointwiseRows flat{.columns = result.numel};
  for (int k = 0; k < count; ++k) {
    const TensorBlock& block = *args.input(k).block();
    in[k] = block.data;
    types[k] = block.type.node();
    width[k] = static_cast<std::int64_t>(size_of(types[k]->dtype));
    flat.repeats[k] = types[k]->dims.empty() && result.numel != 1;
    is_flat = is_flat && (types[k]->dims.empty() || same_dims(types[k]->dims, result.dims));
  }
  const std::int64_t out_width = static_cast<std::int64_t>(size_of(result.dtype));
  if (is_flat || result.numel == 0) {
    loop(in, args.reuse().block()->data, flat);
    return;
  }
  const Layout layout = lay_out(result, types, count);
  void* out = args.reuse().block()->data;
  constexpr std::int64_t kShort =
      8;  // for shorter rows a call for each costs more than copying the operand
  const int inner = layout.rank - 1;
  bool in_place = layout.rank <= 1 || layout.size[inner] >= kShort;
  for (int k = 0; k < count; ++k)
    in_place = in_place && (layout.rank == 0 || layout.stride[k][inner] <= 1);
  if (in_place)
    run_in_place(layout, in, width, out, out_width, loop);
  else
    run_gathered(layout, in, width, out, out_width, result.numel, loop);
}

void where_kernel(KernelArgs& args) {
  run_broadcast(args, pointwise_table().where[column_of(args.types[0].dtype())]);
}

void cast_kernel(KernelArgs& args) {
  const TensorBlock& x = *args.input(0).block();
  const DType from = x.type.dtype(), to = args.types[0].dtype();
  const std::int64_t count = x.type.numel();
  pointwise_table().cast[column_of(from)][column_of(to)](x.data, args.make().block()->data, count);
}

}  // namespace reel
