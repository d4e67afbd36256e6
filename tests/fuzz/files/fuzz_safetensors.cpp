// Fuzz target: reads any bytes as a safetensors file. The file is read completely, or refused with
// an IoError.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "reel/core/base/errors.h"
#include "reel/frontend/files/safetensors_header.h"
#include "reel/tests/fuzz/files/memory_file.h"

namespace reel {
namespace {

void read_all(std::string_view bytes) try {
  const MemoryFile memory(bytes);
  const StoredFile file(memory.path(), "fuzz");
  SafetensorsHeader header;
  read_safetensors_header(file, header);
  header.metadata();
  for (const StoredTensor& tensor : header.tensors) {
    if (!tensor.dtype || !counterpart(*tensor.dtype)) continue;
    std::uint64_t count = 1;
    for (const std::int64_t size : tensor.sizes()) count *= static_cast<std::uint64_t>(size);
    std::vector<char> data(count * size_of(*counterpart(*tensor.dtype)));
    read_elements(file, header.data_begin + tensor.begin, count, {*tensor.dtype}, data.data(),
                  std::string(tensor.name));
  }
} catch (const IoError&) {
}

/// Returns the bytes with a correct header length. Most mutations make the length wrong.
std::string with_right_length(std::string_view bytes) {
  constexpr std::size_t kLengthBytes = 8;
  std::string result(bytes);
  const std::size_t end = result.find_last_of("}]");
  if (end == std::string::npos || end < kLengthBytes) return result;
  const std::uint64_t length = end + 1 - kLengthBytes;
  std::memcpy(result.data(), &length, kLengthBytes);
  return result;
}

}  // namespace
}  // namespace reel

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  reel::read_all(bytes);
  reel::read_all(reel::with_right_length(bytes));
  return 0;
}
