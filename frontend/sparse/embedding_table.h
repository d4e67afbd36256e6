// frontend/sparse/embedding_table.h — EmbeddingTable, a parameter with a sparse gradient of table
// rows.
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <tuple>
#include <vector>

#include "reel/core/base/visibility.h"
#include "reel/core/functions/indices.h"
#include "reel/frontend/sparse/indexed_slices.h"
#include "reel/frontend/tree/tree.h"

REEL_API_BEGIN
namespace reel {

/// A large table of parameters; a training step reads only few of its rows. In a model it is a
/// dense tensor. In a gradient (from grad, value_and_grad, vjp and Tape) it is IndexedSlices, with
/// one row for each that gather read, and optimisers change these rows only.
///
///   struct Model { EmbeddingTable words; Linear output; };
///   auto gradient = grad(loss)(model);  // in loss: gather(model.words, ids)
///   adam.update(model, gradient);       // cost: proportional to the rows that ids name
///
/// If any op uses the table as a whole, for example dense() in a product, the gradient is dense,
/// with the same values; is_sparse() tells. If the table is not read, its gradient has no rows.
class EmbeddingTable {
 public:
  /// An empty table, to be assigned to.
  EmbeddingTable() = default;
  /// Makes a parameter. table: floating, with its rows along the first axis and static sizes.
  /// Throws ShapeError or DTypeError.
  explicit EmbeddingTable(Tensor table);
  /// Makes a gradient: rows of a table with these dims.
  EmbeddingTable(IndexedSlices slices, const Dims& dims);

  /// Return true for a whole table, or for rows of one.
  bool is_dense() const { return dense_ && dense_->is_defined(); }
  bool is_sparse() const { return slices_.has_value(); }
  /// Returns the dense table. Throws ArgumentError for a table of rows.
  const Tensor& dense() const;
  /// Returns the rows. Throws ArgumentError for a dense table.
  const IndexedSlices& slices() const;
  /// Returns the dims of the table, dense or sparse.
  const Dims& dims() const { return is_sparse() ? dims_ : dense().dims(); }
  /// Returns the table, or the sum of its rows, with the dims of the table.
  Tensor to_dense() const;
  /// Returns a gradient with each row once; a dense table unchanged.
  EmbeddingTable coalesced() const;

  auto members() { return std::tie(dense_, slices_, dims_); }
  static constexpr std::array<std::string_view, 3> member_names() { return {"", "", "dims"}; }

 private:
  std::optional<Tensor> dense_;
  std::optional<IndexedSlices> slices_;
  std::vector<Dim> dims_;  // dims of the whole table, if it is sparse
};

/// Returns the sum of two gradients of one table, for instance of two parts of a batch: the rows of
/// both, one after the other, or a dense table if either is dense. Throws ShapeError if their dims
/// differ.
EmbeddingTable operator+(const EmbeddingTable& a, const EmbeddingTable& b);

/// Returns rows of a table: gather along its first axis.
Tensor gather(const EmbeddingTable& table, const Tensor& indices,
              const GatherOptions& options = {});

struct TableRows;

namespace detail {

/// A table in a tree, with the numbers of tensors and leaves that the tree has before it.
struct FoundTable {
  std::size_t tensors, leaves;
  EmbeddingTable* table;
};

/// Returns the tables of a tree, in the order of its leaves. Callers change them only if they may
/// change the tree.
std::vector<FoundTable> tables_in(const TreeRef& tree);
template <class Tree>
std::vector<FoundTable> tables_of(Tree& tree) {
  return tables_in(TreeRef(tree));
}

/// Returns the gradient of a table with these dims that is rows only.
EmbeddingTable rows_of_table(const TableRows& rows, const TensorType& table);
/// Returns a dense gradient with the rows, if there are any, added.
Tensor with_rows(Tensor whole, const TableRows& rows);

void coalesce_tables(const TreeSlot& tree);
void make_tables_dense(const TreeSlot& tree);

/// Returns the tree with each row once in all of its tables.
template <class Tree>
Tree with_coalesced_tables(Tree tree) {
  coalesce_tables(TreeSlot(tree));
  return tree;
}

}  // namespace detail

/// Returns the tree, for instance a gradient, with all of its tables dense.
template <class Tree>
Tree with_dense_tables(Tree tree) {
  detail::make_tables_dense(detail::TreeSlot(tree));
  return tree;
}

}  // namespace reel
REEL_API_END
