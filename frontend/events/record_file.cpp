#include "reel/frontend/events/record_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "reel/core/base/errors.h"
#include "reel/core/base/reason_of.h"
#include "reel/core/base/str.h"

namespace reel {
namespace {

constexpr std::array<std::uint32_t, 256> make_crc_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = crc & 1 ? crc >> 1 ^ 0x82F63B78u : crc >> 1;
    table[byte] = crc;
  }
  return table;
}
constexpr std::array<std::uint32_t, 256> kCrcTable = make_crc_table();

void append_number(std::string& to, std::uint64_t number, int bytes) {
  for (int i = 0; i < bytes; ++i) to += static_cast<char>(number >> 8 * i & 255);
}

/// Appends the checksum as records store it: rotated and with an offset, since a checksum of bytes
/// that contain checksums is weak.
void append_checksum(std::string& to, std::string_view bytes) {
  const std::uint32_t crc = crc32c(bytes);
  append_number(to, (crc >> 15 | crc << 17) + 0xA282EAD8u, 4);
}

}  // namespace

std::uint32_t crc32c(std::string_view bytes) {
  std::uint32_t crc = ~0u;
  for (const char byte : bytes)
    crc = kCrcTable[(crc ^ static_cast<unsigned char>(byte)) & 255] ^ crc >> 8;
  return ~crc;
}

RecordFile::RecordFile(const std::string& path, std::string what)
    : path_(path),
      what_(std::move(what)),
      file_(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)) {
  if (file_ < 0) fail("make");
}
RecordFile::~RecordFile() { ::close(file_); }

void RecordFile::fail(const char* does) const {
  throw IoError(str(what_, ": cannot ", does, ' ', path_, ": ", reason_of(errno)));
}

void RecordFile::append(std::string_view record) {
  std::string all;
  all.reserve(record.size() + 16);
  append_number(all, record.size(), 8);
  append_checksum(all, all);
  all += record;
  append_checksum(all, record);
  for (std::string_view rest = all; !rest.empty();) {
    const ssize_t count = ::write(file_, rest.data(), rest.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail("write to");
    rest.remove_prefix(static_cast<std::size_t>(count));
  }
}

}  // namespace reel
