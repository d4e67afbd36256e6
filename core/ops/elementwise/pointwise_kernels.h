// core/ops/elementwise/pointwise_kernels.h — kernels of element-wise ops: vector loops over
// broadcast operands.
#pragma once

#include <atomic>
#include <string_view>

#include "reel/core/op/op.h"
#include "reel/core/ops/kernels/pointwise_table.h"

namespace reel {

inline constinit std::atomic<const PointwiseTable*> chosen_pointwise_table{nullptr};
const PointwiseTable& choose_pointwise_table();

/// Returns the table for instruction_set(). Thread-safe.
inline const PointwiseTable& pointwise_table() {
  const PointwiseTable* table = chosen_pointwise_table.load(std::memory_order_relaxed);
  return table ? *table : choose_pointwise_table();
}

/// Returns the table of an instruction set, by its name, or null if it is above instruction_set()
/// or of another architecture. For tests.
const PointwiseTable* find_pointwise_table(std::string_view name);

constexpr int column_of(DType dtype) { return static_cast<int>(dtype); }

/// Runs a loop over the inputs, broadcast to output 0. Requires known and checked types.
void run_broadcast(KernelArgs& args, RowsLoop loop);

template <Unary kOp>
void unary_kernel(KernelArgs& args) {
  // Read the data pointer first: reuse() may take the input's block.
  const TensorBlock& x = *args.input(0).block();
  const void* data = x.data;
  const UnaryLoop loop = pointwise_table().unary[static_cast<int>(kOp)][column_of(x.type.dtype())];
  const std::int64_t count = x.type.numel();
  loop(data, args.reuse().block()->data, count);
}

/// Op::of_one_type for ops with a type rule that then only checks the dtype: an op has no loop for
/// a dtype that it refuses. Returns an empty Tensor if this path does not apply.
template <Binary kOp>
Tensor binary_of_one_type(OpInputs in, bool may_reuse) {
  const TensorBlock *a = in[0].tensor->block(), *b = in[1].tensor->block();
  if (!a || !b || a->type != b->type || a->kind > BlockKind::view || b->kind > BlockKind::view)
    return {};
  const TypeNode& type = *a->type.node();
  const FlatLoop loop = pointwise_table().flat[static_cast<int>(kOp)][column_of(type.dtype)];
  if (!loop) return {};
  // Read the data pointers first: the result may take a block.
  const void *from_a = a->data, *from_b = b->data;
  Tensor result = may_reuse ? take_or_allocate(in, a->type) : Tensor(allocate_block(a->type));
  loop(from_a, from_b, result.block()->data, type.numel);
  return result;
}

template <Binary kOp>
void binary_kernel(KernelArgs& args) {
  const TensorBlock &a = *args.input(0).block(), &b = *args.input(1).block();
  const RowsLoop loop = pointwise_table().binary[static_cast<int>(kOp)][column_of(a.type.dtype())];
  const void* const in[] = {a.data, b.data};
  PointwiseRows rows{.columns = args.types[0].numel()};
  if (a.type != b.type) {
    rows.repeats[0] = a.type.rank() == 0;
    rows.repeats[1] = b.type.rank() == 0;
    if (!rows.repeats[0] && !rows.repeats[1]) return run_broadcast(args, loop);
  }
  loop(in, args.reuse().block()->data, rows);
}

void where_kernel(KernelArgs& args);
void cast_kernel(KernelArgs& args);

}  // namespace reel
