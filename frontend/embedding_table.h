// frontend/embedding_table.h — EmbeddingTable, a parameter whose gradient is the rows that were
// read of it.
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <tuple>
#include <vector>

#include "reel/core/functions/indices.h"
#include "reel/frontend/indexed_slices.h"
#include "reel/frontend/tree.h"

namespace reel {

/// A table of parameters of which a step of training reads few rows. As a leaf of a model it is a
/// whole tensor; in what grad, value_and_grad, vjp and Tape give for it, it is IndexedSlices, one
/// row for each that gather read, and optimisers change these rows alone.
///
///   struct Model { EmbeddingTable words; Linear output; };
///   auto gradient = grad(loss)(model);  // in loss: gather(model.words, ids)
///   adam.update(model, gradient);       // the cost is that of the rows that ids name
///
/// What uses the table as a whole, dense() in a product for example, has a whole gradient, and then
/// so has the table: the same numbers, is_sparse() tells. A table in a gradient that nothing reads
/// has no rows.
class EmbeddingTable {
 public:
  /// Nothing: to be assigned to.
  EmbeddingTable() = default;
  /// A parameter. table: floating, its rows along the first axis, of static sizes. Throws
  /// ShapeError or DTypeError.
  explicit EmbeddingTable(Tensor table);
  /// A gradient: rows of a table with these dims.
  EmbeddingTable(IndexedSlices slices, const Dims& dims);

  bool is_dense() const { return dense_ && dense_->is_defined(); }
  bool is_sparse() const { return slices_.has_value(); }
  /// Throws ArgumentError for rows.
  const Tensor& dense() const;
  /// Throws ArgumentError for a whole table.
  const IndexedSlices& slices() const;
  /// Of the table, whole or not.
  const Dims& dims() const { return is_sparse() ? dims_ : dense().dims(); }
  /// The table, or what the rows add up to, with the dims of the table.
  Tensor to_dense() const;
  /// With each row once; a whole table as it is.
  EmbeddingTable coalesced() const;

  auto members() { return std::tie(dense_, slices_, dims_); }
  static constexpr std::array<std::string_view, 3> member_names() { return {"", "", "dims"}; }

 private:
  std::optional<Tensor> dense_;
  std::optional<IndexedSlices> slices_;
  std::vector<Dim> dims_;  // of the table whose rows they are
};

/// The sum of two gradients of one table, of two parts of a batch for instance: the rows of both,
/// one behind the other, or a whole table where one of them is. Throws ShapeError where their dims
/// differ.
EmbeddingTable operator+(const EmbeddingTable& a, const EmbeddingTable& b);

/// Rows of a table: gather along its first axis.
Tensor gather(const EmbeddingTable& table, const Tensor& indices,
              const GatherOptions& options = {});

namespace detail {

/// A table in a tree: how many tensors, and how many leaves, the tree has before it.
struct FoundTable {
  std::size_t tensors, leaves;
  EmbeddingTable* table;
};

struct FindTables {
  std::vector<FoundTable>& found;
  std::size_t tensors = 0, leaves = 0;
  template <class Leaf>
  void operator()(const Leaf&, const std::string&) {
    tensors += std::is_same_v<Leaf, Tensor> || std::is_same_v<Leaf, TensorArray>;
    ++leaves;
  }
  void size(std::size_t, const std::string&) { ++leaves; }
  void key(const std::string&, const std::string&) { ++leaves; }
  void enter(EmbeddingTable& table) { found.push_back({tensors, leaves, &table}); }
};

/// The tables of a tree, in the order of its leaves.
template <class Tree>
std::vector<FoundTable> tables_of(Tree& tree) {
  std::vector<FoundTable> found;
  FindTables fn{found};
  walk<false>(tree, {}, fn);
  return found;
}

/// The gradient of a table with these dims: rows with numbers, or none of either.
EmbeddingTable rows_of_table(const Tensor& values, const Tensor& numbers, const TensorType& table);
/// What rows with numbers add up to.
Tensor whole_of_rows(const Tensor& values, const Tensor& numbers, const TensorType& table);

/// Each row once, in all tables of a tree.
template <class Tree>
Tree with_coalesced_tables(Tree tree) {
  for (const auto& found : tables_of(tree)) *found.table = found.table->coalesced();
  return tree;
}

}  // namespace detail

/// A tree, a gradient for instance, with all its tables whole.
template <class Tree>
Tree with_dense_tables(Tree tree) {
  for (const auto& found : detail::tables_of(tree))
    if (found.table->is_sparse()) *found.table = EmbeddingTable(found.table->to_dense());
  return tree;
}

}  // namespace reel
