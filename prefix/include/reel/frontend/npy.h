// frontend/npy.h — single arrays in files that NumPy reads and writes.
#pragma once

#include <string>

#include "reel/core/tensor.h"

namespace reel {

/// Writes a tensor as numpy.save does: format 1.0, little-endian, row-major.
///
/// f32, f64, i32, i64 and boolean become <f4, <f8, <i4, <i8 and |b1; dims become sizes, padding is
/// written as it is. The file at `path` is replaced as a whole or not at all, and is on the disk
/// when the function returns. Throws IoError with path and reason, ArgumentError for an empty
/// Tensor or a TensorArray, TraceError inside a trace. Format:
/// https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
void save_npy(const std::string& path, const Tensor& tensor);

/// Reads an array of format 1.0, 2.0 or 3.0, its axes called as `dims`, or plain. An undefined dim
/// is a name: it is replaced by one of the size in the file.
///
/// Narrow types are widened exactly: f2 becomes f32, u1, i1, u2 and i2 become i32, u4 becomes i64;
/// big-endian and Fortran-ordered arrays are turned into ours. Throws IoError when the file cannot
/// be read or is damaged, and for what stands behind the array; DTypeError for elements that no
/// dtype holds (u8, c8, strings, objects, records); ShapeError when dims do not fit.
Tensor load_npy(const std::string& path, const Dims& dims = {});

}  // namespace reel
