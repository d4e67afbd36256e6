#include "images.h"

#include <zlib.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>

#include "../training/user_error.h"

namespace {

/// Reads a file in the idx format: sizes, then bytes.
class IdxFile {
 public:
  /// rank: number of sizes. Throws UserError.
  IdxFile(const std::string& path, std::size_t rank) : path_(path), file_(open(path), &::gzclose) {
    constexpr std::uint32_t kBytes = 0x0800;
    if (number() != kBytes + rank)
      throw UserError(path_ + " is no idx file of bytes with " + std::to_string(rank) + " sizes");
    for (std::size_t i = 0; i < rank; ++i) sizes_.push_back(number());
  }

  const std::vector<std::size_t>& sizes() const { return sizes_; }

  /// Returns the bytes behind the sizes. Throws UserError.
  std::vector<std::uint8_t> bytes() {
    constexpr std::size_t kMaxBytes = std::size_t{1} << 30;
    std::size_t count = 1;
    for (const std::size_t size : sizes_) {
      if (size && count > kMaxBytes / size) throw UserError(path_ + " would hold more than 1 GiB");
      count *= size;
    }
    std::vector<std::uint8_t> result(count);
    read(result.data(), count);
    char more;
    if (::gzread(file_.get(), &more, 1) != 0)
      throw UserError(path_ + " is longer than its header says");
    return result;
  }

 private:
  static gzFile open(const std::string& path) {
    errno = 0;
    gzFile file = ::gzopen(path.c_str(), "rb");
    if (!file) throw UserError("cannot read " + path + ": " + std::strerror(errno));
    return file;
  }
  void read(void* to, std::size_t count) {
    errno = 0;
    const int read = ::gzread(file_.get(), to, static_cast<unsigned>(count));
    if (read == static_cast<int>(count)) return;
    int code = Z_OK;
    const char* reason = ::gzerror(file_.get(), &code);
    if (code == Z_ERRNO) reason = std::strerror(errno);
    const bool is_short = code == Z_OK || code == Z_BUF_ERROR;
    throw UserError("cannot read " + path_ + ": " + (is_short ? "it is cut off" : reason));
  }
  /// Reads a number, most significant byte first.
  std::uint32_t number() {
    std::uint8_t bytes[4];
    read(bytes, sizeof bytes);
    std::uint32_t result = 0;
    for (const std::uint8_t byte : bytes) result = result << 8 | byte;
    return result;
  }

  std::string path_;
  std::unique_ptr<gzFile_s, int (*)(gzFile)> file_;
  std::vector<std::size_t> sizes_;
};

std::string find(const std::string& folder, const std::string& name) {
  const std::filesystem::path path = std::filesystem::path(folder) / name;
  const std::string packed = path.string() + ".gz";
  if (std::filesystem::exists(packed)) return packed;
  if (std::filesystem::exists(path)) return path.string();
  throw UserError("no " + packed +
                  "; Fashion-MNIST is Debian's dataset-fashion-mnist (scripts/install --pictures), "
                  "other folders are named with --data");
}

}  // namespace

Images read_images(const std::string& folder, const std::string& name) {
  const std::string pictures_path = find(folder, name + "-images-idx3-ubyte");
  const std::string labels_path = find(folder, name + "-labels-idx1-ubyte");
  IdxFile pictures(pictures_path, 3), labels(labels_path, 1);
  const std::vector<std::size_t>& sizes = pictures.sizes();
  if (labels.sizes()[0] != sizes[0])
    throw UserError(labels_path + " has " + std::to_string(labels.sizes()[0]) + " labels for " +
                    std::to_string(sizes[0]) + " pictures");
  if (sizes[0] == 0 || sizes[1] == 0 || sizes[2] == 0)
    throw UserError(pictures_path + " has no pixels");
  return {sizes[0], sizes[1], sizes[2], pictures.bytes(), labels.bytes()};
}
