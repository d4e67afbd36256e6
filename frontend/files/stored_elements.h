// frontend/files/stored_elements.h — element types of files, and reading them as dtypes of the
// library.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "reel/core/base/visibility.h"
#include "reel/core/types/dtype.h"
#include "reel/frontend/files/stored_file.h"

REEL_API_BEGIN
namespace reel {

// GCC's -Wshadow takes an enumerator f32 for one that hides reel::f32, although its name needs
// StoredDType::.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
/// The type of elements in a file.
enum class StoredDType : std::uint8_t {
  boolean,
  u8,
  i8,
  u16,
  i16,
  u32,
  i32,
  u64,
  i64,
  f8,
  f16,
  bf16,
  f32,
  f64
};
#pragma GCC diagnostic pop

/// Returns the size of an element in bytes.
std::uint64_t size_of(StoredDType stored);
StoredDType stored_as(DType dtype);
/// Returns the narrowest dtype of the library that holds every value: f16 and bf16 become f32, u8
/// to i16 become i32, u32 becomes i64. Returns nullopt for u64 and f8.
std::optional<DType> counterpart(StoredDType stored);
std::ostream& operator<<(std::ostream& out, StoredDType stored);

/// Computes the bytes of an array, given its sizes one by one.
class ByteCount {
 public:
  explicit ByteCount(StoredDType stored) : bytes_(size_of(stored)) {}
  void multiply_by(std::uint64_t size);
  /// Returns the bytes, or nullopt if they do not fit into 63 bits. To rule out any later overflow,
  /// the check counts 8 bytes per element, the widest in memory, and leaves out sizes of zero.
  std::optional<std::uint64_t> result() const;

 private:
  std::uint64_t bytes_, widest_ = sizeof(double);
  bool fits_ = true;
};

/// Returns ByteCount::result() for an array of this shape.
std::optional<std::uint64_t> bytes_of(const std::vector<std::uint64_t>& sizes, StoredDType stored);

/// The type and byte order of an array's elements in a file.
struct StoredFormat {
  StoredDType dtype;
  bool is_big_endian = false;
};

/// Reads `count` elements from `offset` on, converted to their counterpart. Requires that they have
/// one. Throws IoError, also for booleans that are neither 0 nor 1; `subject` names the array in
/// that message.
void read_elements(const StoredFile& file, std::uint64_t offset, std::uint64_t count,
                   StoredFormat format, void* to, const std::string& subject);

}  // namespace reel
REEL_API_END
