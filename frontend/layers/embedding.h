// frontend/layers/embedding.h — Embedding and SparseEmbedding, a vector for every symbol.
#pragma once

#include "reel/core/dim.h"
#include "reel/core/dtype.h"
#include "reel/core/tensor.h"
#include "reel/frontend/embedding_table.h"

namespace reel {

struct EmbeddingOptions {
  DType dtype = f32;
};

/// A table of vectors, one for every position along `vocab`.
struct Embedding {
  Tensor weight;  ///< {vocab, feature}
  Dim vocab = 0, feature = 0;

  /// Drawn from the normal distribution with mean 0 and variance 1. Throws ArgumentError when a dim
  /// has no name or no known size.
  static Embedding init(const Dim& vocab, const Dim& feature, const EmbeddingOptions& options = {});

  /// symbols: i32 or i64, [...] -> [..., feature]. Negative symbols count from the end, as indices
  /// do; in padding they may be anything, and the vectors there are zeros. Throws IndexError for
  /// one out of range.
  Tensor operator()(const Tensor& symbols) const;
};

/// The same for a large vocabulary: the gradient of the table is the rows that were read of it.
struct SparseEmbedding {
  EmbeddingTable weight;  ///< {vocab, feature}
  Dim vocab = 0, feature = 0;

  static SparseEmbedding init(const Dim& vocab, const Dim& feature,
                              const EmbeddingOptions& options = {});
  Tensor operator()(const Tensor& symbols) const;
};

}  // namespace reel
