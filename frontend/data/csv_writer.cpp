#include "reel/frontend/data/csv_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>

#include "reel/core/base/errors.h"
#include "reel/core/base/held.h"
#include "reel/core/base/reason_of.h"
#include "reel/core/base/str.h"
#include "reel/core/base/write_target.h"

namespace reel {
namespace {

template <class N>
std::string print(N number) {
  char text[32];
  return std::string(text, std::to_chars(text, text + sizeof text, number).ptr);
}

bool is_space(char c) { return c == ' ' || c == '\t'; }

/// Returns the field as the file has it: in quotes if it has a separator, a quote, a line end, or a
/// space or tab at an end, or begins with a byte order mark, which readers would leave out.
std::string quoted(const std::string& text) {
  if (text.empty()) return text;
  const bool is_plain = text.find_first_of(",\"\r\n") == std::string::npos &&
                        !is_space(text.front()) && !is_space(text.back()) &&
                        !text.starts_with("\xef\xbb\xbf");
  if (is_plain) return text;
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"') result += '"';
    result += c;
  }
  return result + '"';
}

template <class Fields, class TextOf>
std::string line_of(const Fields& fields, const TextOf& text_of) {
  std::string line;
  for (const auto& field : fields) {
    if (&field != &*fields.begin()) line += ',';
    line += quoted(text_of(field));
  }
  if (line.empty()) line = "\"\"";  // readers leave out empty lines
  return line + '\n';
}

}  // namespace

CsvField::CsvField(float number) : text_(print(number)) {}
CsvField::CsvField(double number) : text_(print(number)) {}
CsvField::CsvField(std::int64_t number) : text_(print(number)) {}
CsvField::CsvField(std::uint64_t number) : text_(print(number)) {}
CsvField::CsvField(const Tensor& scalar) {
  if (scalar.dtype() == f32)
    text_ = print(scalar.item<float>());
  else if (scalar.dtype() == f64)
    text_ = print(scalar.item<double>());
  else
    text_ = print(scalar.item<std::int64_t>());
}

CsvWriter::CsvWriter(const std::string& path, const std::vector<std::string>& columns,
                     std::int64_t rows)
    : path_(path), columns_(columns.size()) {
  if (columns.empty()) throw ArgumentError("CsvWriter: give the names of the columns");
  if (rows < 0) throw ArgumentError(str("CsvWriter: a file cannot keep ", rows, " rows"));
  const std::string header = line_of(columns, [](const std::string& name) { return name; });
  if (rows > 0)
    keep(header, rows);
  else
    begin(header);
}

void CsvWriter::begin(const std::string& header) {
  open(O_WRONLY | O_CREAT | O_TRUNC, "w");
  write(header);
}

void CsvWriter::open(int flags, const char* mode) {
  const WriteTarget target = find_write_target(path_, "CsvWriter");
  const int file = target.descriptor
                       ? ::open(path_.c_str(), flags | O_CLOEXEC, 0666)
                       : ::open(target.path.c_str(), flags | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (file < 0) fail();
  file_.reset(::fdopen(file, mode));
  if (file_) return;
  const int error = errno;
  ::close(file);
  errno = error;
  fail();
}

void CsvWriter::keep(const std::string& header, std::int64_t rows) {
  // Truncated, not rewritten: if the program is killed, the file is either the old or the new one.
  open(O_RDWR, "r+");
  std::string found;
  bool is_quoted = false;
  std::int64_t lines = 0, end = 0;
  for (int c; lines <= rows && (c = std::fgetc(file_.get())) != EOF;) {
    ++end;
    if (lines == 0) found += static_cast<char>(c);
    if (c == '"') is_quoted = !is_quoted;
    if (c == '\n' && !is_quoted) ++lines;
  }
  if (std::ferror(file_.get())) fail();
  if (found != header)
    throw IoError(str("CsvWriter: ", path_, " has other columns: its first line is not ",
                      header.substr(0, header.size() - 1)));
  if (lines <= rows)
    throw IoError(
        str("CsvWriter: ", path_, " has ", lines - 1, " rows, fewer than the ", rows, " to keep"));
  if (::ftruncate(::fileno(file_.get()), end) != 0 || std::fseek(file_.get(), 0, SEEK_END) != 0)
    fail();
}

void CsvWriter::row(const std::vector<CsvField>& fields) {
  held(file_, "CsvWriter");
  if (fields.size() != columns_)
    throw ArgumentError(
        str("CsvWriter: ", path_, " has ", columns_, " columns, got ", fields.size(), " fields"));
  write(line_of(fields, [](const CsvField& field) { return field.text(); }));
}

void CsvWriter::write(const std::string& line) {
  if (std::fwrite(line.data(), 1, line.size(), file_.get()) != line.size() ||
      std::fflush(file_.get()) != 0)
    fail();
}

void CsvWriter::fail() const {
  throw IoError(str("CsvWriter: cannot write ", path_, ": ", reason_of(errno)));
}

}  // namespace reel
