#include "reel/frontend/safetensors.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "reel/frontend/replace_file.h"
#include "reel/frontend/safetensors_header.h"

namespace reel {
namespace {

static_assert(std::endian::native == std::endian::little, "safetensors files are little-endian");

constexpr std::uint64_t kLengthBytes = 8;  // in front of the header, which they say the length of

// ---- Reading ------------------------------------------------------------------------

/// A file that is open, and what its header says. Throws IoError wherever it is not as it should
/// be.
class StoredFile {
 public:
  StoredFile(const std::string& path, const char* what) : name_(str(what, ": ", path)) {
    // Not blocking, so that opening a pipe comes back to be refused.
    file_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file_ < 0) throw IoError(str(what, ": cannot open ", path, ": ", reason_of(errno)));
    try {
      read_header();
    } catch (...) {
      ::close(file_);
      throw;
    }
  }
  ~StoredFile() { ::close(file_); }
  StoredFile(const StoredFile&) = delete;
  StoredFile& operator=(const StoredFile&) = delete;

  const SafetensorsHeader& header() const { return header_; }
  [[noreturn]] void damaged(const std::string& reason) const {
    throw IoError(str(name_, " is damaged: ", reason));
  }

  void read_tensor(const StoredTensor& stored, void* to) const {
    read(static_cast<char*>(to), data_begin_ + stored.begin, stored.end - stored.begin);
  }

 private:
  void read_header() {
    struct stat status {};
    if (::fstat(file_, &status) != 0) throw IoError(str(name_, ": ", reason_of(errno)));
    if (!S_ISREG(status.st_mode)) throw IoError(str(name_, " is no regular file"));
    const auto size = static_cast<std::uint64_t>(status.st_size);
    if (size < kLengthBytes)
      damaged(
          str("it has ", size, " bytes, and the length of the header alone takes ", kLengthBytes));
    std::uint64_t length = 0;
    read(reinterpret_cast<char*>(&length), 0, kLengthBytes);
    if (length > kMostHeaderBytes)
      damaged(str("its header would have ", length, " bytes, more than the ", kMostHeaderBytes,
                  " that are allowed"));
    if (length > size - kLengthBytes)
      damaged(str("its header would have ", length, " bytes, but the file has ", size,
                  "; it may be truncated"));
    std::string text(length, ' ');
    read(text.data(), kLengthBytes, length);
    data_begin_ = kLengthBytes + length;
    header_ = parse_safetensors_header(text, size - data_begin_, name_);
  }

  void read(char* to, std::uint64_t offset, std::uint64_t count) const {
    while (count) {
      const ssize_t got = ::pread(file_, to, count, static_cast<off_t>(offset));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) throw IoError(str(name_, ": cannot be read: ", reason_of(errno)));
      if (got == 0) damaged("it became shorter while it was read");
      to += got;
      offset += static_cast<std::uint64_t>(got);
      count -= static_cast<std::uint64_t>(got);
    }
  }

  std::string name_;
  int file_ = -1;
  SafetensorsHeader header_;
  std::uint64_t data_begin_ = 0;
};

/// As types print: f32[3,4].
std::string print(const StoredTensor& stored) {
  return str(stored.dtype, '[', join(stored.sizes, ","), ']');
}

std::string quoted(const std::string& name) { return name.empty() ? "\"\"" : name; }

/// What the file has and the tree has not, and the other way round; empty if they fit.
std::string differences(const SafetensorsHeader& header, const std::vector<std::string>& names,
                        const Tensors& like) {
  std::unordered_map<std::string_view, const StoredTensor*> stored;
  for (const StoredTensor& tensor : header.tensors) stored[tensor.name] = &tensor;
  std::string result;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const TensorType& type = like[i].type();
    const auto found = stored.find(names[i]);
    if (found == stored.end()) {
      result += str("\n  ", quoted(names[i]), ": not in the file, ", type, " expected");
      continue;
    }
    const StoredTensor& tensor = *found->second;
    if (tensor.dtype != type.dtype() || tensor.sizes != type.sizes())
      result +=
          str("\n  ", quoted(names[i]), ": ", print(tensor), " in the file, ", type, " expected");
    stored.erase(found);
  }
  for (const StoredTensor& tensor : header.tensors)
    if (stored.count(tensor.name))
      result += str("\n  ", quoted(tensor.name), ": ", print(tensor), " in the file, not expected");
  return result;
}

// ---- Both ways ----------------------------------------------------------------------

void check_tensors(const char* what, const std::vector<std::string>& names,
                   const Tensors& tensors) {
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& tensor = tensors[i];
    if (!tensor.is_defined())
      throw ArgumentError(str(what, ": ", quoted(names[i]), " is an empty Tensor"));
    if (tensor.type().is_list())
      throw ArgumentError(str(what, ": ", quoted(names[i]),
                              " is a TensorArray, which the format does not know; stack it"));
    if (tensor.is_traced())
      throw TraceError(str(what, ": the value of ", quoted(names[i]), ' ', tensor.type(),
                           " is not known while tracing; return it from the traced function"));
  }
}

}  // namespace

namespace detail {

void save_tensors(const std::string& path, const std::vector<std::string>& names,
                  const Tensors& tensors, const Metadata& metadata) {
  constexpr const char* kWhat = "save_safetensors";
  check_tensors(kWhat, names, tensors);
  // The widest elements first, so that all are aligned.
  std::vector<std::size_t> order(tensors.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return size_of(tensors[a].dtype()) > size_of(tensors[b].dtype());
  });

  SafetensorsHeader header{{}, metadata};
  std::vector<std::string_view> data;
  std::uint64_t end = 0;
  for (const std::size_t i : order) {
    const TensorType& type = tensors[i].type();
    const std::uint64_t begin = std::exchange(end, end + static_cast<std::uint64_t>(type.bytes()));
    header.tensors.push_back({names[i], type.dtype(), type.sizes(), begin, end});
    data.emplace_back(tensors[i].data<char>(), end - begin);
  }
  const std::string json = print_safetensors_header(header);
  const std::uint64_t length = json.size();
  if (length > kMostHeaderBytes)
    throw ArgumentError(
        str(kWhat, ": names and metadata take more than ", kMostHeaderBytes, " bytes"));
  std::vector<std::string_view> parts{{reinterpret_cast<const char*>(&length), kLengthBytes}, json};
  parts.insert(parts.end(), data.begin(), data.end());
  replace_file(path, parts, kWhat);
}

Tensors load_tensors(const std::string& path, const std::vector<std::string>& names,
                     const Tensors& like) {
  constexpr const char* kWhat = "load_safetensors";
  check_tensors(kWhat, names, like);
  const StoredFile file(path, kWhat);
  const std::string wrong = differences(file.header(), names, like);
  if (!wrong.empty()) throw IoError(str(kWhat, ": ", path, " holds another model:", wrong));

  std::unordered_map<std::string_view, const StoredTensor*> stored;
  for (const StoredTensor& tensor : file.header().tensors) stored[tensor.name] = &tensor;
  Tensors result;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const Tensor tensor(allocate_block(like[i].type()));
    file.read_tensor(*stored.at(names[i]), tensor.data<void>());
    const auto* bytes = tensor.data<unsigned char>();
    if (tensor.dtype() == boolean && std::any_of(bytes, bytes + tensor.type().numel(),
                                                 [](unsigned char byte) { return byte > 1; }))
      file.damaged(str("tensor \"", names[i], "\" is BOOL, but has bytes other than 0 and 1"));
    result.push_back(tensor);
  }
  return result;
}

}  // namespace detail

Metadata read_safetensors_metadata(const std::string& path) {
  return StoredFile(path, "read_safetensors_metadata").header().metadata;
}

}  // namespace reel
