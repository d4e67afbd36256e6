// frontend/npy_header.h — what stands in front of the elements of an .npy file, checked.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "reel/frontend/stored_elements.h"

namespace reel {

struct NpyHeader {
  StoredFormat format{StoredDType::f32};
  bool is_fortran_order = false;
  std::vector<std::int64_t> sizes;
  std::uint64_t data_begin = 0;  ///< in the file
};

/// As many axes as NumPy's arrays have at most.
inline constexpr std::size_t kMostNpyAxes = 64;

/// The header can be trusted: its elements fill the rest of the file. Throws IoError, and
/// DTypeError for elements that no dtype holds.
NpyHeader read_npy_header(const StoredFile& file);

/// The header of a little-endian, row-major array, of a length that aligns its elements to 64
/// bytes.
std::string print_npy_header(StoredDType dtype, const std::vector<std::int64_t>& sizes);

}  // namespace reel
