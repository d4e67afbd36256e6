// Sums of products: the op behind matmul, and behind its own vjp.
#include "reel/core/ops/products/products.h"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>

#include "reel/core/base/str.h"
#include "reel/core/op/axes.h"
#include "reel/core/op/bind.h"
#include "reel/core/op/facts.h"
#include "reel/core/op/vjp.h"
#include "reel/core/ops.h"
#include "reel/core/ops/products/batched_dot.h"
#include "reel/core/ops/products/gemm.h"
#include "reel/core/ops/products/operand.h"
#include "reel/core/ops/products/packed.h"
#include "reel/core/ops/products/product_memory.h"
#include "reel/core/ops/products/small_dot.h"
#include "reel/core/ops/products/unpadded_rows.h"
#include "reel/core/ops/reductions/reduce.h"
#include "reel/core/ops/registry.h"
#include "reel/core/ops/shape/dims.h"
#include "reel/core/ops/shape/iteration_batching.h"
#include "reel/core/ops/shape/strided.h"
#include "reel/core/types/mode.h"
#include "reel/core/types/sizes.h"

namespace reel {
namespace {

// ---- Type rule ----------------------------------------------------------------------------------

/// Describes axis `axis` for a message: "lhs f32[8,3] has 3 columns".
std::string size_along(const char* role, const TensorType& type, int axis) {
  const Dim& dim = type.dims()[static_cast<std::size_t>(axis)];
  if (type.is_named()) return str(role, ' ', type, " has ", dim);
  const int from_end = type.rank() - axis;
  const char* unit = type.rank() == 1 ? " elements"
                     : from_end == 1  ? " columns"
                     : from_end == 2  ? " rows"
                                      : nullptr;
  return unit ? str(role, ' ', type, " has ", dim, unit)
              : str(role, ' ', type, " has ", dim, " along axis ", axis);
}

/// True if named dims are the same, or plain sizes equal; an unknown size may match any.
bool may_match(const Dim& a, const Dim& b) {
  if (a == b) return true;
  return !a.is_named() && !b.is_named() && !(a.has_size() && b.has_size());
}

/// Returns the repair if a product of two plain matrices fits with the second one transposed.
std::string transpose_hint(const TypeArgs& args) {
  const TensorType &a = args.in[0], &b = args.in[1];
  const bool are_plain = a.rank() == 2 && b.rank() == 2 && !a.is_named() && !b.is_named();
  if (!are_plain || !(a.dims()[1] == b.dims()[1])) return "";
  return "; if its columns are meant, transpose it: transpose(rhs, {1, 0})";
}

void check_pairs(const TypeArgs& args, const std::vector<int>& a_axes,
                 const std::vector<int>& b_axes, const char* what) {
  const TensorType &a = args.in[0], &b = args.in[1];
  for (std::size_t i = 0; i < a_axes.size(); ++i)
    if (!may_match(a.dims()[static_cast<std::size_t>(a_axes[i])],
                   b.dims()[static_cast<std::size_t>(b_axes[i])]))
      throw ShapeError(str("matmul: ", what, a.is_named() || b.is_named() ? " dims" : " sizes",
                           " differ: ", size_along("lhs", a, a_axes[i]), ", ",
                           size_along("rhs", b, b_axes[i]), transpose_hint(args)));
}

void dot_type(TypeArgs& args) {
  const TensorType &a = args.in[0], &b = args.in[1];
  const DotAttrs& attrs = args.attr<DotAttrs>();
  for (const auto* axes : {&attrs.a_contract, &attrs.a_batch}) check_axes(a, *axes);
  for (const auto* axes : {&attrs.b_contract, &attrs.b_batch}) check_axes(b, *axes);
  if (a.dtype() != b.dtype())
    throw DTypeError(str("matmul: dtypes differ: lhs ", a, ", rhs ", b, "; cast one of them"));
  if (a.dtype() == boolean)
    throw DTypeError(str("matmul: booleans have no product: lhs ", a, ", rhs ", b, "; cast them"));
  check_pairs(args, attrs.a_contract, attrs.b_contract, "inner");
  check_pairs(args, attrs.a_batch, attrs.b_batch, "batch");
  Dims dims;
  dims.reserve(static_cast<std::size_t>(a.rank() + b.rank()));
  for (std::size_t i = 0; i < attrs.a_batch.size(); ++i) {
    const Dim& dim = a.dims()[static_cast<std::size_t>(attrs.a_batch[i])];
    dims.push_back(dim.is_named() || dim.has_size()
                       ? dim
                       : b.dims()[static_cast<std::size_t>(attrs.b_batch[i])]);
  }
  for (int axis = 0; axis < a.rank(); ++axis)
    if (!has(attrs.a_contract, axis) && !has(attrs.a_batch, axis))
      dims.push_back(a.dims()[static_cast<std::size_t>(axis)]);
  for (int axis = 0; axis < b.rank(); ++axis)
    if (!has(attrs.b_contract, axis) && !has(attrs.b_batch, axis))
      dims.push_back(b.dims()[static_cast<std::size_t>(axis)]);
  args.out.push_back(a.with(dims));
}

std::vector<int> iota(std::size_t from, std::size_t count) {
  std::vector<int> result;
  for (std::size_t i = from; i < from + count; ++i) result.push_back(static_cast<int>(i));
  return result;
}

// ---- Kernel -------------------------------------------------------------------------------------

/// Returns the sizes of a product without rearranging: one contracted axis, at an end of each
/// operand; nullopt for other products.
std::optional<MatrixSizes> plain_sizes(const DotAttrs& attrs, const TensorType& a,
                                       const TensorType& b) {
  if (attrs.a_contract.size() != 1 || !attrs.a_batch.empty() || a.numel() == 0 || b.numel() == 0)
    return std::nullopt;
  const int in_a = attrs.a_contract[0], in_b = attrs.b_contract[0];
  const std::int64_t k = a.sizes()[static_cast<std::size_t>(in_a)], m = a.numel() / k,
                     n = b.numel() / k;
  MatrixSizes sizes{.m = m,
                    .n = n,
                    .k = k,
                    .a_row = k,
                    .a_step = 1,
                    .b_row = n,
                    .b_step = 1,
                    .c_row = n,
                    .order = attrs.order};
  if (in_a != a.rank() - 1) {
    if (in_a != 0) return std::nullopt;
    sizes.a_row = 1, sizes.a_step = m;
  }
  if (in_b != 0) {
    if (in_b != b.rank() - 1) return std::nullopt;
    sizes.b_row = 1, sizes.b_step = k;
  }
  return sizes;
}

}  // namespace

bool dot_rows_are_alike(const DotAttrs& attrs, const TensorType& a, const TensorType& b,
                        std::int64_t rows) {
  const std::optional<MatrixSizes> sizes = plain_sizes(attrs, a, b);
  return sizes && sizes->a_step == 1 &&
         rows_are_alike(a.dtype(), *sizes, sizes->m / a.sizes()[0] * rows);
}

SumOrder dot_order(const DotAttrs& attrs, const TensorType& a, const TensorType& b) {
  if (const auto plain = plain_sizes(attrs, a, b)) return sum_order(a.dtype(), *plain);
  Operand left(a, nullptr, attrs.a_batch, attrs.a_contract),
      right(b, nullptr, attrs.b_batch, attrs.b_contract);
  return sum_order(a.dtype(), arrange(left, right, attrs.order));
}

bool dot_takes_memory(const DotAttrs& attrs, const TensorType& a, const TensorType& b) {
  const std::optional<MatrixSizes> sizes = plain_sizes(attrs, a, b);
  return !sizes || a.is_ragged() || b.is_ragged() || takes_memory(a.dtype(), *sizes);
}

bool product_takes_memory(const OpCall& call) {
  if (!is_product(call.op)) return true;
  const auto types = call.in.first(2);
  if (&call.op == &dot_op) return dot_takes_memory(call.attr<DotAttrs>(), types[0], types[1]);
  return !is_packed_dot(call.op) ||
         packed_takes_memory(call.op, call.attr<DotAttrs>(), types[0], types[1]);
}

std::optional<SmallProduct> small_dot(const OpCall& call) {
  const bool is_packed = is_packed_dot(call.op);
  if (!is_packed && &call.op != &dot_op) return std::nullopt;
  const TensorType &a = call.in[0], &b = call.in[1];
  const DotAttrs& attrs = call.attr<DotAttrs>();
  if (a.is_ragged() || b.is_ragged() || (is_packed && has_panels(call.op, attrs, b)))
    return std::nullopt;
  const std::optional<MatrixSizes> sizes = plain_sizes(attrs, a, b);
  return sizes ? small_product(a.dtype(), *sizes) : std::nullopt;
}

DotAttrs summed_across_iterations(const DotAttrs& step) {
  DotAttrs result{behind_time(step.a_contract), behind_time(step.b_contract),
                  behind_time(step.a_batch), behind_time(step.b_batch)};
  result.a_contract.insert(result.a_contract.begin(), 0);
  result.b_contract.insert(result.b_contract.begin(), 0);
  return result;
}

bool counts_no_padding(const DotAttrs& attrs, const TensorType& a, const TensorType& b) {
  const std::size_t count = attrs.a_contract.size();
  if (count < 2 || !a.is_ragged() || !attrs.a_batch.empty() || attrs.a_contract != iota(0, count) ||
      attrs.b_contract != attrs.a_contract)
    return false;
  const auto is_contracted = [&](const TensorType& type, const Dim& dim) {
    const int axis = find(type.dims(), dim);
    return axis >= 0 && axis < static_cast<int>(count);
  };
  const auto has_lengths_elsewhere = [&](const TensorType& type) {
    return std::any_of(type.dims().begin(), type.dims().end(), [&](const Dim& dim) {
      if (!dim.is_ragged()) return false;
      const Dims over = dim.length_dims();
      return !is_contracted(type, dim) ||
             !std::all_of(over.begin(), over.end(),
                          [&](const Dim& each) { return is_contracted(type, each); });
    });
  };
  return !has_lengths_elsewhere(a) && !has_lengths_elsewhere(b);
}

namespace {

/// Sums over the places of contracted axes that are no padding. Requires these axes first in both
/// operands.
void multiply_unpadded(KernelArgs& args, const UnpaddedRows& unpadded) {
  const Tensor &a = args.input(0), &b = args.input(1);
  std::int64_t k = 1;
  for (std::size_t axis = 0; axis < args.attr<DotAttrs>().a_contract.size(); ++axis)
    k *= a.type().sizes()[axis];
  Tensor& out = args.make();
  if (out.type().numel() == 0) return;
  const std::int64_t m = k ? a.type().numel() / k : 1, n = out.type().numel() / m;
  const MatrixSizes sizes{.m = m,
                          .n = n,
                          .k = k,
                          .a_row = 1,
                          .a_step = m,
                          .b_row = n,
                          .b_step = 1,
                          .c_row = n,
                          .add = args.adds,
                          .order = args.attr<DotAttrs>().order};
  multiply_rows(out.dtype(), sizes, unpadded, a.data<void>(), b.data<void>(), out.data<void>());
}

void dot_kernel(KernelArgs& args) {
  const DotAttrs& attrs = args.attr<DotAttrs>();
  if (auto plain = plain_sizes(attrs, args.input(0).type(), args.input(1).type())) {
    const Tensor& out = args.make();
    plain->add = args.adds;
    if (const auto unpadded = rows_worth_computing(args.input(0).type(), *plain))
      return multiply_some_rows(out.dtype(), *plain, *unpadded, args.input(0).data<void>(),
                                args.input(1).data<void>(), out.data<void>());
    multiply(out.dtype(), *plain, args.input(0).data<void>(), args.input(1).data<void>(),
             out.data<void>());
    return;
  }
  const TensorType &a = args.input(0).type(), &b = args.input(1).type();
  if (counts_no_padding(attrs, a, b))
    if (const auto unpadded = unpadded_rows(a, attrs.a_contract))
      return multiply_unpadded(args, *unpadded);
  batched_dot(args, attrs);
}

// ---- vjp ----------------------------------------------------------------------------------------

bool is_sorted_range(const std::vector<int>& order) { return order == iota(0, order.size()); }

/// Returns the cotangent of one operand, "x": the result's cotangent g times the other operand,
/// "y".
///
/// x's free axes come from g, its contracted axes from y, its batch axes from either. x̄ = dot(g,
/// y) has them in the order batch, free, contracted; dot(y, g) in the order batch, contracted,
/// free. The one with x's own order needs no transposition.
Tensor operand_cotangent(const Tensor& g, const Tensor& y, const TensorType& x,
                         const std::vector<int>& x_contract, const std::vector<int>& x_batch,
                         const std::vector<int>& y_contract, const std::vector<int>& y_batch,
                         bool x_is_lhs) {
  const std::vector<int> x_free = others(x.rank(), x_contract, x_batch);
  const std::vector<int> y_free = others(y.rank(), y_contract, y_batch);
  const std::size_t batch = x_batch.size();
  const std::vector<int> g_batch = iota(0, batch);
  const std::vector<int> g_y_free = iota(batch + (x_is_lhs ? x_free.size() : 0), y_free.size());
  // y's contracted axes come in y's order; sort x's contracted axes by the same pairs.
  std::vector<int> y_sorted = y_contract, x_sorted = x_contract;
  sort_pairs(y_sorted, x_sorted);

  const auto made = [&](const std::vector<int>& middle, const std::vector<int>& last) {
    std::vector<int> axes = x_batch;  // of x, in the order of the product's axes
    axes.insert(axes.end(), middle.begin(), middle.end());
    axes.insert(axes.end(), last.begin(), last.end());
    return axes;
  };
  std::vector<int> axes = made(x_sorted, x_free);
  Tensor result;
  if (is_sorted_range(axes) && !is_sorted_range(made(x_free, x_sorted))) {
    result = masked_dot(y, g, dot_attrs({y_free, g_y_free, y_batch, g_batch}));
  } else {
    axes = made(x_free, x_sorted);
    result = masked_dot(g, y, dot_attrs({g_y_free, y_free, g_batch, y_batch}));
  }
  if (!is_sorted_range(axes)) {
    std::vector<Axis> order;
    order.reserve(axes.size());
    for (int axis = 0; axis < x.rank(); ++axis)
      order.push_back(static_cast<int>(std::find(axes.begin(), axes.end(), axis) - axes.begin()));
    result = transpose(result, Axes(std::move(order)));
  }
  // If a trace does not know a plain size, it may come from the other operand, or have another
  // symbol there.
  return result.type() == x ? result : reshape(result, x.dims());
}

void dot_vjp(Vjp& at) {
  const DotAttrs& attrs = at.attr<DotAttrs>();
  const Tensor g = at.cotangent();
  if (at.needs(0))
    at.add(0, operand_cotangent(g, at.input(1), at.input_type(0), attrs.a_contract, attrs.a_batch,
                                attrs.b_contract, attrs.b_batch, true));
  if (at.needs(1))
    at.add(1, operand_cotangent(g, at.input(0), at.input_type(1), attrs.b_contract, attrs.b_batch,
                                attrs.a_contract, attrs.a_batch, false));
}

/// If one operand has steps, they become rows of the product; if both have, entries of a batch. A
/// sum over steps is one more inner axis.
Tensors dot_across_iterations(const IterationBatch& at) {
  const DotAttrs& step = at.attr<DotAttrs>();
  DotAttrs attrs = step;
  Tensor a = at.in[0], b = at.in[1];
  if (at.is_many[0]) {
    attrs.a_contract = behind_time(step.a_contract);
    attrs.a_batch = behind_time(step.a_batch);
  }
  if (at.is_many[1]) {
    attrs.b_contract = behind_time(step.b_contract);
    attrs.b_batch = behind_time(step.b_batch);
  }
  if (at.is_many[0] && at.is_many[1]) {
    if (at.is_summed) return {bind(at.op, {a, b}, dot_attrs(summed_across_iterations(step)))};
    attrs.a_batch.insert(attrs.a_batch.begin(), 0);
    attrs.b_batch.insert(attrs.b_batch.begin(), 0);
    return {bind(at.op, {a, b}, dot_attrs(std::move(attrs)))};
  }
  if (at.is_summed) {
    (at.is_many[0] ? a : b) = sum(at.is_many[0] ? a : b, 0);
    return {bind(at.op, {a, b}, at.attrs)};
  }
  const Tensor result = bind(at.op, {a, b}, dot_attrs(attrs));
  const std::size_t batch = step.a_batch.size();
  const int place = static_cast<int>(
      at.is_many[0] ? batch : static_cast<std::size_t>(a.rank()) - step.a_contract.size());
  if (place == 0) return {result};
  std::vector<Axis> order{place};
  for (int axis = 0; axis < result.rank(); ++axis)
    if (axis != place) order.push_back(axis);
  return {transpose(result, Axes(std::move(order)))};
}

OpSamples dot_samples() {
  static const Dim& batch = *new Dim("batch", 2);
  static const Dim& time = *new Dim("time", tensor({3, 1}, {batch}));
  static const Dim& in = *new Dim("in", 3);
  static const Dim& out = *new Dim("out", 4);
  const auto sample = [](const Dims& a, const Dims& b, DotAttrs attrs) {
    return OpSample{{{TensorType(f32, a)}, {TensorType(f32, b)}}, make_attrs(std::move(attrs))};
  };
  return {
      sample({2, 3}, {3, 4}, {{1}, {0}, {}, {}}),
      sample({2, 3}, {4, 3}, {{1}, {1}, {}, {}}),
      sample({3, 2}, {3, 4}, {{0}, {0}, {}, {}}),
      sample({3, 5}, {4, 3}, {{0}, {1}, {}, {}}),
      sample({5}, {5}, {{0}, {0}, {}, {}}),
      sample({5}, {5, 2}, {{0}, {0}, {}, {}}),
      sample({2, 5}, {5}, {{1}, {0}, {}, {}}),
      sample({2}, {3}, {}),
      sample({}, {3}, {}),
      sample({0, 3}, {3, 4}, {{1}, {0}, {}, {}}),
      sample({2, 0}, {0, 4}, {{1}, {0}, {}, {}}),
      sample({2, 3, 4}, {2, 4, 5}, {{2}, {1}, {0}, {0}}),
      sample({3, 2, 4}, {5, 2, 4}, {{2}, {2}, {1}, {1}}),
      sample({2, 3, 4}, {4, 5, 3}, {{1, 2}, {2, 0}, {}, {}}),
      sample({3, 4, 2}, {4, 3}, {{1}, {0}, {}, {}}),
      sample({batch, in}, {in, out}, {{1}, {0}, {}, {}}),
      sample({in, batch}, {out, batch, in}, {{0}, {2}, {1}, {1}}),
      sample({batch, time, in}, {in, out}, {{2}, {0}, {}, {}}),
      sample({batch, time, in}, {batch, time, in}, {{2}, {2}, {0, 1}, {0, 1}}),
  };
}

}  // namespace

namespace {
/// Sets rules for factors with elements that have the same bits for any number of elements: the
/// first axis of a that is not contracted, if the order of the sums stays the same, and a batch in
/// the first axis of both operands, because it has one product per element.
void rows_of_product(const DotAttrs& dot, AxisFactors& f, int factors) {
  const bool has_batch = !dot.a_batch.empty() && dot.a_batch[0] == 0 && dot.b_batch[0] == 0;
  for (int factor = has_batch ? 1 : 0; factor < factors; ++factor)
    f.set_alike(factor, f.axis_in(0, factor) == 0 && f.axis_in(1, factor) < 0
                            ? [](const OpCall& call, std::int64_t rows) {
                                return dot_rows_are_alike(call.attr<DotAttrs>(), call.in[0],
                                                          call.in[1], rows);
                              }
                            : never_alike);
}
}  // namespace

void product_axes(const OpCall& call, AxisFactors& f) {
  const auto& dot = call.attr<DotAttrs>();
  int next = 0;
  for (std::size_t i = 0; i < dot.a_batch.size(); ++i)
    f.in(0, dot.a_batch[i]) = f.in(1, dot.b_batch[i]) = next++;
  for (std::size_t i = 0; i < dot.a_contract.size(); ++i)
    f.in(0, dot.a_contract[i]) = f.in(1, dot.b_contract[i]) = f.add(Role::summed);
  for (const std::size_t i : {std::size_t{0}, std::size_t{1}})
    for (int axis = 0; axis < call.in[i].rank(); ++axis)
      if (f.in(i, axis) == AxisFactors::kWhole) f.in(i, axis) = next++;
  rows_of_product(dot, f, next);
}

bool product_reads_lengths(const OpCall& call, std::size_t in, int axis) {
  const auto& dot = call.attr<DotAttrs>();
  return std::ranges::count(in == 0 ? dot.a_contract : dot.b_contract, axis) != 0;
}

const Op dot_op{
    .name = "dot",
    .type = dot_type,
    .kernel = dot_kernel,
    .vjp = dot_vjp,
    .reads_by = reads_the_other,
    .samples = dot_samples,
    .iteration_batching = dot_across_iterations,
    .gains_from_batching = true,
    .can_add = true,
    .axes = product_axes,
    .fails = fails_without_memory,
    .reads_lengths = product_reads_lengths,
    .padding = Padding::dropped,
    .neutral = Neutral::zero,
    .multiplications = product_multiplications<DotAttrs>,
};

/// Masks both operands: in padding 0·NaN would not be zero. Eager mode leaves masks out that its
/// kernel does not need; a trace keeps them, since plans replace ragged dims by static ones.
Tensor masked_dot(const Tensor& a, const Tensor& b, AttrsRef attrs) {
  const DotAttrs& axes = get<DotAttrs>(attrs.get());
  const bool masks_a = reduces_padding(a.type(), axes.a_contract),
             masks_b = reduces_padding(b.type(), axes.b_contract);
  if ((!masks_a && !masks_b) || (!is_tracing() && reads_no_padding(axes, a.type(), b.type())))
    return bind(dot_op, {a, b}, std::move(attrs));
  return bind(dot_op, {masks_a ? mask_padding(a) : a, masks_b ? mask_padding(b) : b},
              std::move(attrs));
}

AttrsRef single_pair(int in_a, int in_b) {
  constexpr int kMaxCachedAxes = 8;
  static const auto& common = *[] {
    auto* made = new std::array<AttrsRef, kMaxCachedAxes * kMaxCachedAxes>;
    for (int i = 0; i < kMaxCachedAxes * kMaxCachedAxes; ++i)
      (*made)[static_cast<std::size_t>(i)] =
          make_attrs(DotAttrs{{i / kMaxCachedAxes}, {i % kMaxCachedAxes}, {}, {}});
    return made;
  }();
  if (in_a < kMaxCachedAxes && in_b < kMaxCachedAxes)
    return common[static_cast<std::size_t>(in_a * kMaxCachedAxes + in_b)];
  return make_attrs(DotAttrs{{in_a}, {in_b}, {}, {}});
}
AttrsRef dot_attrs(DotAttrs attrs) {
  if (attrs.a_contract.size() == 1 && attrs.a_batch.empty() && attrs.order == SumOrder::by_sizes)
    return single_pair(attrs.a_contract[0], attrs.b_contract[0]);
  return make_attrs(std::move(attrs));
}

namespace {
const Op* const kProductOps[] = {&dot_op, &unpadded_dot_op};
}
std::span<const Op* const> product_ops() { return kProductOps; }

}  // namespace reel
