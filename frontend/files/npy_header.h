// frontend/files/npy_header.h — reads, checks and writes the header of .npy files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "reel/frontend/files/stored_elements.h"

namespace reel {

struct NpyHeader {
  StoredFormat format{StoredDType::f32};
  bool is_fortran_order = false;
  std::vector<std::int64_t> sizes;
  std::uint64_t data_begin = 0;  ///< offset in the file
};

/// The largest number of axes of NumPy's arrays.
inline constexpr std::size_t kMaxNpyAxes = 64;

/// Returns the checked header of a file. Ensures that the array's elements fill the rest of the
/// file. Throws IoError, or DTypeError for elements that no dtype holds.
NpyHeader read_npy_header(const StoredFile& file);

/// Returns the header of a little-endian, row-major array, padded so that elements are aligned to
/// 64 bytes.
std::string print_npy_header(StoredDType dtype, const std::vector<std::int64_t>& sizes);

}  // namespace reel
