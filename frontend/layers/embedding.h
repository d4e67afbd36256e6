// frontend/layers/embedding.h — Embedding and SparseEmbedding, a vector for every symbol.
#pragma once

#include <cstdint>
#include <optional>

#include "reel/core/base/visibility.h"
#include "reel/core/types/dim.h"
#include "reel/core/types/dtype.h"
#include "reel/core/types/tensor.h"
#include "reel/frontend/layers/initial_values.h"
#include "reel/frontend/sparse/embedding_table.h"

REEL_API_BEGIN
namespace reel {

/// Options of Embedding::init and SparseEmbedding::init.
struct EmbeddingOptions {
  DType dtype = f32;  ///< of the parameters
  /// A symbol that stands for no symbol: its vector is zeros, and has no gradient. For an
  /// Embedding any number, such as -1; for a SparseEmbedding a symbol of its table.
  std::optional<std::int64_t> padding_symbol = {};
  InitialValues weight = {};  ///< of the table; default: the standard normal distribution
};

/// A table of vectors, one for every index along `vocab`.
struct Embedding {
  Tensor weight;                                    ///< {vocab, feature}
  Dim vocab = 0, feature = 0;                       ///< dims of symbols and vectors
  std::optional<std::int64_t> padding_symbol = {};  ///< its vector is zeros

  /// Returns a table with the values of options.weight, and zeros for the padding symbol. Throws
  /// ArgumentError if a dim has no name or no known size, or if both are the same; DTypeError for a
  /// dtype that is not floating.
  static Embedding init(const Dim& vocab, const Dim& feature, const EmbeddingOptions& options = {});

  /// Returns the vectors of symbols: [..., feature]. symbols: i32 or i64, [...], each from 0 to
  /// n - 1 for n symbols, or the padding symbol. In padding they may have any value, and the
  /// vectors are zeros. Throws IndexError for any other symbol: gather counts negative indices from
  /// the end, but -1 often stands for no symbol.
  Tensor operator()(const Tensor& symbols) const;
};

/// An Embedding for large vocabularies: the gradient of its table consists of the rows that were
/// read.
struct SparseEmbedding {
  EmbeddingTable weight;                            ///< {vocab, feature}
  Dim vocab = 0, feature = 0;                       ///< dims of symbols and vectors
  std::optional<std::int64_t> padding_symbol = {};  ///< its vector is zeros

  /// Returns a table as Embedding::init does. Also throws ArgumentError for a padding symbol that
  /// has no row: a gradient of rows contains its row, with zeros.
  static SparseEmbedding init(const Dim& vocab, const Dim& feature,
                              const EmbeddingOptions& options = {});
  /// Returns the vectors of symbols, and throws, as Embedding does.
  Tensor operator()(const Tensor& symbols) const;
};

}  // namespace reel
REEL_API_END
