// frontend/data/csv.h — load_csv, the table of a CSV file.
#pragma once

#include <cstdint>
#include <initializer_list>
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
  /// Returns the numbers of a column, {rows}. dims: as for tensor(); one may be a name only. Throws
  /// IoError, with line and column, for a field that is no number of the dtype; for integers also
  /// if it does not fit. Booleans are true, false, 1 and 0.
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
  std::vector<std::string> names_;
  std::map<std::string, std::size_t> places_;
  std::vector<std::vector<std::string>> fields_;  // by column
  std::vector<std::int64_t> lines_;               // in which each row ends
};

/// Reads a CSV file as RFC 4180 describes it: fields in quotes may contain separators, line ends
/// and doubled quotes. Spaces around fields without quotes, and empty lines, are left out.
///
/// Throws IoError with path, line and reason: if the file cannot be read, if a row has another
/// number of fields than the header or the first row, for two columns of one name, or for a wrong
/// quote. Throws Error if Reel was built without libcsv.
CsvTable load_csv(const std::string& path, const CsvOptions& options = {});

}  // namespace reel
REEL_API_END
