#include "reel/frontend/files/audio_chunks.h"

#include <string>

namespace reel {
namespace {

constexpr std::uint64_t kFormBytes = 12, kChunkBytes = 8;
// Programs that write to a pipe put 2^32 - 1 for the size of the samples, or 2^31 less some
// thousand bytes, as sox and espeak-ng do.
constexpr std::uint64_t kUnknownSize = 0x7fff0000;

}  // namespace

std::uint64_t missing_audio_bytes(const StoredFile& file) {
  const auto text = [&](std::uint64_t offset, std::uint64_t count) {
    std::string bytes(count, '\0');
    file.read(bytes.data(), offset, count);
    return bytes;
  };
  if (file.size() < kFormBytes) return 0;
  const std::string form = text(0, kFormBytes), kind = form.substr(8);
  const bool is_wav = form.starts_with("RIFF") && kind == "WAVE";
  if (!is_wav && !(form.starts_with("FORM") && (kind == "AIFF" || kind == "AIFC"))) return 0;
  for (std::uint64_t at = kFormBytes; at + kChunkBytes <= file.size();) {
    const std::string chunk = text(at, kChunkBytes);
    std::uint64_t size = 0;
    for (std::size_t i = 0; i < 4; ++i) {
      const auto byte = static_cast<unsigned char>(chunk[is_wav ? 7 - i : 4 + i]);
      size = size << 8 | byte;
    }
    at += kChunkBytes;
    if (chunk.starts_with(is_wav ? "data" : "SSND"))
      return size < kUnknownSize && at + size > file.size() ? at + size - file.size() : 0;
    at += size + size % 2;  // chunks begin at even positions
  }
  return 0;
}

}  // namespace reel
