// frontend/safetensors_header.h — the JSON at the front of a safetensors file, checked.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "reel/core/dtype.h"

namespace reel {

/// One tensor of a file; its data are bytes [begin, end) behind the header.
struct StoredTensor {
  std::string name;
  DType dtype = f32;
  std::vector<std::int64_t> sizes;
  std::uint64_t begin = 0, end = 0;
};

struct SafetensorsHeader {
  std::vector<StoredTensor> tensors;
  std::map<std::string, std::string> metadata;
};

/// The largest header that readers of the format accept.
inline constexpr std::uint64_t kMostHeaderBytes = 100'000'000;

/// Reads the header of a file with so many bytes of data. What it returns can be trusted: sizes
/// multiply to the bytes of each tensor, and the tensors fill the data without gaps or overlaps.
/// Throws IoError, which begins with `file`.
SafetensorsHeader parse_safetensors_header(std::string_view json, std::uint64_t data_bytes,
                                           const std::string& file);

/// The header as text, filled up with spaces to a multiple of 8 bytes. Throws ArgumentError when a
/// name is no UTF-8.
std::string print_safetensors_header(const SafetensorsHeader& header);

}  // namespace reel
