#include "reel/onnx/external_data.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <set>

#include "reel/core/base/errors.h"
#include "reel/core/base/reason_of.h"
#include "reel/core/base/str.h"
#include "reel/core/base/write_target.h"
#include "reel/frontend/files/replace_file.h"
#include "reel/onnx/proto.h"

namespace reel::exported {
namespace {

namespace fs = std::filesystem;

constexpr char kPadding[ExternalData::kAlignment] = {};

std::string_view bytes_of(const Tensor& tensor) {
  return {tensor.data<char>(), static_cast<std::size_t>(tensor.type().bytes())};
}
std::uint64_t aligned(std::uint64_t offset) {
  constexpr std::uint64_t kAlignment = ExternalData::kAlignment;
  return (offset + kAlignment - 1) / kAlignment * kAlignment;
}

/// Returns the prefix of names of files with tensors. A number follows.
std::string prefix_of(const fs::path& model) { return model.filename().string() + ".data-"; }

/// Returns the model's file, behind links.
fs::path target_of(const std::string& path) {
  const WriteTarget target = find_write_target(path, "save_onnx");
  if (target.descriptor || (target.old && !S_ISREG(target.old->st_mode)))
    throw IoError(str("save_onnx: ", path,
                      " is no file on a disk, and the tensors of a model above max_file_bytes lie "
                      "in a file beside it"));
  return target.path;
}

/// Creates an empty file of a new name, so that no other program takes the name.
fs::path reserved_beside(const fs::path& model) {
  for (int number = 1;; ++number) {
    const fs::path file = model.parent_path() / str(prefix_of(model), number);
    const int descriptor = ::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor >= 0) {
      ::close(descriptor);
      return file;
    }
    if (errno != EEXIST)
      throw IoError(str("save_onnx: ", file.string(), " cannot be created: ", reason_of(errno)));
  }
}

/// Returns the files, in the form MODEL.data-N, in which a model has tensors. Returns none if there
/// is no model.
std::set<fs::path> files_of(const fs::path& model) {
  std::error_code error;
  const std::string prefix = prefix_of(model);
  // Reading a large model takes a while: only if there is a file to be found.
  const fs::path folder = model.parent_path();
  const fs::directory_iterator files(folder.empty() ? "." : folder, error);
  if (error || std::none_of(begin(files), end(files), [&](const auto& entry) {
        return entry.path().filename().string().starts_with(prefix);
      }))
    return {};
  ::onnx::ModelProto proto;
  if (!fs::is_regular_file(model, error)) return {};
  std::ifstream stream(model, std::ios::binary);
  if (!stream || !proto.ParseFromIstream(&stream)) return {};
  std::set<fs::path> found;
  for (const auto& tensor : proto.graph().initializer())
    for (const auto& entry : tensor.external_data()) {
      const std::string& name = entry.value();
      if (entry.key() == "location" && name.starts_with(prefix) && name.size() > prefix.size() &&
          std::all_of(name.begin() + static_cast<std::ptrdiff_t>(prefix.size()), name.end(),
                      [](char c) { return c >= '0' && c <= '9'; }))
        found.insert(folder / name);
    }
  return found;
}

}  // namespace

ExternalData::ExternalData(const std::string& path)
    : model_(target_of(path)), file_(reserved_beside(model_)) {}
ExternalData::~ExternalData() {
  // An error after the model was renamed leaves a model that needs the file.
  std::error_code error;
  if (!is_written_ && files_of(model_).count(file_) == 0) fs::remove(file_, error);
}

std::uint64_t ExternalData::add(const Tensor& tensor) {
  const std::uint64_t offset = aligned(end_);
  tensors_.push_back(tensor);
  end_ = offset + bytes_of(tensor).size();
  return offset;
}

std::vector<std::string_view> ExternalData::parts() const {
  std::vector<std::string_view> parts;
  std::uint64_t end = 0;
  for (const Tensor& tensor : tensors_) {
    parts.emplace_back(kPadding, aligned(end) - end);
    parts.push_back(bytes_of(tensor));
    end = aligned(end) + bytes_of(tensor).size();
  }
  return parts;
}

void write_model_files(const std::string& path, const std::string& bytes, ExternalData* data) {
  const std::string_view whole[] = {bytes};
  if (data) replace_file(data->file_.string(), data->parts(), "save_onnx");
  const WriteTarget target = find_write_target(path, "save_onnx");
  const std::set<fs::path> old = target.descriptor ? std::set<fs::path>() : files_of(target.path);
  replace_file(path, whole, "save_onnx");
  if (data) data->is_written_ = true;
  std::error_code error;
  for (const fs::path& file : old)
    if (!data || file != data->file_) fs::remove(file, error);
}

}  // namespace reel::exported
