#include "reel/frontend/files/npy_header.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include "reel/core/base/errors.h"
#include "reel/core/base/str.h"

namespace reel {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
// An array of numbers with 64 axes needs less than 2 KiB.
constexpr std::uint64_t kMaxNpyHeaderBytes = 1 << 16;

constexpr struct {
  std::string_view name;
  StoredDType dtype;
} kNpyDTypes[] = {{"b1", StoredDType::boolean}, {"u1", StoredDType::u8},  {"i1", StoredDType::i8},
                  {"u2", StoredDType::u16},     {"i2", StoredDType::i16}, {"u4", StoredDType::u32},
                  {"i4", StoredDType::i32},     {"i8", StoredDType::i64}, {"f2", StoredDType::f16},
                  {"f4", StoredDType::f32},     {"f8", StoredDType::f64}};

/// Parses a Python dictionary with the three keys in one pass.
class DictReader {
 public:
  DictReader(std::string_view text, const StoredFile& file) : rest_(text), file_(file) {}

  NpyHeader read() {
    expect('{');
    while (!take('}')) {
      const std::string_view key = string();
      expect(':');
      if (key == "descr")
        once(format_, key) = format();
      else if (key == "fortran_order")
        once(is_fortran_order_, key) = boolean_word();
      else if (key == "shape")
        once(sizes_, key) = shape();
      else
        file_.damaged(str("its header has the key '", key, '\''));
      if (!take(',')) {
        expect('}');
        break;
      }
    }
    skip_spaces();
    if (!rest_.empty()) unexpected();
    if (!format_ || !is_fortran_order_ || !sizes_)
      file_.damaged("its header lacks one of 'descr', 'fortran_order' and 'shape'");
    return {*format_, *is_fortran_order_, {sizes_->begin(), sizes_->end()}, 0};
  }

 private:
  template <class T>
  std::optional<T>& once(std::optional<T>& value, std::string_view key) {
    if (value) file_.damaged(str("its header has the key '", key, "' twice"));
    return value;
  }

  [[noreturn]] void unexpected() {
    skip_spaces();
    if (rest_.empty()) file_.damaged("its header ends within an expression");
    std::string_view shown = rest_.substr(0, 40);
    shown = shown.substr(0, shown.find_last_not_of(" \t\n") + 1);
    file_.damaged(str("its header is no dictionary as NumPy writes it, from here on: ", shown));
  }
  void skip_spaces() {
    const std::size_t first = rest_.find_first_not_of(" \t\n");
    rest_.remove_prefix(first == std::string_view::npos ? rest_.size() : first);
  }
  bool take(char wanted) {
    skip_spaces();
    if (!rest_.starts_with(wanted)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void expect(char wanted) {
    if (!take(wanted)) unexpected();
  }
  bool take_word(std::string_view word) {
    skip_spaces();
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }

  std::string_view string() {
    skip_spaces();
    if (!rest_.starts_with('\'') && !rest_.starts_with('"')) unexpected();
    const std::size_t end = rest_.find(rest_.front(), 1);
    if (end == std::string_view::npos) unexpected();
    const std::string_view result = rest_.substr(1, end - 1);
    rest_.remove_prefix(end + 1);
    return result;
  }

  bool boolean_word() {
    if (take_word("True")) return true;
    if (!take_word("False")) unexpected();
    return false;
  }

  StoredFormat format() {
    skip_spaces();
    if (rest_.starts_with('['))
      throw DTypeError(str(file_.name(), " has records as elements; save each field by itself"));
    const std::string_view descr = string();
    const bool has_order =
        !descr.empty() && std::string_view("<>=|").find(descr.front()) != std::string_view::npos;
    const std::string_view name = descr.substr(has_order ? 1 : 0);
    for (const auto& known : kNpyDTypes)
      if (name == known.name && (has_order || size_of(known.dtype) == 1))
        return {known.dtype, descr.front() == '>'};
    throw DTypeError(str(file_.name(), " has elements of NumPy's type '", descr.substr(0, 40),
                         "', which no dtype holds; convert them with astype before saving"));
  }

  std::vector<std::uint64_t> shape() {
    std::vector<std::uint64_t> sizes;
    expect('(');
    bool has_comma = false;
    while (!take(')')) {
      if (!sizes.empty() && !has_comma) unexpected();
      sizes.push_back(number());
      has_comma = take(',');
      if (sizes.size() > kMaxNpyAxes)
        file_.damaged(str("its shape has more than ", kMaxNpyAxes, " axes"));
    }
    if (sizes.size() == 1 && !has_comma) file_.damaged("its shape is a number, not a tuple");
    return sizes;
  }

  std::uint64_t number() {
    skip_spaces();
    std::uint64_t result = 0;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), result);
    if (error == std::errc::result_out_of_range)
      file_.damaged("its shape has a size that 64 bits do not hold");
    if (error != std::errc()) unexpected();
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    take('L');  // as Python 2 writes some integers
    return result;
  }

  std::string_view rest_;
  const StoredFile& file_;
  std::optional<StoredFormat> format_;
  std::optional<bool> is_fortran_order_;
  std::optional<std::vector<std::uint64_t>> sizes_;
};

}  // namespace

NpyHeader read_npy_header(const StoredFile& file) {
  // Magic, version, and the length of the dictionary in two or four bytes.
  unsigned char front[12] = {};
  const std::uint64_t version_end = kMagic.size() + 2;
  const std::size_t front_bytes = std::min<std::uint64_t>(sizeof front, file.size());
  file.read(front, 0, front_bytes);
  const std::size_t magic_bytes = std::min(front_bytes, kMagic.size());
  if (!std::equal(kMagic.begin(), kMagic.begin() + magic_bytes, reinterpret_cast<char*>(front)))
    file.is_not("an .npy file", "it does not begin with \"\\x93NUMPY\"");
  if (file.size() < version_end + 2)
    file.damaged(str("it has ", file.size(), " bytes, too few for a header"));
  const int major = front[6], minor = front[7];
  if (major < 1 || major > 3 || minor != 0)
    file.damaged(str("its format is ", major, '.', minor, ", not 1.0, 2.0 or 3.0"));
  const int length_bytes = major == 1 ? 2 : 4;
  const std::uint64_t text_begin = version_end + length_bytes;
  std::uint64_t length = 0;
  for (int i = length_bytes; i-- > 0;) length = length << 8 | front[version_end + i];
  if (text_begin > file.size() || length > file.size() - text_begin)
    file.damaged(str("its header would have ", length, " bytes, but the file has ", file.size(),
                     "; it may be truncated"));
  if (length > kMaxNpyHeaderBytes)
    file.damaged(str("its header would have ", length, " bytes, more than the ", kMaxNpyHeaderBytes,
                     " that are allowed"));
  std::string text(length, ' ');
  file.read(text.data(), text_begin, length);

  NpyHeader header = DictReader(text, file).read();
  header.data_begin = text_begin + length;
  const std::uint64_t data_bytes = file.size() - header.data_begin;
  const auto bytes = bytes_of({header.sizes.begin(), header.sizes.end()}, header.format.dtype);
  if (!bytes) file.damaged("its sizes multiply to more bytes than 63 bits hold");
  if (*bytes > data_bytes)
    file.damaged(str("its shape takes ", *bytes, " bytes, but it has ", data_bytes,
                     " behind the header; it may be truncated"));
  if (*bytes < data_bytes)
    file.damaged(str(data_bytes - *bytes, " bytes stand behind its last element"));
  return header;
}

std::string print_npy_header(StoredDType dtype, const std::vector<std::int64_t>& sizes) {
  const auto* known = std::find_if(std::begin(kNpyDTypes), std::end(kNpyDTypes),
                                   [&](const auto& entry) { return entry.dtype == dtype; });
  std::string text = str("{'descr': '", size_of(dtype) == 1 ? '|' : '<', known->name,
                         "', 'fortran_order': False, 'shape': (", join(sizes),
                         sizes.size() == 1 ? "," : "", "), }");
  constexpr std::size_t kAlignment = 64;
  const std::size_t front = kMagic.size() + 4;
  const std::size_t whole = (front + text.size() + 1 + kAlignment - 1) / kAlignment * kAlignment;
  text.resize(whole - front - 1, ' ');
  text += '\n';
  const char version_and_length[] = {1, 0, static_cast<char>(text.size() & 255),
                                     static_cast<char>(text.size() >> 8)};
  return str(kMagic, std::string_view(version_and_length, 4), text);
}

}  // namespace reel
