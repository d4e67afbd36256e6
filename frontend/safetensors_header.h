// frontend/safetensors_header.h — the JSON at the front of a safetensors file, checked.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reel/frontend/json_reader.h"
#include "reel/frontend/stored_elements.h"

namespace reel {

/// One tensor of a file; its data are bytes [begin, end) behind the header.
struct StoredTensor {
  std::string_view name;
  std::string_view dtype_name;       ///< as the file has it: F32
  std::optional<StoredDType> dtype;  ///< none for a name that this library does not know
  std::string_view shape;            ///< as the file has it: [2, 3]
  std::uint64_t begin = 0, end = 0;

  std::vector<std::int64_t> sizes() const;
};

/// The header of a file. Its views are of its own text, so that it takes less than three times the
/// memory of the text.
struct SafetensorsHeader {
  std::string text;
  std::deque<StoredTensor> tensors;  ///< by name; a deque, whose growth moves no element
  std::deque<std::string> names;     ///< those that have escapes in the text
  std::string_view metadata_text;    ///< a JSON object of strings; empty if there is none
  std::uint64_t data_begin = 0;      ///< in the file
  std::uint64_t work = 0;            ///< bytes read and names compared to make it, for tests

  SafetensorsHeader() = default;
  SafetensorsHeader(const SafetensorsHeader&) = delete;
  SafetensorsHeader& operator=(const SafetensorsHeader&) = delete;

  /// Returns null if there is no tensor of that name. Takes the logarithm of their number.
  const StoredTensor* find(std::string_view name) const;
  std::map<std::string, std::string> metadata() const;
};

/// The largest header that readers of the format accept.
inline constexpr std::uint64_t kMostHeaderBytes = 100'000'000;

/// Reads and checks the header. Ensures: the tensors fill the data without
/// gaps or overlaps, and the sizes of each, if its dtype is known, multiply to its bytes, within
/// 63 bits. Throws IoError.
void read_safetensors_header(const StoredFile& file, SafetensorsHeader& header);

/// One tensor to be written.
struct TensorToStore {
  std::string_view name;
  StoredDType dtype;
  std::span<const std::int64_t> sizes;
  std::uint64_t begin = 0, end = 0;
};

/// What stands in front of the data: the length of the header, and the header, filled up with
/// spaces to a multiple of 8 bytes. Throws ArgumentError when a name is no UTF-8, when two keys
/// would be equal, or when it is larger than allowed.
std::string print_safetensors_header(const std::vector<TensorToStore>& tensors,
                                     const std::map<std::string, std::string>& metadata);

}  // namespace reel
