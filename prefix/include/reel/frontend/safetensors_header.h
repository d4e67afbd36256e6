// frontend/safetensors_header.h — the JSON at the front of a safetensors file, checked.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "reel/frontend/stored_elements.h"

namespace reel {

/// One tensor of a file; its data are bytes [begin, end) behind the header.
struct StoredTensor {
  std::string name;
  StoredDType dtype = StoredDType::f32;
  std::vector<std::int64_t> sizes;
  std::uint64_t begin = 0, end = 0;
};

struct SafetensorsHeader {
  std::vector<StoredTensor> tensors;  ///< by name
  std::map<std::string, std::string> metadata;
  std::uint64_t data_begin = 0;  ///< in the file
};

/// The largest header that readers of the format accept.
inline constexpr std::uint64_t kMostHeaderBytes = 100'000'000;

/// Reads what stands in front of the data. It can be trusted: sizes multiply to the bytes of each
/// tensor, within 63 bits, and the tensors fill the data without gaps or overlaps. Throws IoError.
SafetensorsHeader read_safetensors_header(const StoredFile& file);

/// What stands in front of the data: the length of the header, and the header, filled up with
/// spaces to a multiple of 8 bytes. Throws ArgumentError when a name is no UTF-8, when two keys
/// would be equal, or when it is larger than allowed.
std::string print_safetensors_header(const SafetensorsHeader& header);

}  // namespace reel
