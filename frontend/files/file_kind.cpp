#include "reel/frontend/files/file_kind.h"

#include <algorithm>

namespace reel {
namespace {

using std::string_view_literals::operator""sv;

constexpr struct {
  std::string_view bytes, kind;
} kKinds[] = {
    {"PK\x03\x04", "a zip archive, as torch.save and numpy.savez write them"},
    {"PK\x05\x06", "a zip archive, as torch.save and numpy.savez write them"},
    {"\x93NUMPY", "an .npy file"},
    {"\x89HDF\r\n\x1a\n", "an HDF5 file"},
    {"GGUF", "a GGUF file"},
    {"\x1f\x8b", "a file compressed by gzip"},
    {"BZh", "a file compressed by bzip2"},
    {"\xfd"
     "7zXZ\0"sv,
     "a file compressed by xz"},
    {"\x28\xb5\x2f\xfd", "a file compressed by zstd"},
    {"\x89PNG\r\n", "a PNG picture"},
    {"\x7f"
     "ELF",
     "a program"},
    {"version https://git-lfs", "a pointer of Git LFS in place of the file itself"},
};

bool is_pickle(std::string_view front) {
  return front.size() > 2 && front[0] == '\x80' && front[1] >= 2 && front[1] <= 5;
}

bool is_safetensors(std::string_view front) {
  return front.size() > 8 && front[8] == '{' && front.substr(4, 4) == "\0\0\0\0"sv;
}

bool is_tar(std::string_view front) {
  return front.size() >= 262 && front.substr(257, 5) == "ustar";
}

bool is_html(std::string_view front) {
  const auto begins_with = [&](std::string_view word) {
    return front.size() >= word.size() &&
           std::equal(word.begin(), word.end(), front.begin(), [](char small, char c) {
             return c == small || (c >= 'A' && c <= 'Z' && c - 'A' + 'a' == small);
           });
  };
  return begins_with("<!doctype html") || begins_with("<html");
}

bool is_text(std::string_view front) {
  return front.size() > 8 && std::all_of(front.begin(), front.end(), [](char c) {
           const auto byte = static_cast<unsigned char>(c);
           return (byte >= ' ' && byte < 0x7f) || c == '\n' || c == '\r' || c == '\t';
         });
}

/// Returns the number of zeros among the bytes at first, first + 2, ...
std::size_t count_zeros(std::string_view front, std::size_t first) {
  std::size_t zeros = 0;
  for (std::size_t i = first; i < front.size(); i += 2) zeros += front[i] == '\0';
  return zeros;
}

}  // namespace

std::string_view wide_encoding_of(std::string_view front) {
  if (front.starts_with("\xff\xfe\0\0"sv)) return "UTF-32LE";
  if (front.starts_with("\0\0\xfe\xff"sv)) return "UTF-32BE";
  if (front.starts_with("\xff\xfe")) return "UTF-16LE";
  if (front.starts_with("\xfe\xff")) return "UTF-16BE";
  // Digits, separators and line ends have one zero of two bytes. A table has them in every row.
  const std::size_t even = count_zeros(front, 0), odd = count_zeros(front, 1);
  if (even + odd < front.size() / 16 + 1 || (even && odd)) return {};
  return odd ? "UTF-16LE" : "UTF-16BE";
}

std::string_view kind_of_file(std::string_view front) {
  for (const auto& [bytes, kind] : kKinds)
    if (front.starts_with(bytes)) return kind;
  if (is_pickle(front)) return "a pickle, as Python and old versions of torch.save write them";
  if (is_safetensors(front)) return "a safetensors file";
  if (is_tar(front)) return "a tar archive";
  const std::size_t first = front.find_first_not_of(" \t\r\n");
  const std::string_view text = first == std::string_view::npos ? "" : front.substr(first);
  if (is_html(text)) return "an HTML page";
  if (is_text(front)) return text.starts_with('{') ? "JSON" : "text";
  return {};
}

}  // namespace reel
