// onnx/external_data.h — initializers that a model keeps in a file beside it.
#pragma once

#include <cstdint>
#include <filesystem>
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

  /// Reserves the file, MODEL.data-N beside the model at `path`, behind links. The first free
  /// number is taken. Throws IoError if the file cannot be made, or the model is a device or pipe.
  explicit ExternalData(const std::string& path);
  /// Removes the file unless a model has its tensors in it.
  ~ExternalData();
  ExternalData(const ExternalData&) = delete;
  ExternalData& operator=(const ExternalData&) = delete;

  /// Returns the name of the file, in the folder of the model.
  std::string location() const { return file_.filename().string(); }
  /// Adds a tensor. Returns its offset in the file.
  std::uint64_t add(const Tensor& tensor);
  /// Returns the bytes of the file as parts. They are valid as long as this object.
  std::vector<std::string_view> parts() const;

 private:
  friend void write_model_files(const std::string& path, const std::string& bytes,
                                ExternalData* data);

  std::filesystem::path model_, file_;
  std::vector<Tensor> tensors_;
  std::uint64_t end_ = 0;
  bool is_written_ = false;  ///< the model is there, too
};

/// Writes a model, and its tensors in another file unless `data` is null. The data are written
/// first; files with tensors of the model that was there are removed last, so that at each moment
/// the file at `path` is a whole model. Throws IoError.
void write_model_files(const std::string& path, const std::string& bytes, ExternalData* data);

}  // namespace reel::exported
