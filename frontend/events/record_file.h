// frontend/events/record_file.h — RecordFile, a file of records with checksums (TFRecord).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace reel {

/// Returns the CRC-32C of the bytes (RFC 3720, appendix B.4).
std::uint32_t crc32c(std::string_view bytes);

/// A file to which records are appended. Each is written at once: a program that is killed leaves
/// whole records.
///
/// Format: the length in eight bytes, its checksum, the record, and its checksum
/// (https://www.tensorflow.org/tutorials/load_data/tfrecord).
class RecordFile {
 public:
  /// Makes a new file. Throws IoError if it cannot be made, or exists already; the message begins
  /// with `what`.
  RecordFile(const std::string& path, std::string what);
  ~RecordFile();
  RecordFile(const RecordFile&) = delete;
  RecordFile& operator=(const RecordFile&) = delete;

  /// Throws IoError if the record cannot be written.
  void append(std::string_view record);
  const std::string& path() const { return path_; }

 private:
  [[noreturn]] void fail(const char* does) const;

  std::string path_, what_;
  int file_;
};

}  // namespace reel
