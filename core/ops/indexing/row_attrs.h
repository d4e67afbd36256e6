// core/ops/indexing/row_attrs.h — attributes of ops on table rows.
#pragma once

#include <cstdint>
#include <string>

#include "reel/core/op/attrs.h"
#include "reel/core/ops/indexing/index.h"

namespace reel {

/// Attributes of row_numbers: a gather's indices along the first axis of a table.
struct RowNumbersAttrs {
  std::int64_t rows = 0;  ///< of the table
  IndexRule rule = IndexRule::from_end;
  std::string function = "gather";  ///< that the user called, for messages
  template <class F>
  static void fields(F&& f) {
    f("rows", &RowNumbersAttrs::rows);
    f("rule", &RowNumbersAttrs::rule);
    f("function", &RowNumbersAttrs::function);
  }
};

/// Attributes of coalesce_rows and check_rows.
struct RowCountAttrs {
  std::int64_t rows = -1;  ///< of the table; -1: unknown
  template <class F>
  static void fields(F&& f) {
    f("rows", &RowCountAttrs::rows);
  }
};

/// Attributes of put_rows, if rows are not slices along the first axis alone.
struct PutRowsAttrs {
  int axes = 1;  ///< first axes of the table: its rows are their places, in row-major order
  template <class F>
  static void fields(F&& f) {
    f("axes", &PutRowsAttrs::axes);
  }
};
/// Returns the number of first axes of an op's table that make its rows.
inline int axes_of_rows(const Attrs* put_rows) {
  return put_rows ? get<PutRowsAttrs>(put_rows).axes : 1;
}

}  // namespace reel
