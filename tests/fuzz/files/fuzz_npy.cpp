// Fuzz target: reads any bytes as an .npy file. The file is read completely, or refused with an
// IoError or a DTypeError.
#include <cstdint>
#include <vector>

#include "reel/core/base/errors.h"
#include "reel/frontend/files/npy_header.h"
#include "reel/tests/fuzz/files/memory_file.h"

namespace reel {
namespace {

void read_all(std::string_view bytes) try {
  const MemoryFile memory(bytes);
  const StoredFile file(memory.path(), "fuzz");
  const NpyHeader header = read_npy_header(file);
  std::uint64_t count = 1;
  for (const std::int64_t size : header.sizes) count *= static_cast<std::uint64_t>(size);
  std::vector<char> data(count * size_of(*counterpart(header.format.dtype)));
  read_elements(file, header.data_begin, count, header.format, data.data(), "it");
} catch (const IoError&) {
} catch (const DTypeError&) {
}

}  // namespace
}  // namespace reel

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  reel::read_all(bytes);
  // Once more with a correct header length, up to the last bracket, in format 1.0.
  std::string right(bytes);
  const std::size_t end = right.rfind('}');
  if (size > 10 && end != std::string::npos && end >= 10) {
    right.replace(0, 8, "\x93NUMPY\1", 8);
    right[8] = static_cast<char>((end + 1 - 10) & 255);
    right[9] = static_cast<char>((end + 1 - 10) >> 8);
    reel::read_all(right);
  }
  return 0;
}
