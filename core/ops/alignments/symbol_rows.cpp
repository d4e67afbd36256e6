#include "reel/core/ops/alignments/symbol_rows.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "reel/core/ops/alignments/alignments.h"
#include "reel/core/ops/kernels/isa.h"
#include "reel/core/ops/kernels/softmax_table.h"
#include "reel/core/ops/shape/new_dims.h"

namespace reel {
namespace {

const SoftmaxTable& table() {
  static const SoftmaxTable& chosen = for_this_processor(REEL_TABLES(softmaxes));
  return chosen;
}

}  // namespace

AlignmentSizes alignment_sizes(const KernelArgs& args, int axes) {
  const TensorType& logits = args.input(0).type();
  const auto size = [&](int from_end) {
    return dim_at(logits, logits.rank() - from_end).raw_size();
  };
  AlignmentSizes sizes{.entries = args.input(2).type().numel(),
                       .time = size(axes),
                       .prefixes = axes == 3 ? size(2) : 1,
                       .labels = dim_at(args.input(1).type(), args.input(1).rank() - 1).raw_size(),
                       .vocab = size(1),
                       .blank = args.attr<AlignmentAttrs>().blank};
  if (sizes.blank < 0) sizes.blank += sizes.vocab;
  return sizes;
}

AlignmentEntry alignment_entry(const KernelArgs& args, const AlignmentSizes& sizes,
                               std::int64_t entry, std::int64_t most) {
  const std::int64_t frames = args.input(2).data<std::int32_t>()[entry],
                     count = args.input(3).data<std::int32_t>()[entry];
  // Padding of entries may have any lengths.
  return {.frames = std::clamp(frames, std::int64_t{0}, sizes.time),
          .count = std::clamp(count, std::int64_t{0}, std::max(most, std::int64_t{0})),
          .fits = frames >= 0 && frames <= sizes.time && count >= 0 && count <= most,
          .labels = args.input(1).data<std::int32_t>() + entry * sizes.labels};
}

bool has_valid_symbols(const AlignmentSizes& sizes, const AlignmentEntry& entry) {
  const auto is_valid = [&](std::int64_t symbol) { return symbol >= 0 && symbol < sizes.vocab; };
  return is_valid(sizes.blank) && std::all_of(entry.labels, entry.labels + entry.count, is_valid);
}

template <class T>
void write_normalisers(const T* logits, std::int64_t rows, std::int64_t vocab, double* to) {
  if (rows > 0) table().normalisers[std::is_same_v<T, double>](logits, to, {rows, vocab, 1});
}

template <class T>
void write_shares(const T* logits, std::int64_t vocab, double normaliser, double factor, T* to) {
  if (static_cast<T>(factor) == T(0)) {
    std::fill_n(to, vocab, T(0));
    return;
  }
  // The loop rounds the normaliser to T; the factor makes up for it.
  const double rounding = static_cast<double>(static_cast<T>(normaliser)) - normaliser;
  if (rounding != 0 && std::isfinite(rounding)) factor *= std::exp(rounding);
  table().scaled_shares[std::is_same_v<T, double>](logits, to, vocab, normaliser, factor);
}

template void write_normalisers(const float*, std::int64_t, std::int64_t, double*);
template void write_normalisers(const double*, std::int64_t, std::int64_t, double*);
template void write_shares(const float*, std::int64_t, double, double, float*);
template void write_shares(const double*, std::int64_t, double, double, double*);

}  // namespace reel
