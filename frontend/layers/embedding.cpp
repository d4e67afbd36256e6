#include "reel/frontend/layers/embedding.h"

#include <utility>

#include "reel/core/base/errors.h"
#include "reel/core/base/str.h"
#include "reel/core/ops.h"
#include "reel/core/ops/indexing/index.h"
#include "reel/frontend/layers/initial_values.h"

namespace reel {
namespace {

/// Returns the vectors of symbols; zeros for the padding symbol.
template <class Layer>
Tensor vectors_of(const char* name, const Layer& layer, const Tensor& weight,
                  const Tensor& symbols) {
  constexpr GatherOptions kFromFront{.from_end = false};
  if (!layer.padding_symbol) return gather_for(name, weight, symbols, layer.vocab, kFromFront);
  check_defined(name, symbols);
  const std::int64_t padding = *layer.padding_symbol;
  const bool has_row = padding >= 0 && padding < layer.vocab.size();
  const Tensor is_padding = symbols == padding;
  const Tensor rows = has_row ? symbols : where(is_padding, 0, symbols);
  const Tensor vectors = gather_for(name, weight, rows, layer.vocab, kFromFront);
  return where(expand(is_padding, vectors.dims()), 0, vectors);
}

}  // namespace

Embedding Embedding::init(const Dim& vocab, const Dim& feature, const EmbeddingOptions& options) {
  detail::check_parameter_dim("Embedding", "vocab", vocab);
  detail::check_parameter_dim("Embedding", "feature", feature);
  detail::check_parameter_dtype("Embedding", options.dtype);
  if (vocab == feature)
    throw ArgumentError(str("Embedding: vocab and feature are the same dim, ", vocab,
                            "; make another one for feature"));
  Tensor weight = options.weight
                      ? detail::initial_weight("Embedding", options.weight, {vocab, feature},
                                               vocab.size(), feature.size(), options.dtype)
                      : random_normal({vocab, feature}, options.dtype);
  if (options.padding_symbol)
    weight = where(expand(range(vocab, i64) == *options.padding_symbol, weight.dims()), 0, weight);
  return {weight, vocab, feature, options.padding_symbol};
}

Tensor Embedding::operator()(const Tensor& symbols) const {
  return vectors_of("Embedding", *this, weight, symbols);
}

SparseEmbedding SparseEmbedding::init(const Dim& vocab, const Dim& feature,
                                      const EmbeddingOptions& options) {
  Embedding whole = Embedding::init(vocab, feature, options);
  if (const auto padding = options.padding_symbol;
      padding && !(*padding >= 0 && *padding < vocab.size()))
    throw ArgumentError(str("SparseEmbedding: padding_symbol ", *padding, " is no symbol of ",
                            vocab, "; a gradient of rows needs a row for it"));
  return {EmbeddingTable(std::move(whole.weight)), vocab, feature, options.padding_symbol};
}

Tensor SparseEmbedding::operator()(const Tensor& symbols) const {
  return vectors_of("SparseEmbedding", *this, weight.dense(), symbols);
}

}  // namespace reel
