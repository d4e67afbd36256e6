// The function linear_scan: checks, broadcasts and masks the operands of linear_scan_op.
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "reel/core/base/str.h"
#include "reel/core/dims/dim_slices.h"
#include "reel/core/functions/scans.h"
#include "reel/core/op/bind.h"
#include "reel/core/op/op_errors.h"
#include "reel/core/ops.h"
#include "reel/core/ops/elementwise/broadcast.h"
#include "reel/core/ops/reductions/reduce.h"
#include "reel/core/ops/scans/linear_scan.h"
#include "reel/core/ops/shape/dims.h"
#include "reel/core/ops/shape/new_dims.h"
#include "reel/core/ops/shape/sliced_dims.h"

namespace reel {
namespace {

constexpr std::string_view kName = "linear_scan";

void check_dtypes(const Tensor& first, const Tensor& other, std::string_view role) {
  const std::string_view roles[] = {"a", role};
  check_same_dtype(kName, first.type(), other.type(), roles);
}

/// Returns x without the axis if it lacks it, or has one element there; else an empty tensor.
Tensor lacking_axis(const Tensor& x, const TensorType& full, int axis) {
  if (full.is_named()) return find(x.dims(), dim_at(full, axis)) < 0 ? x : Tensor();
  const int at = axis - (full.rank() - x.rank());
  if (at < 0) return x;
  const Dim& dim = dim_at(x.type(), at);
  const bool is_repeated = dim.has_size() && dim.size() == 1 && dim_at(full, axis).has_size() &&
                           dim_at(full, axis).size() != 1;
  return is_repeated ? squeeze(x, at) : Tensor();
}

/// Broadcasts x to dims; a tensor with these dims stays unchanged.
Tensor with_dims(const Tensor& x, const Dims& dims) {
  return x.dims() == dims ? x : broadcast_to(x, dims);
}

/// Operands of linear_scan_op, in order, and which of them have the axis.
class ScanArguments {
 public:
  ScanArguments(const TensorType& full, int axis, bool needs_all)
      : full_(full), axis_(axis), needs_all_(needs_all) {}

  /// Adds an operand; broadcasts it to all dims of the result, or to those without the axis.
  void add(ScanOperand which, const Tensor& x) {
    const Tensor lacking = needs_all_ ? Tensor() : lacking_axis(x, full_, axis_);
    attrs.operands |= which;
    if (!lacking.is_defined()) attrs.over_time |= which;
    in.push_back(lacking.is_defined() ? with_dims(lacking, reduced_type(full_, {axis_}).dims())
                                      : with_dims(x, full_.dims()));
  }
  /// Gives b all dims if no operand has the axis.
  void make_full() {
    if (attrs.over_time) return;
    attrs.over_time = kScanB;
    in[1] = spread_like(in[1], {axis_}, full_);
  }

  LinearScanAttrs attrs;
  Tensors in;

 private:
  TensorType full_;
  int axis_;
  bool needs_all_;
};

/// True if lengths of other axes tell which elements of the axis exist: padding may lie between
/// them.
bool has_lengths_along(const TensorType& full, int axis) {
  return std::ranges::any_of(
      full.dims(), [&](const Dim& dim) { return contains(dim.length_dims(), dim_at(full, axis)); });
}

/// True if an axis of this size may be repeated to the other size.
bool fits_size(const Dim& dim, const Dim& to) {
  return !dim.has_size() || dim.size() == 1 || !to.has_size() || to.size() == dim.size();
}

/// Throws ShapeError unless h0 broadcasts to the result without the axis.
Tensor initial_state(const Tensor& h0, const TensorType& full, int axis) {
  const TensorType expected = reduced_type(full, {axis});
  const auto fits = [&] {
    if (h0.rank() == 0) return true;
    if (h0.type().is_named() != expected.is_named() || h0.rank() > expected.rank()) return false;
    for (int i = 0; i < h0.rank(); ++i) {
      const Dim& dim = dim_at(h0.type(), i);
      if (expected.is_named() ? find(expected.dims(), dim) < 0
                              : !fits_size(dim, dim_at(expected, i + expected.rank() - h0.rank())))
        return false;
    }
    return true;
  };
  if (!fits())
    throw ShapeError(str(kName, ": h0 ", h0.type(), " does not broadcast to the state ", expected,
                         ", which has the dims of the result ", full, " without ",
                         axis_name(full, axis)));
  return with_dims(h0, expected.dims());
}

struct ScanOperands {
  Tensor a, b;
  std::optional<Tensor> h0, input;
};

/// Returns the operands cut to slices of their dims (meet_slices), or nothing if none is cut.
std::optional<ScanOperands> cut_to_slices(const Tensor& a, const Tensor& b,
                                          const std::optional<Tensor>& h0,
                                          const std::optional<Tensor>& input) {
  ScanOperands cut{a, b, h0, input};
  std::vector<Tensor*> operands{&cut.a, &cut.b};
  if (cut.h0) operands.push_back(&*cut.h0);
  if (cut.input) operands.push_back(&*cut.input);
  if (!meet_slices(operands)) return std::nullopt;
  return cut;
}

}  // namespace

Tensor linear_scan(const Tensor& a, const Tensor& b, const std::optional<Tensor>& h0,
                   const Axis& time, const LinearScan& options) {
  constexpr std::string_view kRepair = "cast it to f32 or f64";
  check_float(kName, a, kRepair);
  check_float(kName, b, kRepair);
  check_dtypes(a, b, "b");
  std::vector<TensorType> types{a.type(), b.type()};
  if (options.input) {
    check_float(kName, *options.input, kRepair);
    check_dtypes(a, *options.input, "input");
    types.push_back(options.input->type());
  }
  if (h0) {
    check_float(kName, *h0, kRepair);
    check_dtypes(a, *h0, "h0");
  }
  if (has_slices())
    if (const auto cut = cut_to_slices(a, b, h0, options.input))
      return linear_scan(cut->a, cut->b, cut->h0, time,
                         {.input = cut->input, .reverse = options.reverse});
  constexpr std::string_view kRoles[] = {"a", "b", "input"};
  const TensorType full = broadcast(kName, types, kRoles, a.dtype());
  const int axis = time.in(full, kName);
  // Traces do not know whether entries differ: operands have all dims if they may.
  const bool is_ragged = full.is_ragged();
  // If padding is behind an entry's last element, a walk forwards ends there. Its gradient walks
  // back, and comes out of the padding with zeros.
  const bool ends_in_padding = !options.reverse && !has_lengths_along(full, axis) &&
                               lacking_axis(a, full, axis).is_defined();
  ScanArguments arguments(full, axis, is_ragged && !ends_in_padding);
  arguments.add(kScanA, a);
  if (is_ragged && ends_in_padding) {
    arguments.add(kScanB,
                  without_padding(with_dims(options.input ? b * *options.input : b, full.dims()),
                                  {axis}, 0.));
  } else if (is_ragged) {
    // Padding keeps the state: h = 1 h + -0. Then a walk from the end arrives with h0 at the last
    // element of each entry.
    arguments.add(kScanB, options.input ? b * *options.input : b);
    arguments.in[0] = without_padding(arguments.in[0], {axis}, 1.);
    arguments.in[1] = without_padding(arguments.in[1], {axis}, -0.);
  } else {
    arguments.add(kScanB, b);
    if (options.input) arguments.add(kScanX, *options.input);
    arguments.make_full();
  }
  if (h0) {
    arguments.attrs.operands |= kScanInitial;
    arguments.in.push_back(initial_state(*h0, full, axis));
  }
  arguments.attrs.axis = axis;
  arguments.attrs.reverse = options.reverse;
  const Tensor h = bind(linear_scan_op, std::as_const(arguments.in), make_attrs(arguments.attrs));
  return without_padding(h, {axis}, 0.);
}

Tensor linear_scan(const Tensor& a, const Tensor& b, const Axis& time, const LinearScan& options) {
  return linear_scan(a, b, std::nullopt, time, options);
}

}  // namespace reel
