#include "reel/core/ops/products/packed.h"

#include <algorithm>

#include "reel/core/base/str.h"
#include "reel/core/op/axes.h"
#include "reel/core/ops/products/gemm.h"
#include "reel/core/ops/products/product_memory.h"
#include "reel/core/ops/products/products.h"
#include "reel/core/ops/registry.h"
#include "reel/core/ops/shape/strided.h"
#include "reel/core/types/sizes.h"

namespace reel {
namespace {

constexpr const char* kNoVjp = "made of graphs whose gradients are taken already";

/// Matrices with at most this number of elements stay unchanged.
struct Panels {
  std::int64_t small;
};
/// Matrices of up to 48 KiB of f32 stay in the first-level cache in any order.
constexpr Panels kPanels{.small = 12 * 1024};
constexpr Panels kTurned{.small = 0};

const Panels& panels_of(const Op& packed_dot) {
  return &packed_dot == &packed_turned_dot_op ? kTurned : kPanels;
}
/// Thresholds of rows and of results' elements. A matrix that is read along its last axis is packed
/// from there on, whatever its size: then there are enough chains at a time. With fewer, products
/// of runs are faster. Loops are not cut into blocks of fewer rows (kRowsThatEnd of
/// row_cut.cpp, except in tests), so that rows have the same bits in blocks.
constexpr std::int64_t kRowsToTurn = 4, kChainsToTurn = 64;

/// A matrix in a tensor: `k` contracted rows and `n` columns.
struct Packing {
  std::int64_t k, n;
  bool is_transposed, has_panels;

  Packing(const TensorType& type, int contract, const Panels& panels) {
    k = type.sizes()[static_cast<std::size_t>(contract)];
    n = k ? type.numel() / k : 0;
    is_transposed = contract != 0;
    has_panels = k * n > panels.small;
  }
};

void pack_rule(TypeArgs& a) {
  const TensorType& x = a.in[0];
  if (x.rank() != 2) throw ShapeError(str(a.op.name, ": takes a matrix, got ", x));
  check_axis(x, a.attr<PackAttrs>().contract);
  a.out.push_back(x);
}

void packed_dot_rule(TypeArgs& a) {
  dot_op.type(a);
  const DotAttrs& attrs = a.attr<DotAttrs>();
  if (!can_be_packed(attrs, a.in[0], a.in[1]))
    throw ShapeError(str(a.op.name, ": lhs ", a.in[0], " and rhs ", a.in[1],
                         " have no product with ", "a packed matrix along axis ",
                         attrs.a_contract[0], " of lhs"));
}

template <const Panels& kHow>
void pack_kernel(KernelArgs& args) {
  const Tensor& x = args.input(0);
  const Packing packing(x.type(), args.attr<PackAttrs>().contract, kHow);
  if (!packing.has_panels) {
    args.alias(0, 0);
    return;
  }
  const auto [k, n, is_transposed, has_panels] = packing;
  const std::size_t item = size_of(x.dtype());
  char* to = args.make().data<char>();
  const std::int64_t row = is_transposed ? 1 : n, column = is_transposed ? k : 1,
                     columns = panel_columns(x.dtype());
  for (std::int64_t j = 0; j < n; j += columns) {
    const std::int64_t width = std::min(columns, n - j);
    copy_strided(item, {{k, width, row}, {width, 1, column}},
                 to + j * k * static_cast<std::int64_t>(item),
                 x.data<char>() + j * column * static_cast<std::int64_t>(item));
  }
}

/// Returns the order of sums in a product of m rows.
SumOrder order_of_panels(DType dtype, const Packing& packing, std::int64_t m) {
  MatrixSizes sizes{};
  sizes.m = m;
  sizes.n = packing.n;
  sizes.k = packing.k;
  return chain_order(dtype, sizes);
}

/// Returns the sizes of the product with the columns that fill panels.
MatrixSizes sizes_of_panels(const Packing& packing, const DotAttrs& attrs, const TensorType& a) {
  const bool is_last = attrs.a_contract[0] == a.rank() - 1;
  const std::int64_t k = packing.k, m = a.numel() / k, columns = panel_columns(a.dtype());
  return {.m = m,
          .n = packing.n - packing.n % columns,
          .k = k,
          .a_row = is_last ? k : 1,
          .a_step = is_last ? 1 : m,
          .b_row = columns,
          .b_step = 1,
          .c_row = packing.n,
          .order = order_of_panels(a.dtype(), packing, m),
          .b_panel = k * columns};
}
/// Returns the sizes of the product with the last columns, which fill no panel: a matrix of their
/// own.
MatrixSizes sizes_of_rest(MatrixSizes sizes) {
  sizes.n = sizes.b_row = sizes.c_row - sizes.n;
  sizes.b_panel = 0;
  return sizes;
}

template <const Panels& kHow>
void packed_dot_kernel(KernelArgs& args) {
  const DotAttrs& attrs = args.attr<DotAttrs>();
  const Tensor &a = args.input(0), &b = args.input(1);
  const Packing packing(b.type(), attrs.b_contract[0], kHow);
  const std::int64_t k = packing.k;
  if (!packing.has_panels) return dot_op.kernel(args);
  const Tensor& out = args.make();
  const auto item = static_cast<std::int64_t>(size_of(out.dtype()));
  MatrixSizes sizes = sizes_of_panels(packing, attrs, a.type());
  const std::int64_t in_panels = sizes.n;
  const auto run = [&](std::int64_t first) {
    multiply(out.dtype(), sizes, a.data<void>(), b.data<char>() + first * k * item,
             out.data<char>() + first * item);
  };
  run(0);
  sizes = sizes_of_rest(sizes);
  run(in_panels);
}

}  // namespace

PackedOps packed_ops_of(const DotAttrs& dot, const TensorType& a, const TensorType& b) {
  if (dot.b_contract[0] == 0 || !a.is_known() || !b.is_known() || b.numel() == 0)
    return {pack_op, packed_dot_op};
  const std::int64_t columns = b.sizes()[0], rows = a.numel() / (b.numel() / columns);
  if (rows < kRowsToTurn && rows * columns < kChainsToTurn) return {pack_op, packed_dot_op};
  return {pack_turned_op, packed_turned_dot_op};
}

bool packed_rows_are_alike(const Op& packed_dot, const DotAttrs& attrs, const TensorType& a,
                           const TensorType& b, std::int64_t rows) {
  const Packing packing(b, attrs.b_contract[0], panels_of(packed_dot));
  if (!packing.has_panels) return dot_rows_are_alike(attrs, a, b, rows);
  const std::int64_t m = a.numel() / packing.k;
  return attrs.a_contract[0] == a.rank() - 1 &&
         order_of_panels(a.dtype(), packing, m) ==
             order_of_panels(a.dtype(), packing, m / a.sizes()[0] * rows);
}

bool can_be_packed(const DotAttrs& dot, const TensorType& a, const TensorType& b) {
  return is_float(b.dtype()) && dot.b_batch.empty() && dot.b_contract.size() == 1 &&
         b.rank() == 2 && (dot.a_contract[0] == 0 || dot.a_contract[0] == a.rank() - 1);
}

bool has_panels(const Op& packed_dot, const DotAttrs& dot, const TensorType& b) {
  return Packing(b, dot.b_contract[0], panels_of(packed_dot)).has_panels;
}

bool makes_panels(const Op& pack, const Attrs* attrs, const TensorType& x) {
  const Panels& panels = &pack == &pack_turned_op ? kTurned : kPanels;
  return Packing(x, get<PackAttrs>(attrs).contract, panels).has_panels;
}

bool packed_takes_memory(const Op& packed_dot, const DotAttrs& dot, const TensorType& a,
                         const TensorType& b) {
  const Packing packing(b, dot.b_contract[0], panels_of(packed_dot));
  if (!packing.has_panels) return dot_takes_memory(dot, a, b);
  const MatrixSizes sizes = sizes_of_panels(packing, dot, a);
  return takes_memory(a.dtype(), sizes) || takes_memory(a.dtype(), sizes_of_rest(sizes));
}

SumOrder packed_order(const Op& packed_dot, const DotAttrs& dot, const TensorType& a,
                      const TensorType& b) {
  const Packing packing(b, dot.b_contract[0], panels_of(packed_dot));
  if (!packing.has_panels) return dot_order(dot, a, b);
  return order_of_panels(a.dtype(), packing, a.numel() / packing.k);
}

namespace {
/// No rows can be sliced from packed data, which has its own order.
void packed_product_axes(const OpCall& call, AxisFactors& f) {
  product_axes(call, f);
  f.in(0, call.attr<DotAttrs>().a_contract[0]) = AxisFactors::kWhole;
  for (int axis = 0; axis < call.in[1].rank(); ++axis) f.in(1, axis) = AxisFactors::kWhole;
  if (const int rows = call.in[0].rank() ? f.in(0, 0) : AxisFactors::kWhole; rows >= 0)
    f.set_alike(rows, [](const OpCall& of, std::int64_t count) {
      return packed_rows_are_alike(of.op, of.attr<DotAttrs>(), of.in[0], of.in[1], count);
    });
}

bool packs_nothing(const OpCall& call) { return !makes_panels(call.op, call.attrs, call.in[0]); }

OpSample product_sample(const Dims& a, const Dims& b, int in_a, int in_b) {
  return OpSample{{{TensorType(f32, a)}, {TensorType(f32, b)}}, single_pair(in_a, in_b)};
}

}  // namespace

const Op pack_op{
    .name = "pack",
    .type = pack_rule,
    .kernel = pack_kernel<kPanels>,
    .storage = OpStorage::input,
    .no_vjp = kNoVjp,
    .samples =
        [] {
          return OpSamples{{{{TensorType(f32, {3, 4})}}, make_attrs(PackAttrs{0})},
                           {{{TensorType(f32, {150, 130})}}, make_attrs(PackAttrs{0})},
                           {{{TensorType(f64, {150, 130})}}, make_attrs(PackAttrs{1})}};
        },
    .fails = fails_without_memory,
    .makes_view = packs_nothing,
};

const Op packed_dot_op{
    .name = "packed_dot",
    .type = packed_dot_rule,
    .kernel = packed_dot_kernel<kPanels>,
    .no_vjp = kNoVjp,
    .samples =
        [] {
          return OpSamples{product_sample({2, 3}, {3, 4}, 1, 0),
                           product_sample({2, 150}, {150, 130}, 1, 0),
                           product_sample({150, 2}, {130, 150}, 0, 1)};
        },
    .axes = packed_product_axes,
    .fails = fails_without_memory,
    .reads_lengths = product_reads_lengths,
    .multiplications = product_multiplications<DotAttrs>,
};

const Op pack_turned_op{
    .name = "pack_turned",
    .type = pack_rule,
    .kernel = pack_kernel<kTurned>,
    .storage = OpStorage::input,
    .no_vjp = kNoVjp,
    .samples =
        [] {
          return OpSamples{{{{TensorType(f32, {3, 4})}}, make_attrs(PackAttrs{1})},
                           {{{TensorType(f64, {70, 4})}}, make_attrs(PackAttrs{1})}};
        },
    .fails = fails_without_memory,
    .makes_view = packs_nothing,
};

const Op packed_turned_dot_op{
    .name = "packed_turned_dot",
    .type = packed_dot_rule,
    .kernel = packed_dot_kernel<kTurned>,
    .no_vjp = kNoVjp,
    .samples =
        [] {
          return OpSamples{product_sample({5, 3}, {4, 3}, 1, 1),
                           product_sample({5, 3}, {135, 3}, 1, 1),
                           product_sample({3, 5}, {7, 3}, 0, 1)};
        },
    .axes = packed_product_axes,
    .fails = fails_without_memory,
    .reads_lengths = product_reads_lengths,
    .multiplications = product_multiplications<DotAttrs>,
};

namespace {
const Op* const kPackedOps[] = {&pack_op, &packed_dot_op, &pack_turned_op, &packed_turned_dot_op};
}
std::span<const Op* const> packed_ops() { return kPackedOps; }

}  // namespace reel
