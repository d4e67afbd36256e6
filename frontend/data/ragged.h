// frontend/data/ragged.h — ragged and rows_of: tensors from and to rows of different lengths.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "reel/core/base/visibility.h"
#include "reel/core/functions/creation.h"
#include "reel/core/types/tensor.h"

REEL_API_BEGIN
namespace reel {

namespace detail {

/// A list of rows, or a row: a vector, or a text, which is a row of bytes.
template <class T>
inline constexpr bool kIsRow = std::is_same_v<T, std::string>;
template <class T>
inline constexpr bool kIsRow<std::vector<T>> = true;

/// The elements at the bottom of nested rows. Bytes of a text have the values 0 to 255.
template <class T>
struct RowElement {
  using type = T;
};
template <class T>
struct RowElement<std::vector<T>> : RowElement<T> {};
template <>
struct RowElement<std::string> {
  using type = unsigned char;
};

template <class T>
constexpr int row_depth() {
  if constexpr (std::is_same_v<T, std::string>)
    return 1;
  else if constexpr (kIsRow<T>)
    return 1 + row_depth<typename T::value_type>();
  else
    return 0;
}

/// The sizes of nested rows, level by level: one for each list of a level, in their order.
using RowSizes = std::vector<std::vector<std::int64_t>>;

template <class Rows, class Stored>
void flatten_rows(const Rows& rows, std::size_t level, RowSizes& sizes, std::vector<Stored>& all) {
  using Item = typename Rows::value_type;
  sizes[level].push_back(static_cast<std::int64_t>(rows.size()));
  if constexpr (kIsRow<Item>) {
    for (const Item& row : rows) flatten_rows(row, level + 1, sizes, all);
  } else {
    using Element = typename RowElement<Rows>::type;
    for (const auto item : rows) all.push_back(static_cast<Stored>(static_cast<Element>(item)));
  }
}

/// The layout of rows in a padded tensor.
struct RowLayout {
  Dims dims;
  std::int64_t numel = 0;              ///< padding included
  std::vector<std::int64_t> places{};  ///< of each element
};
/// Throws as ragged().
RowLayout layout_of_rows(const RowSizes& sizes, const Dims& dims);
/// Returns the tensor; belongs to no trace.
template <class Stored>
Tensor tensor_of_rows(const std::vector<Stored>& all, const RowLayout& layout,
                      std::optional<DType> dtype);

/// Reads the rows of a tensor, given their nesting. Throws as rows_of().
class RowReader {
 public:
  /// stored: the dtype of the elements that are read.
  RowReader(const Tensor& x, int depth, DType stored);

  /// Returns the number of items in the list at this index: rows, or elements of a row.
  std::int64_t size(const std::vector<std::int64_t>& index) const;
  /// Returns the place of an element.
  std::int64_t place(const std::vector<std::int64_t>& index) const;
  const void* data() const { return data_; }

 private:
  struct Level {
    std::int64_t extent, stride;
    std::vector<std::int64_t> lengths, strides;  ///< of a ragged dim, with a stride for each level
  };
  std::vector<Level> levels_;
  const void* data_;
};

[[noreturn]] void refuse_row_element(std::int64_t value, const char* type);

template <class Rows, class Stored>
Rows read_rows(const RowReader& reader, std::vector<std::int64_t>& index) {
  using Item = typename Rows::value_type;
  Rows rows;
  const std::int64_t size = reader.size(index);
  rows.reserve(static_cast<std::size_t>(size));
  index.push_back(0);
  for (; index.back() < size; ++index.back()) {
    if constexpr (kIsRow<Item>) {
      rows.push_back(read_rows<Item, Stored>(reader, index));
    } else {
      using Element = typename RowElement<Rows>::type;
      const Stored value = static_cast<const Stored*>(reader.data())[reader.place(index)];
      if constexpr (!std::is_same_v<Element, Stored>) {
        using Limits = std::numeric_limits<Element>;
        if (value < static_cast<std::int64_t>(Limits::min()) ||
            value > static_cast<std::int64_t>(Limits::max()))
          refuse_row_element(value, std::is_same_v<Rows, std::string> ? "a byte" : "the type");
      }
      rows.push_back(static_cast<Item>(static_cast<Element>(value)));
    }
  }
  index.pop_back();
  return rows;
}

}  // namespace detail

/// Returns rows of different lengths as one tensor, padded with zeros.
///
/// rows: a vector of vectors of numbers, at any depth, or of texts; their bytes become i32. dims:
/// one for each level. A dim that is only a name gets its size: the first dim from the number of
/// rows, each other dim from the length of every list, so that it is ragged over the dims before
/// it. dtype: default boolean, i32, i64, f32 or f64, as the numbers.
///
///   const Tensor x = ragged(std::vector<std::vector<float>>{{1, 2}, {}, {3}},
///                           {Dim("batch"), Dim("time")});  // f32[batch=3,time[batch=3]]
///   x.dim("time").lengths();                               // 2, 0, 1
///
/// Throws ArgumentError unless there is a dim for each level; ShapeError if a dim has another size
/// or other lengths than the rows, or if a plain size stands for lists of different lengths;
/// TraceError for a dim of a trace. In a trace, the rows are a constant.
template <class Row>
requires detail::kIsRow<Row> Tensor ragged(const std::vector<Row>& rows, const Dims& dims,
                                           std::optional<DType> dtype = {}) {
  using Element = typename detail::RowElement<Row>::type;
  static_assert(TensorElement<Element>, "the elements of rows are numbers");
  using Stored = detail::StoredAs<Element>;
  detail::RowSizes sizes(static_cast<std::size_t>(detail::row_depth<std::vector<Row>>()));
  std::vector<Stored> all;
  detail::flatten_rows(rows, 0, sizes, all);
  return detail::tensor_of_rows(all, detail::layout_of_rows(sizes, dims), dtype);
}

/// Returns the rows of a tensor without their padding: the inverse of ragged. The dims stand for
/// the levels, in their order.
///
/// Row: the type of a row, or of the elements of a row: rows_of<float>(x) and
/// rows_of<std::vector<float>>(x) are a vector of vectors, rows_of<std::string>(x) is a vector of
/// texts, rows_of<std::vector<std::string>>(x) a vector of lists of texts. Texts have elements of
/// i32. Throws DTypeError if the elements have another dtype; ShapeError if x has another number of
/// axes, or a ragged axis in front of an axis that its lengths run over; ArgumentError if an
/// element does not fit the type; TraceError inside a trace.
template <class Row = float>
auto rows_of(const Tensor& x) {
  using R = std::conditional_t<detail::kIsRow<Row>, Row, std::vector<Row>>;
  using Stored = detail::StoredAs<typename detail::RowElement<R>::type>;
  const detail::RowReader reader(x, detail::row_depth<std::vector<R>>(), dtype_of<Stored>());
  std::vector<std::int64_t> index;
  return detail::read_rows<std::vector<R>, Stored>(reader, index);
}

}  // namespace reel
REEL_API_END
