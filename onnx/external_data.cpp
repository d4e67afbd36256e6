#include "reel/onnx/external_data.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

#include "reel/core/base/str.h"
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

/// Returns what precedes the number in names of files with tensors.
std::string prefix_of(const std::string& path) {
  return fs::path(path).filename().string() + ".data-";
}
fs::path beside(const std::string& path, const std::string& file) {
  return fs::path(path).parent_path() / file;
}

}  // namespace

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

std::string new_location(const std::string& path) {
  std::error_code error;
  for (int number = 1;; ++number) {
    const std::string name = str(prefix_of(path), number);
    if (!fs::exists(fs::symlink_status(beside(path, name), error))) return name;
  }
}

std::vector<std::string> locations_of(const std::string& path) {
  std::error_code error;
  const std::string prefix = prefix_of(path);
  // Reading a large model takes a while: only if there is a file to be found.
  const fs::path folder = fs::path(path).parent_path();
  const fs::directory_iterator files(folder.empty() ? "." : folder, error);
  if (error || std::none_of(begin(files), end(files), [&](const auto& entry) {
        return entry.path().filename().string().starts_with(prefix);
      }))
    return {};
  ::onnx::ModelProto model;
  if (!fs::is_regular_file(path, error)) return {};
  std::ifstream stream(path, std::ios::binary);
  if (!stream || !model.ParseFromIstream(&stream)) return {};
  std::set<std::string> found;
  for (const auto& tensor : model.graph().initializer())
    for (const auto& entry : tensor.external_data()) {
      const std::string& name = entry.value();
      if (entry.key() == "location" && name.starts_with(prefix) && name.size() > prefix.size() &&
          std::all_of(name.begin() + static_cast<std::ptrdiff_t>(prefix.size()), name.end(),
                      [](char c) { return c >= '0' && c <= '9'; }))
        found.insert(name);
    }
  return {found.begin(), found.end()};
}

void write_model_files(const std::string& path, const std::string& bytes,
                       const ExternalData* data) {
  const std::vector<std::string> old = locations_of(path);
  const std::string_view whole[] = {bytes};
  std::error_code error;
  if (data) {
    const fs::path file = beside(path, data->location());
    replace_file(file.string(), data->parts(), "save_onnx");
    try {
      replace_file(path, whole, "save_onnx");
    } catch (...) {
      fs::remove(file, error);
      throw;
    }
  } else {
    replace_file(path, whole, "save_onnx");
  }
  for (const std::string& name : old) fs::remove(beside(path, name), error);
}

}  // namespace reel::exported
