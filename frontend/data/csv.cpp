#include "reel/frontend/data/csv.h"

#ifdef REEL_HAS_CSV
#include <csv.h>
#endif

#include <exception>
#include <new>
#include <optional>
#include <string_view>

#include "reel/core/base/errors.h"
#include "reel/core/base/str.h"
#include "reel/core/ops.h"
#include "reel/core/types/mode.h"
#include "reel/frontend/data/csv_number.h"
#include "reel/frontend/files/file_kind.h"
#include "reel/frontend/files/stored_file.h"

namespace reel {
const std::vector<std::string>& CsvTable::texts(const std::string& column) const {
  const auto place = places_.find(column);
  if (place != places_.end()) return fields_[place->second];
  std::string all;
  for (const std::string& name : names_) all += str(all.empty() ? "" : ", ", name);
  throw IoError(str(name_, " has no column \"", column, "\"; it has ", all));
}

Tensor CsvTable::numbers(const std::string& column, const Dims& dims, DType dtype) const {
  const Tensor result = numbers(std::vector<std::string>{column}, {}, dtype);
  const ModeScope plain({});
  return visit(dtype, [&](auto zero) {
    return tensor(result.to_vector<decltype(zero)>(), dims.empty() ? Dims{Dim(rows())} : dims,
                  dtype);
  });
}

Tensor CsvTable::numbers(const std::vector<std::string>& columns, const Dims& dims,
                         DType dtype) const {
  return visit(dtype, [&](auto zero) {
    using T = decltype(zero);
    const std::size_t width = columns.size();
    std::vector<T> all(lines_.size() * width);
    for (std::size_t c = 0; c < width; ++c) {
      const std::vector<std::string>& fields = texts(columns[c]);
      for (std::size_t r = 0; r < fields.size(); ++r) {
        const std::optional<T> number = csv_number<T>(fields[r], options_);
        if (!number)
          throw IoError(str(name_, ", line ", lines_[r], ": \"", fields[r], "\" in column \"",
                            columns[c], "\" ", why_no_csv_number(fields[r], dtype, options_)));
        all[r * width + c] = *number;
      }
    }
    const ModeScope plain({});  // file contents belong to no trace
    return tensor(all, dims.empty() ? Dims{Dim(rows()), Dim(width)} : dims, dtype);
  });
}

#ifndef REEL_HAS_CSV

CsvTable load_csv(const std::string&, const CsvOptions&) {
  throw Error(
      "load_csv: this build of Reel reads no CSV files: libcsv was missing when it was configured; "
      "install it (Debian: libcsv-dev) and configure again");
}

#else

/// Passes a file to libcsv line by line, and collects the fields.
class CsvReader {
 public:
  CsvReader(const std::string& path, const CsvOptions& options)
      : file_(path, "load_csv"), has_header_(options.has_header) {
    check(options);
    table_.name_ = file_.name();
    table_.options_ = options;
    if (csv_init(&parser_, CSV_STRICT | CSV_STRICT_FINI)) throw std::bad_alloc();
    csv_set_delim(&parser_, static_cast<unsigned char>(options.separator));
  }
  ~CsvReader() { csv_free(&parser_); }
  CsvReader(const CsvReader&) = delete;
  CsvReader& operator=(const CsvReader&) = delete;

  CsvTable read() {
    if (const std::string_view encoding = wide_encoding_of(file_.front()); !encoding.empty())
      throw IoError(str(table_.name_, " is text in ", encoding, ", and load_csv reads UTF-8: ",
                        "convert it by iconv -f ", encoding, " -t UTF-8, or save it as UTF-8"));
    std::string bytes(file_.size(), '\0');
    file_.read(bytes.data(), 0, bytes.size());
    constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
    std::string_view rest = bytes;
    if (rest.starts_with(kByteOrderMark)) rest.remove_prefix(kByteOrderMark.size());
    while (!rest.empty()) {
      const std::size_t end = rest.find('\n');
      const std::string_view line = rest.substr(0, end == std::string_view::npos ? end : end + 1);
      ++line_;
      if (csv_parse(&parser_, line.data(), line.size(), &on_field, &on_row, this) != line.size())
        fail();
      if (error_) std::rethrow_exception(error_);
      rest.remove_prefix(line.size());
    }
    if (csv_fini(&parser_, &on_field, &on_row, this)) fail();
    if (error_) std::rethrow_exception(error_);
    return std::move(table_);
  }

 private:
  static void check(const CsvOptions& options) {
    const char separator = options.separator, decimal = options.decimal;
    if (separator == '"' || separator == '\n' || separator == '\r')
      throw ArgumentError("load_csv: separator must be neither a quote nor a line end");
    if (decimal != '.' && decimal != ',')
      throw ArgumentError(str("load_csv: decimal is a point or a comma, got '", decimal, "'"));
    if (separator == decimal)
      throw ArgumentError(str("load_csv: separator and decimal are both '", decimal,
                              "'; tables with decimal commas have {.separator = ';'}"));
  }
  // libcsv is C: exceptions are kept until it returns.
  static void on_field(void* text, std::size_t size, void* self) noexcept {
    auto& reader = *static_cast<CsvReader*>(self);
    reader.guarded([&] { reader.row_.emplace_back(static_cast<const char*>(text), size); });
  }
  static void on_row(int, void* self) noexcept {
    auto& reader = *static_cast<CsvReader*>(self);
    reader.guarded([&] { reader.end_row(); });
  }
  template <class Fn>
  void guarded(Fn&& fn) noexcept {
    if (!error_) try {
        fn();
      } catch (...) {
        error_ = std::current_exception();
      }
  }

  void end_row() {
    std::vector<std::string> row;
    row.swap(row_);
    if (table_.fields_.empty()) {
      begin_table(row);
      if (has_header_) return;
    }
    if (row.size() != table_.fields_.size())
      refuse(str(row.size(), row.size() == 1 ? " field" : " fields", ", but there are ",
                 table_.fields_.size(), " columns"));
    for (std::size_t c = 0; c < row.size(); ++c) table_.fields_[c].push_back(std::move(row[c]));
    table_.lines_.push_back(line_);
  }
  void begin_table(const std::vector<std::string>& row) {
    table_.fields_.resize(row.size());
    for (std::size_t c = 0; c < row.size(); ++c) {
      table_.names_.push_back(has_header_ ? row[c] : str(c));
      if (!table_.places_.emplace(table_.names_[c], c).second)
        refuse(str("two columns are called \"", row[c], '"'));
    }
  }
  [[noreturn]] void fail() const {
    if (csv_error(&parser_) == CSV_ENOMEM) throw std::bad_alloc();
    refuse(
        "a quote at a wrong place; a field with quotes is enclosed in quotes, and those inside are "
        "doubled");
  }
  [[noreturn]] void refuse(const std::string& reason) const {
    throw IoError(str(table_.name_, ", line ", line_, ": ", reason));
  }

  StoredFile file_;
  mutable csv_parser parser_;  // csv_error takes it without const
  bool has_header_;
  CsvTable table_;
  std::vector<std::string> row_;
  std::int64_t line_ = 0;
  std::exception_ptr error_;
};

CsvTable load_csv(const std::string& path, const CsvOptions& options) {
  return CsvReader(path, options).read();
}

#endif

}  // namespace reel
