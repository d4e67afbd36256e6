#include "reel/frontend/files/stored_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>

#include "reel/core/base/errors.h"
#include "reel/core/base/reason_of.h"
#include "reel/core/base/str.h"
#include "reel/frontend/files/file_kind.h"

namespace reel {

StoredFile::StoredFile(const std::string& path, const char* what)
    : path_(path), name_(str(what, ": ", path)) {
  // O_NONBLOCK: opening a pipe must return, so that it can be refused.
  file_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file_ < 0) throw IoError(str(what, ": cannot open ", path, ": ", reason_of(errno)));
  try {
    check();
  } catch (...) {
    ::close(file_);
    throw;
  }
}

StoredFile::~StoredFile() { ::close(file_); }

void StoredFile::check() {
  struct stat status {};
  if (::fstat(file_, &status) != 0) throw IoError(str(name_, ": ", reason_of(errno)));
  if (!S_ISREG(status.st_mode)) throw IoError(str(name_, " is no regular file"));
  size_ = static_cast<std::uint64_t>(status.st_size);
}

void StoredFile::read(void* to, std::uint64_t offset, std::uint64_t count) const {
  char* next = static_cast<char*>(to);
  while (count) {
    const ssize_t got = ::pread(file_, next, count, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw IoError(str(name_, ": cannot be read: ", reason_of(errno)));
    if (got == 0) damaged("it became shorter while it was read");
    next += got;
    offset += static_cast<std::uint64_t>(got);
    count -= static_cast<std::uint64_t>(got);
  }
}

std::string StoredFile::front() const {
  std::string bytes(std::min<std::uint64_t>(size_, kFileFrontBytes), '\0');
  read(bytes.data(), 0, bytes.size());
  return bytes;
}

void StoredFile::is_not(const char* expected, const std::string& otherwise) const {
  const std::string_view kind = kind_of_file(front());
  throw IoError(str(name_, " is not ", expected, ": ",
                    kind.empty() ? otherwise : str("it looks like ", kind)));
}

void StoredFile::damaged(const std::string& reason) const { throw_damaged(name_, reason); }

void throw_damaged(const std::string& name, const std::string& reason) {
  constexpr std::size_t kMaxNameBytes = 400;
  throw IoError(str(name, " is damaged: ", reason.substr(0, kMaxNameBytes),
                    reason.size() > kMaxNameBytes ? "..." : ""));
}

}  // namespace reel
