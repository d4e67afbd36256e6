// onnx/external_data.h — initializers that a model keeps in a file beside it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "reel/core/types/tensor.h"

namespace reel::exported {

/// The contents of a file of tensors, in order. Each begins at a multiple of kAlignment, so that
/// runtimes can map it to memory.
class ExternalData {
 public:
  static constexpr std::uint64_t kAlignment = 4096;

  /// location: the name of the file, in the folder of the model.
  explicit ExternalData(std::string location) : location_(std::move(location)) {}

  const std::string& location() const { return location_; }
  /// Adds a tensor. Returns its offset in the file.
  std::uint64_t add(const Tensor& tensor);
  /// Returns the bytes of the file as parts. They are valid as long as this object.
  std::vector<std::string_view> parts() const;

 private:
  std::string location_;
  std::vector<Tensor> tensors_;
  std::uint64_t end_ = 0;
};

/// Returns a name for a file of tensors of the model at `path`, MODEL.data-N, that no file has yet.
std::string new_location(const std::string& path);
/// Returns the files of that form in which the model at `path` has tensors. Returns none if there
/// is no model.
std::vector<std::string> locations_of(const std::string& path);

/// Writes a model, and its tensors in another file unless `data` is null. The data get a new name
/// and are written first; files with tensors of the model that was there are removed last, so that
/// at each moment the file at `path` is a whole model. Throws IoError; the old model is then
/// unchanged.
void write_model_files(const std::string& path, const std::string& bytes, const ExternalData* data);

}  // namespace reel::exported
