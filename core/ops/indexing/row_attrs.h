// core/ops/indexing/row_attrs.h — attributes of ops on table rows.
#pragma once

#include <cstdint>
#include <string>

#include "reel/core/ops/indexing/index.h"

namespace reel {

/// Of row_numbers: a gather's indices along the first axis of a table.
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

/// Of coalesce_rows and check_rows.
struct RowCountAttrs {
  std::int64_t rows = -1;  ///< of the table; -1: unknown
  template <class F>
  static void fields(F&& f) {
    f("rows", &RowCountAttrs::rows);
  }
};

}  // namespace reel
