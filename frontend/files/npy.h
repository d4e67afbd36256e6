// frontend/files/npy.h — save_npy and load_npy, single arrays in NumPy's file format.
#pragma once

#include <string>

#include "reel/core/base/visibility.h"
#include "reel/core/types/tensor.h"

REEL_API_BEGIN
namespace reel {

/// Writes a tensor as numpy.save does: format 1.0, little-endian, row-major.
///
/// f32, f64, i32, i64 and boolean become <f4, <f8, <i4, <i8 and |b1. Dims become sizes; padding is
/// written unchanged. The file at `path` is replaced as a whole or not at all, and is on the disk
/// when the function returns. Throws IoError with path and reason; ArgumentError for an empty
/// Tensor, a TensorArray, or more than 64 axes; TraceError inside a trace.
/// Format: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
void save_npy(const std::string& path, const Tensor& tensor);

/// Returns the array of a file of format 1.0, 2.0 or 3.0. Its axes become `dims`, or plain ones if
/// dims are empty. An undefined dim gives a name only: it is replaced by a dim with the size in the
/// file.
///
/// Narrow types are widened exactly: f2 becomes f32; u1, i1, u2 and i2 become i32; u4 becomes i64.
/// Big-endian and Fortran-ordered arrays are converted. Throws IoError if the file cannot be read,
/// is damaged, or has bytes after the array; DTypeError for elements that no dtype holds (u8, c8,
/// strings, objects, records); ShapeError if dims do not fit.
Tensor load_npy(const std::string& path, const Dims& dims = {});

}  // namespace reel
REEL_API_END
