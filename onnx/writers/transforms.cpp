// Writers of Fourier transforms, as nodes DFT: complex numbers are one tensor there, with the parts
// along the last axis.
#include "reel/core/ops/transforms/transforms.h"

#include <cstdint>
#include <vector>

#include "reel/core/ops.h"
#include "reel/core/ops/shape/new_dims.h"
#include "reel/core/types/mode.h"
#include "reel/onnx/writer_registry.h"

namespace reel::exported {
namespace {

/// Writes one transform. An axis of size 1 in front stands for the batch of a DFT.
class TransformWriter {
 public:
  /// with_size: the type with n elements along the axis.
  TransformWriter(const WriteCall& call, const TensorType& with_size)
      : call_(call), attrs_(call.attr<TransformAttrs>()), rank_(with_size.rank()) {
    n_ = known_size(dim_at(with_size, attrs_.axis));
    if (n_ < 0) throw NotExpressible{"a transform needs a size that is known when it is saved"};
  }

  bool is_empty() const { return is_known_empty(call_.type_out()); }
  Name zeros() const {
    return call_.to.expand(call_.to.model().number(0, call_.type_out().dtype()),
                           call_.type_out().dims());
  }

  /// Returns numbers as the operand of a DFT.
  Name operand(const Names& parts) const {
    Names columns;
    for (const Name& part : parts) columns.push_back(call_.to.unsqueeze(part, {0, rank_ + 1}));
    return columns.size() == 1 ? columns[0] : call_.to.concat(columns, rank_ + 1);
  }
  Name transformed(const Name& x, bool is_inverse, bool is_one_sided) const {
    return call_.to.add("DFT", {x},
                        {{"axis", integer(attrs_.axis + 1)},
                         {"inverse", integer(is_inverse)},
                         {"onesided", integer(is_one_sided)}});
  }
  /// Returns one part of a DFT's result.
  Name part(const Name& y, int which) const {
    return call_.to.squeeze(call_.to.add("Gather", {y, call_.to.model().integer(which)},
                                         {{"axis", integer(rank_ + 1)}}),
                            {0});
  }
  /// Returns x with `count` zeros behind it along the axis. x: an operand of a DFT.
  Name padded(const Name& x, std::int64_t count) const {
    if (count == 0) return x;
    std::vector<std::int64_t> pads(static_cast<std::size_t>(2 * (rank_ + 2)));
    pads[static_cast<std::size_t>(rank_ + 2 + attrs_.axis + 1)] = count;
    return call_.to.add("Pad", {x, call_.to.model().integers(pads)});
  }
  /// Returns x times a number.
  Name times(const Name& x, double factor) const {
    if (factor == 1) return x;
    return call_.to.add("Mul", {x, call_.to.model().number(factor, dtype())});
  }
  /// Returns a part of a spectrum times a number, and times 2 between frequency 0 and n / 2 if the
  /// op doubles these.
  Name weighted(const Name& x, double factor) const {
    if (!attrs_.doubles) return times(x, factor);
    std::vector<double> weights;
    for (std::int64_t k = 0; k < n_ / 2 + 1; ++k)
      weights.push_back(k == 0 || 2 * k == n_ ? factor : 2 * factor);
    Dims dims(static_cast<std::size_t>(rank_), Dim(1));
    dims[static_cast<std::size_t>(attrs_.axis)] = Dim(n_ / 2 + 1);
    const ModeScope aside({});
    return call_.to.add("Mul",
                        {x, call_.to.model().constant(reel::cast(tensor(weights, dims), dtype()))});
  }
  double n() const { return static_cast<double>(n_); }
  std::int64_t missing() const { return n_ - (n_ / 2 + 1); }  ///< frequencies of a whole spectrum
  const TransformAttrs& attrs() const { return attrs_; }

 private:
  DType dtype() const { return call_.type_out().dtype(); }

  const WriteCall& call_;
  const TransformAttrs& attrs_;
  int rank_;
  std::int64_t n_ = 0;
};

Names write_rfft(const WriteCall& call) {
  const TransformWriter to(call, call.type_in(0));
  if (to.is_empty()) return {to.zeros(), to.zeros()};
  const Name y = to.transformed(to.operand({call.in(0)}), false, true);
  const double factor = to.attrs().divides ? 1 / to.n() : 1;
  return {to.weighted(to.part(y, 0), factor), to.weighted(to.part(y, 1), factor)};
}

// The real part of the inverse DFT of half a spectrum. An inverse DFT divides by n.
Names write_irfft(const WriteCall& call) {
  const TransformWriter to(call, call.type_out());
  if (to.is_empty()) return {to.zeros()};
  const double factor = to.attrs().divides ? 1 : to.n();
  const Name half = to.operand({to.weighted(call.in(0), factor), to.weighted(call.in(1), factor)});
  return {to.part(to.transformed(to.padded(half, to.missing()), true, false), 0)};
}

Names write_fft(const WriteCall& call) {
  const TransformWriter to(call, call.type_in(0));
  if (to.is_empty()) return {to.zeros(), to.zeros()};
  const bool is_inverse = to.attrs().is_inverse;
  const Name y = to.transformed(to.operand({call.in(0), call.in(1)}), is_inverse, false);
  const double divided = to.attrs().divides ? 1 / to.n() : 1, by_node = is_inverse ? 1 / to.n() : 1;
  const double factor = to.attrs().divides == is_inverse ? 1 : divided / by_node;
  return {to.times(to.part(y, 0), factor), to.times(to.part(y, 1), factor)};
}

const Writer kTransformWriters[] = {
    {"rfft", write_rfft},
    {"irfft", write_irfft},
    {"fft", write_fft},
};

}  // namespace

std::span<const Writer> transform_writers() { return kTransformWriters; }

}  // namespace reel::exported
