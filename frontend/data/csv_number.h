// frontend/data/csv_number.h — reads a field of a CSV file as a number.
#pragma once

#include <optional>
#include <string>

#include "reel/core/types/dtype.h"

namespace reel {
struct CsvOptions;  // frontend/data/csv.h

/// Returns the number of a field, or of a missing one; nothing if it is no number of type T.
/// T: the C++ type of a dtype.
template <class T>
std::optional<T> csv_number(const std::string& field, const CsvOptions& options);

/// Returns the reason why csv_number() returns nothing for a field, and a repair if there is one:
/// "is no f32".
std::string why_no_csv_number(const std::string& field, DType dtype, const CsvOptions& options);

}  // namespace reel
