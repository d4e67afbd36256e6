// frontend/layers/embedding.h — Embedding and SparseEmbedding, a vector for every symbol.
#pragma once

#include "reel/core/base/visibility.h"
#include "reel/core/types/dim.h"
#include "reel/core/types/dtype.h"
#include "reel/core/types/tensor.h"
#include "reel/frontend/sparse/embedding_table.h"

REEL_API_BEGIN
namespace reel {

/// Options of Embedding::init and SparseEmbedding::init.
struct EmbeddingOptions {
  DType dtype = f32;  ///< of the parameters
};

/// A table of vectors, one for every index along `vocab`.
struct Embedding {
  Tensor weight;               ///< {vocab, feature}
  Dim vocab = 0, feature = 0;  ///< dims of symbols and vectors

  /// Returns a table drawn from the standard normal distribution. Throws ArgumentError if a dim has
  /// no name or no known size, or if both are the same; DTypeError for a dtype that is not
  /// floating.
  static Embedding init(const Dim& vocab, const Dim& feature, const EmbeddingOptions& options = {});

  /// Returns the vectors of symbols: [..., feature]. symbols: i32 or i64, [...], each from 0 to
  /// n - 1 for n symbols. In padding they may have any value, and the vectors are zeros. Throws
  /// IndexError for any other symbol: gather counts negative indices from the end, but -1 often
  /// stands for no symbol.
  Tensor operator()(const Tensor& symbols) const;
};

/// An Embedding for large vocabularies: the gradient of its table consists of the rows that were
/// read.
struct SparseEmbedding {
  EmbeddingTable weight;       ///< {vocab, feature}
  Dim vocab = 0, feature = 0;  ///< dims of symbols and vectors

  /// Returns a table as Embedding::init does.
  static SparseEmbedding init(const Dim& vocab, const Dim& feature,
                              const EmbeddingOptions& options = {});
  /// Returns the vectors of symbols, and throws, as Embedding does.
  Tensor operator()(const Tensor& symbols) const;
};

}  // namespace reel
REEL_API_END
