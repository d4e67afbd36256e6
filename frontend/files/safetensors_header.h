// frontend/files/safetensors_header.h — reads, checks and writes the JSON header of safetensors
// files.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reel/frontend/files/json_reader.h"
#include "reel/frontend/files/stored_elements.h"

namespace reel {

/// One tensor of a file; its data are the bytes [begin, end) after the header.
struct StoredTensor {
  std::string_view name;
  std::string_view dtype_name;       ///< as the file has it: F32
  std::optional<StoredDType> dtype;  ///< nullopt for a name that this library does not know
  std::string_view shape;            ///< as the file has it: [2, 3]
  std::uint64_t begin = 0, end = 0;

  std::vector<std::int64_t> sizes() const;
};

/// The header of a file. Its views point into its own text, so it takes less than three times the
/// memory of the text.
struct SafetensorsHeader {
  std::string text;
  std::deque<StoredTensor> tensors;  ///< sorted by name; a deque never moves its elements
  std::deque<std::string> names;     ///< names that have escapes in the text
  std::string_view metadata_text;    ///< a JSON object of strings; empty if there is none
  std::uint64_t data_begin = 0;      ///< offset in the file
  std::uint64_t work = 0;            ///< bytes read plus names compared, for tests

  SafetensorsHeader() = default;
  SafetensorsHeader(const SafetensorsHeader&) = delete;
  SafetensorsHeader& operator=(const SafetensorsHeader&) = delete;

  /// Returns null if no tensor has this name. Cost: O(log n) comparisons.
  const StoredTensor* find(std::string_view name) const;
  std::map<std::string, std::string> metadata() const;
};

/// The largest header that readers of the format accept.
inline constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;

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

/// Returns the bytes in front of the data: the length of the header, and the header, padded with
/// spaces to a multiple of 8 bytes. Throws ArgumentError if a name is not UTF-8, if two keys are
/// equal, or if the header is larger than allowed.
std::string print_safetensors_header(const std::vector<TensorToStore>& tensors,
                                     const std::map<std::string, std::string>& metadata);

}  // namespace reel
