// core/ops/indexing/rows.h — table rows by number, the slices of a sparse gradient.
#pragma once

#include <cstdint>

#include "reel/core/ops/indexing/index.h"
#include "reel/core/types/tensor.h"

namespace reel {

inline constexpr std::int64_t kNoRow = -1;

// A table has its rows along its first axis. It may have named dims, but must not have ragged ones.
// Rows taken from it have plain sizes: [n, sizes of the other axes...]. Row numbers are i64[n]; a
// negative number stands for no row.

/// Returns the indices of a gather along the first axis of a table with `rows` rows as row numbers:
/// flat, and -1 in padding. Throws IndexError as gather does.
Tensor row_numbers(const Tensor& indices, std::int64_t rows, const GatherAttrs& attrs);

/// Returns a caller's indices (i32 or i64, [n]) as row numbers; negative ones stand for no row.
/// Throws DTypeError, ShapeError, or IndexError for one beyond the rows.
Tensor checked_row_numbers(const Tensor& indices, std::int64_t rows);

// The functions below throw for no value: a number beyond the table stands for no row.

/// Sums of rows with equal numbers, added in their order.
struct Coalesced {
  Tensor values;   ///< [m, ...] with m = min(n, rows), or n if the number of rows is unknown
  Tensor numbers;  ///< i64[m], ascending; after the last, -1, and zeros in the values
};
/// rows: number of the table's rows; -1: unknown.
Coalesced coalesce_rows(const Tensor& values, const Tensor& numbers, std::int64_t rows);

/// Returns the rows with these numbers; zeros for no row.
Tensor take_rows(const Tensor& table, const Tensor& numbers);
/// Returns the table with these rows replaced; of equal numbers the last one is written. Runs in
/// place if the table is a temporary with a single reference.
///
/// axes: a number of first axes. Rows are the places of the table along them, in row-major order.
/// If more than 1, the sizes of the other axes must be known.
Tensor put_rows(Tensor table, const Tensor& numbers, const Tensor& values, int axes = 1);
/// Returns true if overwrite_rows may be called: in eager mode, if no tape records the operands,
/// the handle is the only reference to the table, and the rows have the table's dtype and sizes.
bool may_overwrite_rows(const Tensor& table, const Tensor& numbers, const Tensor& values);
/// Writes the rows into the table's own memory, as put_rows does. Allocates nothing, never fails.
/// axes: as of put_rows. Requires may_overwrite_rows(table, numbers, values), or sizes that fit.
void overwrite_rows(const Tensor& table, const Tensor& numbers, const Tensor& values,
                    int axes = 1) noexcept;
/// Copies the rows with these numbers into `to`, zeros for no row. Allocates nothing, never fails.
/// axes: as of put_rows.
void copy_rows(const Tensor& table, const Tensor& numbers, const Tensor& to, int axes = 1) noexcept;
/// Returns the table with the rows added to its own. Runs in place as put_rows does.
Tensor add_rows(Tensor table, const Tensor& numbers, const Tensor& values);

}  // namespace reel
