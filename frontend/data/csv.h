// frontend/data/csv.h — load_csv, the table of a CSV file.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "reel/core/base/visibility.h"
#include "reel/core/types/tensor.h"

REEL_API_BEGIN
namespace reel {

/// Options of load_csv.
struct CsvOptions {
  char separator = ',';    ///< between fields
  bool has_header = true;  ///< false: columns are called "0", "1", ...
  char decimal = '.';      ///< in front of the fraction of a number: a point or a comma
  /// Fields that stand for a missing number, such as {"", "NA"}. numbers() reads them as
  /// missing_value; texts() returns them as they are.
  std::vector<std::string> missing{};
  /// The number in place of a missing one; a dtype that cannot represent it is an error.
  double missing_value = std::numeric_limits<double>::quiet_NaN();
};

/// The table of a CSV file: columns of texts, which are read as numbers on request.
class CsvTable {
 public:
  /// Returns the number of rows, without the header.
  std::int64_t rows() const { return static_cast<std::int64_t>(lines_.size()); }
  /// Returns the names of the columns in their order.
  const std::vector<std::string>& columns() const { return names_; }
  /// Returns the fields of a column. Throws IoError for an unknown one.
  const std::vector<std::string>& texts(const std::string& column) const;
  /// Returns the numbers of a column, {rows}. dims: as for tensor(); one may be a name only.
  ///
  /// A number may have a sign, an exponent, or be "nan" or "inf", in any case; it is rounded to the
  /// dtype, below the smallest number of the dtype to 0. Booleans are "true" and "false" in any
  /// case, 1 and 0. Integers have no point and no exponent. Throws IoError, with line, column and
  /// repair, for a field that is no number of the dtype or too large for it, and for a missing one
  /// if the dtype cannot represent CsvOptions::missing_value: integers and booleans have no NaN.
  Tensor numbers(const std::string& column, const Dims& dims = {}, DType dtype = f32) const;
  /// Returns the numbers of several columns, {rows, columns}.
  Tensor numbers(const std::vector<std::string>& columns, const Dims& dims = {},
                 DType dtype = f32) const;
  /// Returns numbers({"price", "volume"}). Braces around two literals would also make one text.
  Tensor numbers(std::initializer_list<const char*> columns, const Dims& dims = {},
                 DType dtype = f32) const {
    return numbers(std::vector<std::string>(columns.begin(), columns.end()), dims, dtype);
  }

 private:
  friend class CsvReader;

  std::string name_;  // "load_csv: path"
  CsvOptions options_;
  std::vector<std::string> names_;
  std::map<std::string, std::size_t> places_;
  std::vector<std::vector<std::string>> fields_;  // by column
  std::vector<std::int64_t> lines_;               // in which each row ends
};

/// Reads a CSV file as RFC 4180 describes it: fields in quotes may contain separators, line ends
/// and doubled quotes. Spaces around fields without quotes, and empty lines, are left out. Bytes of
/// texts are not interpreted; a byte order mark of UTF-8 is left out.
///
/// Throws IoError with path, line and reason: if the file cannot be read, if a row has another
/// number of fields than the header or the first row, for two columns of one name, for a wrong
/// quote, or for text in UTF-16 or UTF-32. Throws ArgumentError for a separator that is a quote or
/// a line end, a `decimal` that is neither a point nor a comma, or one character for both. Throws
/// Error if Reel was built without libcsv.
CsvTable load_csv(const std::string& path, const CsvOptions& options = {});

}  // namespace reel
REEL_API_END
