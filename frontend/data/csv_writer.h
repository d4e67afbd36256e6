// frontend/data/csv_writer.h — CsvWriter, the measurements of a training run as a plain table.
#pragma once

#include <concepts>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "reel/core/base/visibility.h"
#include "reel/core/types/tensor.h"

REEL_API_BEGIN
namespace reel {

/// A field of a CSV row: a number, a tensor with one element, or a text. Numbers are written with
/// the fewest digits from which their type reads the same value, in every locale.
class CsvField {
 public:
  template <class N>
  requires std::is_arithmetic_v<N> CsvField(N number) : CsvField(static_cast<Held<N>>(number)) {}
  CsvField(float number);
  CsvField(double number);
  CsvField(std::int64_t number);
  CsvField(std::uint64_t number);
  /// Throws as Tensor::item does.
  CsvField(const Tensor& scalar);
  CsvField(std::string text) : text_(std::move(text)) {}
  CsvField(const char* text) : text_(text) {}

  /// Returns the text of the field, without quotes.
  const std::string& text() const { return text_; }

 private:
  template <class N>
  using HeldInteger = std::conditional_t<std::is_unsigned_v<N>, std::uint64_t, std::int64_t>;
  template <class N>
  using Held = std::conditional_t<std::is_floating_point_v<N>, double, HeldInteger<N>>;

  std::string text_;
};

/// A CSV file with a header, and a row for each step of a run.
///
///   CsvWriter losses("losses.csv", {"step", "loss"}, now.step.item<std::int64_t>());
///   losses.row({step, loss});
///
/// A resumed run gives the number of rows that belong to its checkpoint; the file is then the same,
/// byte for byte, as without the interruption. Movable; not thread-safe.
class CsvWriter {
 public:
  /// rows: an existing file keeps its first `rows` rows; later ones are cut off, since the run
  /// writes them again. 0 begins the file anew. Throws IoError with path and reason, also if an
  /// existing file has another header or fewer rows, or is another user's in a folder like /tmp;
  /// the file is then unchanged.
  CsvWriter(const std::string& path, const std::vector<std::string>& columns,
            std::int64_t rows = 0);

  /// Appends a row and passes it to the operating system, so that it survives a crash of the
  /// program. Throws ArgumentError unless there is a field for each column, IoError if it cannot be
  /// written.
  void row(const std::vector<CsvField>& fields);

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  void begin(const std::string& header);
  void open(int flags, const char* mode);
  void keep(const std::string& header, std::int64_t rows);
  void write(const std::string& line);
  [[noreturn]] void fail() const;

  std::string path_;
  std::size_t columns_;
  std::unique_ptr<std::FILE, Close> file_;
};

}  // namespace reel
REEL_API_END
