// ctc, transducer: sums over all alignments of labels to frames, and the ops of their gradients.
#include "reel/core/ops/alignments/alignments.h"

#include "reel/core/base/str.h"
#include "reel/core/op/axes.h"
#include "reel/core/op/bind.h"
#include "reel/core/op/vjp.h"
#include "reel/core/ops.h"
#include "reel/core/ops/reductions/reduce.h"
#include "reel/core/ops/registry.h"
#include "reel/core/ops/shape/iteration_batching.h"
#include "reel/core/ops/shape/new_dims.h"
#include "reel/core/types/sizes.h"

namespace reel {
namespace {

/// Axes of logits behind the dims of entries.
constexpr int kCtcAxes = 2, kTransducerAxes = 3;

Dims leading(const TensorType& logits, int axes) {
  const Dims dims = logits.dims();
  return Dims(dims.begin(), dims.end() - axes);
}

void check_integers(const TypeArgs& a, std::size_t i, const Dims& dims, const char* name) {
  if (!(a.in[i] == TensorType(i32, dims)))
    throw ShapeError(str(a.op.name, ": ", name, " must be ", TensorType(i32, dims), " for logits ",
                         a.in[0], ", got ", a.in[i]));
}

/// Checks logits, labels and lengths.
template <int kAxes>
void check_entries(const TypeArgs& a) {
  const TensorType& logits = a.in[0];
  check_float(a.op.name, logits, "cast it to f32");
  if (!logits.is_named() || logits.rank() < kAxes)
    throw ShapeError(
        str(a.op.name, ": logits must have ", kAxes, " named dims or more, got ", logits));
  Dims entries = leading(logits, kAxes);
  check_integers(a, 2, entries, "frames");
  check_integers(a, 3, entries, "counts");
  if (a.in[1].rank() != static_cast<int>(entries.size()) + 1)
    throw ShapeError(str(a.op.name, ": labels have the dims of entries and one more, got ", a.in[1],
                         " for logits ", logits));
  entries.push_back(kAxes == kTransducerAxes ? dim_at(logits, logits.rank() - 2)
                                             : dim_at(a.in[1], a.in[1].rank() - 1));
  check_integers(a, 1, entries, "labels");
}

TensorType type_of_normalisers(const TensorType& logits) { return {f64, leading(logits, 1)}; }

template <int kAxes>
void forward_type(TypeArgs& a) {
  check_entries<kAxes>(a);
  a.out.push_back(a.in[0].with(leading(a.in[0], kAxes)));
  if (a.attr<AlignmentAttrs>().has_normalisers) a.out.push_back(type_of_normalisers(a.in[0]));
}

template <int kAxes>
void gradient_type(TypeArgs& a) {
  check_entries<kAxes>(a);
  check_operand(a.op.name, "the cotangent", a.in[4], a.in[0].with(leading(a.in[0], kAxes)));
  if (a.attr<AlignmentAttrs>().has_normalisers)
    check_operand(a.op.name, "normalisers", a.in[5], type_of_normalisers(a.in[0]));
  a.out.push_back(a.in[0]);
}

/// The dims of entries are mapped. The others depend on each other.
void alignment_axes(const OpCall& call, AxisFactors& f) {
  const int entries = call.in[2].rank();
  for (std::size_t i = 0; i < call.in.size(); ++i)
    for (int axis = 0; axis < entries; ++axis) f.in(i, axis) = axis;
}

Tensors alignments_across_iterations(const IterationBatch& at) {
  if (at.is_summed) return {};
  Tensors in;
  for (std::size_t i = 0; i < at.in.size(); ++i) in.push_back(at.many(i));
  return bind_all(at.op, in, at.attrs);
}

/// Returns x with zeros behind the lengths of entries. x: as normalisers.
template <int kAxes>
Tensor within_lengths(const Tensor& x, const Tensor& frames, const Tensor& counts) {
  const auto place = [&](int from_end) {
    return expand(range(x.dims()[static_cast<std::size_t>(x.rank() - from_end)]), x.dims());
  };
  Tensor is_within = place(kAxes - 1) < expand(frames, x.dims());
  if (kAxes == kTransducerAxes) is_within = is_within && place(1) <= expand(counts, x.dims());
  return where(is_within, x, 0);
}

template <const Op& kGradient, int kAxes>
void forward_vjp(Vjp& at) {
  if (!at.needs(0)) return;
  const Tensor& logits = at.input(0);
  if (at.has_cotangent(0)) {
    Tensors operands{logits, at.input(1), at.input(2), at.input(3), at.cotangent(0)};
    if (at.attr<AlignmentAttrs>().has_normalisers) operands.push_back(at.output(1));
    at.add(0, bind_all(kGradient, operands, at.attrs())[0]);
  }
  if (at.output_count() > 1 && at.has_cotangent(1)) {
    const Tensor g =
        cast(within_lengths<kAxes>(at.cotangent(1), at.input(2), at.input(3)), logits.dtype());
    const Tensor masked = where(expand(g == 0, logits.dims()), 0, logits);
    at.add(0, softmax(masked, logits.dims().back()) * expand(g, logits.dims()));
  }
}

template <std::pair<Tensor, Tensor> (*kVjp)(const AlignmentGradient&)>
void gradient_vjp(Vjp& at) {
  if (!at.needs(0) && !at.needs(4)) return;
  const auto [logits, g] = kVjp({.logits = at.input(0),
                                 .labels = at.input(1),
                                 .frames = at.input(2),
                                 .counts = at.input(3),
                                 .g = at.input(4),
                                 .cotangent = at.cotangent(),
                                 .blank = at.attr<AlignmentAttrs>().blank});
  if (at.needs(0)) at.add(0, logits);
  if (at.needs(4)) at.add(4, g);
}

// ---- Samples ------------------------------------------------------------------------------------

struct AlignmentSample {
  Dims logits, labels;
  double frames, counts;  ///< the largest ones
  std::int64_t blank;
};

template <int kAxes>
OpSamples samples(bool is_gradient) {
  static const Dim& batch = *new Dim("batch", 2);
  static const Dim& time = *new Dim("time", tensor({3, 2}, {batch}));
  static const Dim& letters = *new Dim("letters", tensor({3, 2}, {batch}));
  static const Dim &frames = *new Dim("frames", 4), &some = *new Dim("some", 2),
                   &vocab = *new Dim("vocab", 3), &none = *new Dim("none", 0);
  const bool has_prefixes = kAxes == kTransducerAxes;
  const auto sample = [&](const Dims& entries, const Dim& of_frames, const Dim& of_labels,
                          double lengths, double counts, std::int64_t blank) {
    Dims logits = entries, labels = entries;
    logits.push_back(of_frames);
    if (has_prefixes) logits.push_back(of_labels);
    logits.push_back(vocab);
    labels.push_back(of_labels);
    return AlignmentSample{logits, labels, lengths, counts, blank};
  };
  const std::vector<AlignmentSample> all = {
      sample({batch}, time, letters, 2, 1, 0), sample({}, frames, some, 4, 1, -1),
      sample({batch}, frames, letters, 4, 1, 0), sample({batch}, none, some, 0, 1, 0),
      sample({none}, frames, some, 4, 1, 0)};
  OpSamples result;
  for (const AlignmentSample& at : all)
    for (const bool has_normalisers : {false, true}) {
      const Dims entries(at.logits.begin(), at.logits.end() - kAxes);
      const double shift = at.blank == 0 ? 1 : 0;
      std::vector<SampleInput> inputs{{TensorType(f32, at.logits)},
                                      {TensorType(i32, at.labels), shift, shift + 1, false},
                                      {TensorType(i32, entries), at.frames / 2, at.frames, false},
                                      {TensorType(i32, entries), 0, at.counts, false}};
      if (is_gradient) {
        if (has_normalisers) continue;  // drawn ones would not fit the logits
        inputs.push_back({TensorType(f32, entries)});
      }
      result.push_back({inputs, make_attrs(AlignmentAttrs{at.blank, has_normalisers})});
    }
  return result;
}

template <int kAxes>
OpSamples forward_samples() {
  return samples<kAxes>(false);
}
template <int kAxes>
OpSamples gradient_samples() {
  return samples<kAxes>(true);
}

OpReads forward_reads(const Attrs* attrs, std::uint32_t) {
  return {.inputs = 0b1111, .outputs = get<AlignmentAttrs>(attrs).has_normalisers ? 0b10u : 0u};
}

}  // namespace

constinit const Op ctc_op{
    .name = "ctc",
    .type = forward_type<kCtcAxes>,
    .kernel = ctc_kernel,
    .vjp = forward_vjp<ctc_grad_op, kCtcAxes>,
    .reads_by = forward_reads,
    .samples = forward_samples<kCtcAxes>,
    .iteration_batching = alignments_across_iterations,
    .axes = alignment_axes,
    .fails = fails_without_memory,
};

constinit const Op ctc_grad_op{
    .name = "ctc_grad",
    .type = gradient_type<kCtcAxes>,
    .kernel = ctc_grad_kernel,
    .vjp = gradient_vjp<ctc_gradient_vjp>,
    .reads = {.inputs = 0b11111},
    .samples = gradient_samples<kCtcAxes>,
    .iteration_batching = alignments_across_iterations,
    .axes = alignment_axes,
    .fails = fails_without_memory,
};

constinit const Op transducer_op{
    .name = "transducer",
    .type = forward_type<kTransducerAxes>,
    .kernel = transducer_kernel,
    .vjp = forward_vjp<transducer_grad_op, kTransducerAxes>,
    .reads_by = forward_reads,
    .samples = forward_samples<kTransducerAxes>,
    .iteration_batching = alignments_across_iterations,
    .axes = alignment_axes,
    .fails = fails_without_memory,
};

constinit const Op transducer_grad_op{
    .name = "transducer_grad",
    .type = gradient_type<kTransducerAxes>,
    .kernel = transducer_grad_kernel,
    .vjp = gradient_vjp<transducer_gradient_vjp>,
    .reads = {.inputs = 0b11111},
    .samples = gradient_samples<kTransducerAxes>,
    .iteration_batching = alignments_across_iterations,
    .axes = alignment_axes,
    .fails = fails_without_memory,
};

namespace {
constinit thread_local int ops_off = 0;
}
AlignmentOpsOff::AlignmentOpsOff() { ++ops_off; }
AlignmentOpsOff::~AlignmentOpsOff() { --ops_off; }
bool AlignmentOpsOff::holds() { return ops_off > 0; }

namespace {
const Op* const kAlignmentOps[] = {&ctc_op, &ctc_grad_op, &transducer_op, &transducer_grad_op};
}
std::span<const Op* const> alignment_ops() { return kAlignmentOps; }

}  // namespace reel
