// Fourier transforms: the ops and the public functions.
#include "reel/core/ops/transforms/transforms.h"

#include <optional>
#include <string>
#include <utility>

#include "reel/core/base/str.h"
#include "reel/core/functions/dim_arithmetic.h"
#include "reel/core/functions/transforms.h"
#include "reel/core/op/axes.h"
#include "reel/core/op/bind.h"
#include "reel/core/op/vjp.h"
#include "reel/core/ops.h"
#include "reel/core/ops/reductions/reduce.h"
#include "reel/core/ops/registry.h"
#include "reel/core/ops/shape/along_axis.h"
#include "reel/core/ops/shape/dims.h"
#include "reel/core/ops/shape/iteration_batching.h"
#include "reel/core/ops/shape/new_dims.h"
#include "reel/core/ops/shape/strided.h"
#include "reel/core/ops/transforms/lines.h"

namespace reel {
namespace {

// ---- Types --------------------------------------------------------------------------------------

/// Checks operand 0 and its axis, and operand 1, which must have the same type.
void check_lines(const TypeArgs& a) {
  const TensorType& x = a.in[0];
  check_float(a.op.name, x, "cast it to f32");
  const int axis = a.attr<TransformAttrs>().axis;
  const Dim& dim = dim_at(x, axis);
  const auto refuse = [&](const char* reason) {
    throw ShapeError(str(a.op.name, ": ", axis_name(x, axis), ' ', reason));
  };
  if (dim.is_ragged())
    refuse(
        "is ragged; transform frames of one size, as stft does, or rename it to a dim of one "
        "size, which pads with zeros");
  if (is_unknown(dim)) refuse("has a size that only a run knows; slice it to a known size");
  if (dim.has_size() && dim.raw_size() == 0) refuse("has no elements");
  if (has_lengths_along(x, axis))
    refuse("has lengths of a ragged dim over it, which mean nothing for frequencies");
  if (a.in.size() > 1 && !(a.in[0] == a.in[1]))
    throw ShapeError(str(a.op.name, ": the parts differ: re is ", a.in[0], ", im is ", a.in[1]));
}

void add_type(TypeArgs& a, const Dim& to, int count) {
  for (int i = 0; i < count; ++i)
    a.out.push_back(
        TensorType(a.in[0].dtype(), with_dim(a.in[0].dims(), a.attr<TransformAttrs>().axis, to)));
}

void rfft_rule(TypeArgs& a) {
  check_lines(a);
  const auto& attrs = a.attr<TransformAttrs>();
  const Dim& dim = dim_at(a.in[0], attrs.axis);
  const std::int64_t bins = dim.has_size() ? dim.raw_size() / 2 + 1 : -1;
  add_type(a,
           checked_dim(a.op.name, attrs.to, bins,
                       [&] { return str("the spectrum of ", axis_name(a.in[0], attrs.axis)); }),
           2);
}

void irfft_rule(TypeArgs& a) {
  check_lines(a);
  const auto& attrs = a.attr<TransformAttrs>();
  const Dim &bins = dim_at(a.in[0], attrs.axis), &to = *attrs.to;
  if (to.is_ragged())
    throw ShapeError(str(a.op.name, ": dim to is ragged: ", to, "; give a dim of one size"));
  if (bins.has_size() && to.has_size() &&
      (to.raw_size() < 1 || to.raw_size() / 2 + 1 != bins.raw_size()))
    throw ShapeError(str(a.op.name, ": dim to has size ", to.raw_size(), ", whose spectrum has ",
                         to.raw_size() / 2 + 1, " frequencies, but x ", a.in[0], " has ",
                         bins.raw_size()));
  add_type(a, to, 1);
}

void fft_rule(TypeArgs& a) {
  check_lines(a);
  add_type(a, dim_at(a.in[0], a.attr<TransformAttrs>().axis), 2);
}

// ---- Kernels ------------------------------------------------------------------------------------

/// Returns the factors for n elements along the axis.
TransformFactors factors_of(const TransformAttrs& attrs, std::int64_t n) {
  return {.scale = attrs.divides ? 1 / static_cast<double>(n) : 1,
          .middle = attrs.doubles ? 2. : 1.};
}

template <class Fn>
void with_float(DType dtype, Fn&& fn) {
  if (dtype == f64)
    fn(double{});
  else
    fn(float{});
}

void rfft_kernel(KernelArgs& a) {
  const auto& attrs = a.attr<TransformAttrs>();
  const Tensor &x = a.input(0), &re = a.make(0), &im = a.make(1);
  if (x.type().numel() == 0) return;
  const AxisView view = view_axis(x.type(), attrs.axis);
  with_float(x.dtype(), [&]<class T>(T) {
    rfft_lines(view, factors_of(attrs, view.size), x.data<T>(), re.data<T>(), im.data<T>());
  });
}

void irfft_kernel(KernelArgs& a) {
  const auto& attrs = a.attr<TransformAttrs>();
  const Tensor& x = a.make();
  if (x.type().numel() == 0) return;
  const AxisView view = view_axis(x.type(), attrs.axis);
  with_float(x.dtype(), [&]<class T>(T) {
    irfft_lines(view, factors_of(attrs, view.size), a.input(0).data<T>(), a.input(1).data<T>(),
                x.data<T>());
  });
}

void fft_kernel(KernelArgs& a) {
  const auto& attrs = a.attr<TransformAttrs>();
  const Tensor &re = a.make(0), &im = a.make(1);
  if (re.type().numel() == 0) return;
  const AxisView view = view_axis(re.type(), attrs.axis);
  with_float(re.dtype(), [&]<class T>(T) {
    fft_lines(view, attrs.is_inverse, factors_of(attrs, view.size).scale, a.input(0).data<T>(),
              a.input(1).data<T>(), re.data<T>(), im.data<T>());
  });
}

// ---- vjp ----------------------------------------------------------------------------------------

void rfft_vjp(Vjp& at) {
  TransformAttrs attrs = at.attr<TransformAttrs>();
  attrs.to = canonical(dim_at(at.input_type(0), attrs.axis));
  at.add(0, bind(irfft_op, {at.cotangent(0), at.cotangent(1)}, make_attrs(attrs)));
}

void add_parts(Vjp& at, const Tensors& parts) {
  for (std::size_t i = 0; i < 2; ++i)
    if (at.needs(i)) at.add(i, parts[i]);
}

void irfft_vjp(Vjp& at) {
  TransformAttrs attrs = at.attr<TransformAttrs>();
  attrs.to = named_dim(at.input_type(0), attrs.axis);
  add_parts(at, bind_all(rfft_op, {at.cotangent()}, make_attrs(attrs)));
}

void fft_vjp(Vjp& at) {
  TransformAttrs attrs = at.attr<TransformAttrs>();
  attrs.is_inverse = !attrs.is_inverse;
  add_parts(at, bind_all(fft_op, {at.cotangent(0), at.cotangent(1)}, make_attrs(attrs)));
}

// ---- Samples ------------------------------------------------------------------------------------

/// Returns samples along axes of these sizes, as plain and as named dims. is_inverse: operands have
/// size / 2 + 1 frequencies.
OpSamples transform_samples(std::size_t operands, bool has_spectrum_in, bool has_to) {
  OpSamples result;
  const auto add = [&](Dims dims, int axis, TransformAttrs attrs) {
    attrs.axis = axis;
    result.push_back({std::vector<SampleInput>(operands, {TensorType(f32, std::move(dims))}),
                      make_attrs(std::move(attrs))});
  };
  const Dims& dims = sample_dims();
  for (const std::int64_t n : {1, 2, 5, 6}) {
    const std::int64_t size = has_spectrum_in ? n / 2 + 1 : n;
    const auto to = has_spectrum_in ? std::optional<Dim>(n) : std::nullopt;
    for (const bool flag : {false, true}) {
      const TransformAttrs attrs{
          .doubles = flag && has_to, .divides = flag, .is_inverse = flag && !has_to, .to = to};
      add({size}, 0, attrs);
      add({3, size}, 1, attrs);
      add({2, size, 5}, 1, attrs);
    }
    const Dim along("along", size), made("made", has_spectrum_in ? n : n / 2 + 1);
    const TransformAttrs named{.doubles = has_to,
                               .to = has_to ? std::optional(made) : std::nullopt};
    add({dims[0], dims[1], along}, 2, named);
    add({along, dims[2]}, 0, named);
    add({0, size}, 1, {.to = to});
  }
  return result;
}

constexpr auto kBatching = axis_across_iterations<TransformAttrs>;
constexpr auto kAxes = axes_beside_worked<TransformAttrs>;

}  // namespace

const Op rfft_op{
    .name = "rfft",
    .type = rfft_rule,
    .kernel = rfft_kernel,
    .vjp = rfft_vjp,
    .samples = [] { return transform_samples(1, false, true); },
    .iteration_batching = kBatching,
    .axes = kAxes,
    .fails = fails_without_memory,
};
const Op irfft_op{
    .name = "irfft",
    .type = irfft_rule,
    .kernel = irfft_kernel,
    .vjp = irfft_vjp,
    .samples = [] { return transform_samples(2, true, true); },
    .iteration_batching = kBatching,
    .axes = kAxes,
    .fails = fails_without_memory,
};
const Op fft_op{
    .name = "fft",
    .type = fft_rule,
    .kernel = fft_kernel,
    .vjp = fft_vjp,
    .samples = [] { return transform_samples(2, false, false); },
    .iteration_batching = kBatching,
    .axes = kAxes,
    .fails = fails_without_memory,
};

// ---- Functions ----------------------------------------------------------------------------------

namespace {

const Op* const kTransformOps[] = {&rfft_op, &irfft_op, &fft_op};

Complex complex_of(const Tensors& parts) { return {parts[0], parts[1]}; }

Complex transformed(const char* name, const Complex& x, const Axis& along, bool is_inverse) {
  check_defined(name, x.re);
  check_defined(name, x.im);
  const TransformAttrs attrs{
      .axis = along.in(x.re, name), .divides = is_inverse, .is_inverse = is_inverse};
  return complex_of(bind_all(fft_op, {x.re, x.im}, make_attrs(attrs)));
}

/// Returns `to` if it is a dim; a dim of its name if it is only a name; else the computed dim.
Dim new_axis(const Dim& computed, const std::optional<Dim>& to) {
  if (!to) return computed;
  if (!to->is_undefined()) return canonical(*to);
  return *changed_dim(computed, to, {&computed, 1}, computed.raw_size(),
                      [&] { return computed.lengths(); });
}

}  // namespace

std::span<const Op* const> transform_ops() { return kTransformOps; }

Complex rfft(const Tensor& x, const Axis& along, std::optional<Dim> to) {
  const int axis = along.in(x, "rfft");
  const Dim dim = dim_at(x.type(), axis);
  TransformAttrs attrs{.axis = axis};
  if (dim.is_named() ? !dim.is_ragged() : to.has_value())
    attrs.to = new_axis(canonical(dim) / 2 + 1, to);
  return complex_of(bind_all(rfft_op, {x}, make_attrs(std::move(attrs))));
}

Tensor irfft(const Complex& x, const Axis& along, std::optional<Dim> to) {
  check_defined("irfft", x.re);
  check_defined("irfft", x.im);
  const int axis = along.in(x.re, "irfft");
  const Dim dim = dim_at(x.re.type(), axis);
  TransformAttrs attrs{.axis = axis, .doubles = true, .divides = true, .to = Dim(1)};
  if (!is_unknown(dim) && !dim.is_ragged())
    attrs.to = new_axis(to && !to->is_undefined() ? *to : (canonical(dim) - 1) * 2, to);
  if (attrs.to->is_named() != dim.is_named() && !is_unknown(dim))
    throw ShapeError(str("irfft: dim to is ", *attrs.to, ", but x ", x.re.type(), " has ",
                         dim.is_named() ? "named" : "plain", " dims"));
  return bind(irfft_op, {x.re, x.im}, make_attrs(std::move(attrs)));
}

Complex fft(const Complex& x, const Axis& along) { return transformed("fft", x, along, false); }
Complex ifft(const Complex& x, const Axis& along) { return transformed("ifft", x, along, true); }

}  // namespace reel
