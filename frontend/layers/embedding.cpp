#include "reel/frontend/layers/embedding.h"

#include <utility>

#include "reel/core/base/errors.h"
#include "reel/core/base/str.h"
#include "reel/core/ops.h"
#include "reel/core/ops/indexing/index.h"
#include "reel/frontend/layers/initial_values.h"

namespace reel {

Embedding Embedding::init(const Dim& vocab, const Dim& feature, const EmbeddingOptions& options) {
  detail::check_parameter_dim("Embedding", "vocab", vocab);
  detail::check_parameter_dim("Embedding", "feature", feature);
  detail::check_parameter_dtype("Embedding", options.dtype);
  if (vocab == feature)
    throw ArgumentError(str("Embedding: vocab and feature are the same dim, ", vocab,
                            "; make another one for feature"));
  return {random_normal({vocab, feature}, options.dtype), vocab, feature};
}

Tensor Embedding::operator()(const Tensor& symbols) const {
  return gather_for("Embedding", weight, symbols, vocab, {.from_end = false});
}

SparseEmbedding SparseEmbedding::init(const Dim& vocab, const Dim& feature,
                                      const EmbeddingOptions& options) {
  Embedding whole = Embedding::init(vocab, feature, options);
  return {EmbeddingTable(std::move(whole.weight)), vocab, feature};
}

Tensor SparseEmbedding::operator()(const Tensor& symbols) const {
  return gather_for("SparseEmbedding", weight.dense(), symbols, vocab, {.from_end = false});
}

}  // namespace reel
