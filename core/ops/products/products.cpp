// Sums of products: the op behind matmul, and behind its own vjp.
#include "reel/core/ops/products/products.h"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>

#include "reel/core/base/str.h"
#include "reel/core/op/bind.h"
#include "reel/core/op/vjp.h"
#include "reel/core/ops.h"
#include "reel/core/ops/kernels/parallel_ranges.h"
#include "reel/core/ops/products/gemm.h"
#include "reel/core/ops/products/live_entries.h"
#include "reel/core/ops/products/live_rows.h"
#include "reel/core/ops/reductions/reduce.h"
#include "reel/core/ops/registry.h"
#include "reel/core/ops/shape/dims.h"
#include "reel/core/ops/shape/iteration_batching.h"
#include "reel/core/ops/shape/strided.h"

namespace reel {
namespace {

/// Returns the axes that are in neither list, in order.
std::vector<int> others(int rank, const std::vector<int>& contract, const std::vector<int>& batch) {
  std::vector<int> result;
  result.reserve(static_cast<std::size_t>(rank));
  for (int axis = 0; axis < rank; ++axis)
    if (!has(contract, axis) && !has(batch, axis)) result.push_back(axis);
  return result;
}

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
  if (a.dtype() != b.dtype())
    throw DTypeError(str("matmul: dtypes differ: lhs ", a, ", rhs ", b, "; cast one of them"));
  if (a.dtype() == boolean)
    throw DTypeError(str("matmul: booleans have no product: lhs ", a, ", rhs ", b, "; cast them"));
  const DotAttrs& attrs = args.attr<DotAttrs>();
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

/// Some axes walked as one: `size` elements, `step` apart. is_whole is false if they have gaps or
/// another order.
struct Run {
  std::int64_t size = 1, step = 1;
  bool is_whole = true;
};
Run merge(const std::vector<int>& axes, const TensorType& type, const Steps& steps) {
  Run run;
  for (int axis : axes) {
    const auto i = static_cast<std::size_t>(axis);
    const std::int64_t size = type.sizes()[i];
    if (size == 1) continue;
    if (run.size != 1 && run.step != size * steps[i]) run.is_whole = false;
    run = {run.size * size, steps[i], run.is_whole};
  }
  return run;
}

/// One operand of a product of matrices: the strides of each of its groups of axes.
struct Operand {
  const TensorType& type;
  const char* data;
  Steps steps;
  std::vector<int> batch, free, contract;
  std::unique_ptr<char[]> copy;

  /// elements: null if only sizes are needed.
  Operand(const TensorType& tensor_type, const char* elements, std::vector<int> batch_axes,
          std::vector<int> contract_axes)
      : type(tensor_type),
        data(elements),
        steps(steps_of(type)),
        batch(std::move(batch_axes)),
        free(others(type.rank(), contract_axes, batch)),
        contract(std::move(contract_axes)) {}

  Run rows() const { return merge(free, type, steps); }
  Run inner() const { return merge(contract, type, steps); }

  /// Copies the elements with the groups in the given order, so that each becomes a run.
  void rearrange(const std::vector<int>& middle, const std::vector<int>& last) {
    StridedAxes axes;
    const Steps from = steps;
    std::int64_t step = type.numel();
    for (const std::vector<int>* group :
         {static_cast<const std::vector<int>*>(&batch), &middle, &last})
      for (int axis : *group) {
        const auto i = static_cast<std::size_t>(axis);
        step /= type.sizes()[i];
        steps[i] = step;
        axes.push_back({type.sizes()[i], step, from[i]});
      }
    if (!data) return;
    copy.reset(new char[static_cast<std::size_t>(type.bytes())]);
    copy_strided(size_of(type.dtype()), axes, copy.get(), data);
    data = copy.get();
  }
};

/// Sorts the pairs of contracted axes by their order in one operand.
void sort_pairs(std::vector<int>& by, std::vector<int>& along) {
  for (std::size_t i = 1; i < by.size(); ++i)
    for (std::size_t j = i; j > 0 && by[j] < by[j - 1]; --j) {
      std::swap(by[j], by[j - 1]);
      std::swap(along[j], along[j - 1]);
    }
}

/// Rearranges operands that are not laid out as matrices. Returns the sizes of the product of one
/// batch entry.
MatrixSizes arrange(Operand& a, Operand& b, SumOrder order) {
  // An operand may be empty without an inner size of 0 if only the sizes are asked for.
  const bool is_empty = a.type.numel() == 0 || b.type.numel() == 0;
  if (a.contract.size() > 1 && !is_empty) {
    sort_pairs(a.contract, b.contract);
    if (!a.inner().is_whole || !b.inner().is_whole) sort_pairs(b.contract, a.contract);
  }
  if (!is_empty && !(a.rows().is_whole && a.inner().is_whole)) a.rearrange(a.free, a.contract);
  if (!is_empty && !(b.rows().is_whole && b.inner().is_whole)) b.rearrange(b.contract, b.free);
  const Run rows = a.rows(), inner = a.inner(), columns = b.rows(), b_inner = b.inner();
  return {.m = rows.size,
          .n = columns.size,
          .k = inner.size,
          .a_row = rows.step,
          .a_step = inner.step,
          .b_row = b_inner.step,
          .b_step = columns.step,
          .c_row = columns.size,
          .order = order};
}

/// Calls fn(offset in a, offset in b) for the batch entries of each element of the axes from
/// `level` on, in the order of the result.
template <class Fn>
void each_entry(const Operand& a, const Operand& b, std::size_t level, std::int64_t in_a,
                std::int64_t in_b, const Fn& fn) {
  if (level == a.batch.size()) return fn(in_a, in_b);
  const auto i = static_cast<std::size_t>(a.batch[level]),
             j = static_cast<std::size_t>(b.batch[level]);
  for (std::int64_t k = 0; k < a.type.sizes()[i]; ++k)
    each_entry(a, b, level + 1, in_a + k * a.steps[i], in_b + k * b.steps[j], fn);
}

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
void multiply_live(KernelArgs& args, const LiveRows& live) {
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
  multiply_rows(out.dtype(), sizes, live, a.data<void>(), b.data<void>(), out.data<void>());
}

/// Returns the work of a small product for parallel_ranges().
std::int64_t work_of(const MatrixSizes& s) {
  constexpr std::int64_t kProducts = 16, kCall = 200;  // a quarter of a nanosecond each
  return s.m * s.n * s.k / kProducts + kCall;
}

void dot_kernel(KernelArgs& args) {
  const DotAttrs& attrs = args.attr<DotAttrs>();
  if (auto plain = plain_sizes(attrs, args.input(0).type(), args.input(1).type())) {
    const Tensor& out = args.make();
    plain->add = args.adds;
    if (const auto live = rows_worth_computing(args.input(0).type(), *plain))
      return multiply_some_rows(out.dtype(), *plain, *live, args.input(0).data<void>(),
                                args.input(1).data<void>(), out.data<void>());
    multiply(out.dtype(), *plain, args.input(0).data<void>(), args.input(1).data<void>(),
             out.data<void>());
    return;
  }
  const Tensor &left = args.input(0), &right = args.input(1);
  if (counts_no_padding(attrs, left.type(), right.type()))
    if (const auto live = live_rows(left.type(), attrs.a_contract))
      return multiply_live(args, *live);
  Operand a(left.type(), left.data<char>(), attrs.a_batch, attrs.a_contract),
      b(right.type(), right.data<char>(), attrs.b_batch, attrs.b_contract);
  Tensor& out = args.make();
  if (out.type().numel() == 0) return;
  MatrixSizes sizes = arrange(a, b, attrs.order);
  sizes.add = args.adds;
  const auto item = static_cast<std::int64_t>(size_of(out.dtype()));
  const std::int64_t bytes = sizes.m * sizes.n * item;
  const LiveEntries live({a.type, a.batch, a.free, a.contract},
                         {b.type, b.batch, b.free, b.contract}, sizes);
  const auto multiply_entries = [&](std::size_t level, std::int64_t in_a, std::int64_t in_b,
                                    char* to) {
    std::int64_t entry = (to - out.data<char>()) / bytes;
    each_entry(a, b, level, in_a, in_b, [&](std::int64_t in_a, std::int64_t in_b) {
      const char *from_a = a.data + in_a * item, *from_b = b.data + in_b * item;
      if (live)
        live.multiply(entry++, from_a, from_b, to);
      else
        multiply(out.dtype(), sizes, from_a, from_b, to);
      to += bytes;
    });
  };
  if (a.batch.empty()) return multiply_entries(0, 0, 0, out.data<char>());
  // Entries are products of their own: no bits depend on where a share of them begins.
  const auto i = static_cast<std::size_t>(a.batch[0]), j = static_cast<std::size_t>(b.batch[0]);
  const std::int64_t count = a.type.sizes()[i], entries = out.type().bytes() / bytes;
  parallel_ranges(count, entries * work_of(sizes), [&](std::int64_t first, std::int64_t some) {
    for (std::int64_t k = first; k < first + some; ++k)
      multiply_entries(1, k * a.steps[i], k * b.steps[j],
                       out.data<char>() + k * (entries / count) * bytes);
  });
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
};

/// Masks both operands: in padding 0·NaN would not be zero.
Tensor masked_dot(const Tensor& a, const Tensor& b, AttrsRef attrs) {
  const DotAttrs& axes = get<DotAttrs>(attrs.get());
  const bool masks_a = reduces_padding(a.type(), axes.a_contract),
             masks_b = reduces_padding(b.type(), axes.b_contract);
  if (!masks_a && !masks_b) return bind(dot_op, {a, b}, std::move(attrs));
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
const Op* const kProductOps[] = {&dot_op};
}
std::span<const Op* const> product_ops() { return kProductOps; }

}  // namespace reel
