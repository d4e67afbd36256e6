// frontend/stored_elements.h — the elements that files know, and reading them as ours.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "reel/core/dtype.h"
#include "reel/frontend/stored_file.h"

namespace reel {

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

/// In bytes.
std::uint64_t size_of(StoredDType stored);
StoredDType stored_as(DType dtype);
/// The narrowest of our dtypes that holds every value: f16 and bf16 become f32, u8 to i16 become
/// i32, u32 becomes i64. u64 and f8 have none.
std::optional<DType> counterpart(StoredDType stored);
std::ostream& operator<<(std::ostream& out, StoredDType stored);

/// The bytes of an array whose sizes are given one by one.
class ByteCount {
 public:
  explicit ByteCount(StoredDType stored) : bytes_(size_of(stored)) {}
  void multiply_by(std::uint64_t size);
  /// None when 63 bits do not hold them, or the product of the sizes without the zeros among them,
  /// each element taken as wide as it may become in memory: no product of sizes overflows there.
  std::optional<std::uint64_t> result() const;

 private:
  std::uint64_t bytes_, widest_ = sizeof(double);
  bool fits_ = true;
};

/// The result of ByteCount for an array of that shape.
std::optional<std::uint64_t> bytes_of(const std::vector<std::uint64_t>& sizes, StoredDType stored);

/// How the elements of an array stand in a file.
struct StoredFormat {
  StoredDType dtype;
  bool is_big_endian = false;
};

/// Reads `count` elements from `offset` on, as elements of their counterpart, which they must have.
/// Throws IoError, and for bytes that are no booleans; then `subject` says whose they are.
void read_elements(const StoredFile& file, std::uint64_t offset, std::uint64_t count,
                   StoredFormat format, void* to, const std::string& subject);

}  // namespace reel
