#include "reel/frontend/sparse/embedding_table.h"

#include <algorithm>

#include "reel/autodiff/tape.h"
#include "reel/core/base/str.h"
#include "reel/core/ops.h"
#include "reel/core/ops/indexing/rows.h"
#include "reel/frontend/tree/state_select.h"

namespace reel {
namespace {

struct FindTables : detail::TreeReader {
  std::vector<detail::FoundTable> found;
  std::size_t tensors = 0, leaves = 0;
  void leaf() override { ++leaves; }
  void tensor(const Tensor&) override { ++tensors, ++leaves; }
  void array(const TensorArray&) override { ++tensors, ++leaves; }
  using TreeReader::part;
  void part(const EmbeddingTable& table) override {
    found.push_back({tensors, leaves, const_cast<EmbeddingTable*>(&table)});
  }
};

}  // namespace

EmbeddingTable::EmbeddingTable(Tensor table) {
  const TensorType& type = table.type();
  if (!is_float(type.dtype()) || type.is_list())
    throw DTypeError(str("EmbeddingTable: a table is floating, got ", type));
  const auto has_rows = [&] {
    for (const Dim& dim : type.dims())
      if (!dim.has_size() || dim.is_ragged()) return false;
    return type.rank() > 0;
  };
  if (!has_rows())
    throw ShapeError(str("EmbeddingTable: a table has its rows along its first axis, and sizes ",
                         "that are known, got ", type));
  dense_ = std::move(table);
}

EmbeddingTable::EmbeddingTable(IndexedSlices slices, const Dims& dims)
    : slices_(std::move(slices)), dims_(dims) {}

const Tensor& EmbeddingTable::dense() const {
  if (!dense_)
    throw ArgumentError(
        slices_ ? "EmbeddingTable: dense() of a gradient that is rows; use "
                  "to_dense() or slices()"
                : "EmbeddingTable: an empty EmbeddingTable was used; make it from a tensor");
  return *dense_;
}

const IndexedSlices& EmbeddingTable::slices() const {
  if (!slices_)
    throw ArgumentError(
        "EmbeddingTable: slices() of a table that is whole; is_sparse() tells which it is");
  return *slices_;
}

Tensor EmbeddingTable::to_dense() const {
  return slices_ ? reel::to_dense(*slices_, dims_) : dense();
}

std::vector<detail::FoundTable> detail::tables_in(const TreeRef& tree) {
  FindTables find;
  tree.read(find);
  return std::move(find.found);
}

void detail::coalesce_tables(const TreeSlot& tree) {
  for (const FoundTable& found : tables_in(tree)) *found.table = found.table->coalesced();
}

void detail::make_tables_dense(const TreeSlot& tree) {
  for (const FoundTable& found : tables_in(tree))
    if (found.table->is_sparse()) *found.table = EmbeddingTable(found.table->to_dense());
}

void detail::make_tables_alike(const TreeSlot& a, const TreeSlot& b) {
  const std::vector<FoundTable> in_a = tables_in(a), in_b = tables_in(b);
  for (std::size_t i = 0; i < std::min(in_a.size(), in_b.size()); ++i) {
    EmbeddingTable &x = *in_a[i].table, &y = *in_b[i].table;
    if (x.is_sparse() && y.is_dense())
      x = EmbeddingTable(x.to_dense());
    else if (x.is_dense() && y.is_sparse())
      y = EmbeddingTable(y.to_dense());
  }
}

void detail::refuse_rows(const char* function, const TreeRef& tree) {
  for (const FoundTable& found : tables_in(tree))
    if (found.table->is_sparse())
      throw StructureError(
          str(function,
              ": a gradient in the tree consists of rows of an EmbeddingTable, whose row numbers "
              "are not values; make it dense with with_dense_tables(gradient), or add two of them "
              "with +"));
}

EmbeddingTable detail::rows_of_table(const TableRows& rows, const TensorType& table) {
  Dims dims(table.sizes().begin(), table.sizes().end());
  dims[0] = Dim(0);
  return EmbeddingTable({rows.values.is_defined() ? rows.values : zeros(dims, table.dtype()),
                         rows.numbers.is_defined() ? rows.numbers : zeros({0}, i64),
                         tensor(table.sizes(), {Dim(table.rank())})},
                        table.dims());
}

Tensor detail::with_rows(Tensor whole, const TableRows& rows) {
  return rows.values.is_defined() ? add_rows(std::move(whole), rows.numbers, rows.values) : whole;
}

EmbeddingTable EmbeddingTable::coalesced() const {
  if (!slices_) return *this;
  const std::int64_t rows = dims_[0].size();
  Coalesced once =
      coalesce_rows(slices_->values, checked_row_numbers(slices_->indices, rows), rows);
  return {{std::move(once.values), std::move(once.numbers), slices_->dense_shape}, dims_};
}

EmbeddingTable operator+(const EmbeddingTable& a, const EmbeddingTable& b) {
  if (a.dims() != b.dims())
    throw ShapeError(str("EmbeddingTable: gradients of different tables are added: ",
                         join(a.dims()), " and ", join(b.dims())));
  if (!a.is_sparse() || !b.is_sparse()) return EmbeddingTable(a.to_dense() + b.to_dense());
  const auto both = [](const Tensor& x, const Tensor& y) { return concat({x, y}, 0); };
  return {
      {both(a.slices().values, b.slices().values),
       both(cast(a.slices().indices, i64), cast(b.slices().indices, i64)), a.slices().dense_shape},
      a.dims()};
}

Tensor gather(const EmbeddingTable& table, const Tensor& indices, const GatherOptions& options) {
  return gather(table.dense(), indices, 0, options);
}

}  // namespace reel
