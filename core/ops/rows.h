// core/ops/rows.h — rows of a table that indices name: what slices of a gradient are made of.
#pragma once

#include <cstdint>

#include "reel/core/ops/index.h"
#include "reel/core/tensor.h"

namespace reel {

inline constexpr std::int64_t kNoRow = -1;

// A table has its rows along its first axis; it may have named dims, but no ragged ones. Rows that
// were taken out of it have plain sizes: [n, sizes of the other axes...]. Row numbers are i64[n];
// one that is negative stands for no row.

/// The indices of a gather along the first axis of a table with `rows` rows, as row numbers: flat,
/// and -1 where they lie in padding. Throws IndexError as gather does.
Tensor row_numbers(const Tensor& indices, std::int64_t rows, const GatherAttrs& attrs);

/// Indices that somebody gave, as row numbers: i32 or i64, [n]; negative ones stand for no row.
/// Throws DTypeError, ShapeError, or IndexError for one beyond the rows.
Tensor checked_row_numbers(const Tensor& indices, std::int64_t rows);

// None of what follows fails for what values are: a number beyond the table is that of no row.

/// Rows of equal number added up, in the order in which they stand.
struct Coalesced {
  Tensor values;   ///< [m, ...] with m = min(n, rows), or n where the number of rows is not known
  Tensor numbers;  ///< i64[m], ascending; behind the last, -1, and zeros in the values
};
/// rows: how many the table has; -1 if that is not known.
Coalesced coalesce_rows(const Tensor& values, const Tensor& numbers, std::int64_t rows);

/// The rows with these numbers; zeros for no row.
Tensor take_rows(const Tensor& table, const Tensor& numbers);
/// The table with these rows in the place of its own; of equal numbers the last one counts. In
/// place where the table is a temporary that nobody else holds.
Tensor put_rows(Tensor table, const Tensor& numbers, const Tensor& values);
/// Returns true if overwrite_rows may do put_rows: in eager mode, nothing records it, nothing else
/// holds the table or its memory, and the rows are those of such a table.
bool may_overwrite_rows(const Tensor& table, const Tensor& numbers, const Tensor& values);
/// Does put_rows in the table's own memory. It allocates nothing, and does not fail.
/// Requires may_overwrite_rows(table, numbers, values).
void overwrite_rows(const Tensor& table, const Tensor& numbers, const Tensor& values) noexcept;
/// The table with the rows added to its own. In place as put_rows.
Tensor add_rows(Tensor table, const Tensor& numbers, const Tensor& values);

}  // namespace reel
