// frontend/files/safetensors.h — trees of tensors in safetensors files, which other systems can
// read.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "reel/core/base/visibility.h"
#include "reel/frontend/tree/tree.h"

REEL_API_BEGIN
namespace reel {

struct LoadOptions;
struct SafetensorsContents;  // the file and its header

class SafetensorsFile;

namespace detail {

/// Opens a file as SafetensorsFile does. function: the public function, for errors.
SafetensorsFile open_file(const std::string& path, const char* function);
/// Returns tensors of the types of `like` with the data of the file; `like`'s own if allow_missing.
Tensors load_tensors(const SafetensorsFile& file, const std::vector<std::string>& names,
                     const Tensors& like, const LoadOptions& options, const char* function);

}  // namespace detail

/// The strings that a file holds beside the tensors, by name.
using Metadata = std::map<std::string, std::string>;

/// An open file with a checked header. Tensors are read on request.
///
/// F32, F64, I32, I64 and BOOL become the library's dtypes; F16 and BF16 are read as f32, U8, I8,
/// U16 and I16 as i32, U32 as i64, all exactly. The path is opened once, and the file stays open
/// until the last copy is destroyed: all tensors and metadata come from one save, even if another
/// file replaces it meanwhile. Thread-safe: const members may be called concurrently. Format:
/// https://huggingface.co/docs/safetensors
class SafetensorsFile {
 public:
  /// Throws IoError, with path and reason, if the file cannot be read, is damaged, or is of another
  /// kind.
  explicit SafetensorsFile(const std::string& path);

  /// Returns the path that was opened.
  const std::string& path() const;

  /// Returns the names of all tensors, in alphabetical order.
  std::vector<std::string> names() const;
  /// Returns true if the file has a tensor of this name.
  bool contains(const std::string& name) const;
  /// Returns the type that tensor() returns, with plain sizes. Throws IoError for an unknown name;
  /// DTypeError for U64, F8 and dtypes that this library does not know.
  TensorType type(const std::string& name) const;
  /// Returns one tensor. Its axes become `dims`, or plain ones if dims are empty; an undefined dim
  /// gives a name only, and is replaced by one with the size in the file. Throws as type() does;
  /// ShapeError if dims do not fit; IoError if the file cannot be read.
  Tensor tensor(const std::string& name, const Dims& dims = {}) const;
  /// Returns the strings beside the tensors, by name.
  const Metadata& metadata() const;

 private:
  SafetensorsFile(const std::string& path, const char* function);
  friend SafetensorsFile detail::open_file(const std::string& path, const char* function);
  friend Tensors detail::load_tensors(const SafetensorsFile& file,
                                      const std::vector<std::string>& names, const Tensors& like,
                                      const LoadOptions& options, const char* function);

  std::shared_ptr<const SafetensorsContents> contents_;
};

/// Options of load_safetensors.
struct LoadOptions {
  std::string prefix{};        ///< path of the tree in the file: "model.encoder"
  bool allow_missing = false;  ///< true: a tensor that is missing in the file keeps its value
  bool allow_extra = false;    ///< true: the file may have more tensors below the prefix
};

namespace detail {

// function: the public function, for errors.
void save_tensors(const std::string& path, const std::vector<std::string>& names,
                  const Tensors& tensors, const Metadata& metadata, const char* function);

void save_tree(const std::string& path, const TreeRef& tree, const Metadata& metadata,
               const char* function);
/// Changes the tree only if all of it is loaded.
void load_tree(const SafetensorsFile& file, const TreeSlot& tree, const LoadOptions& options,
               const char* function);

}  // namespace detail

/// Writes the tensors of a tree to a safetensors file, under the paths of its fields:
/// encoder.recurrent_weight.
///
/// f32, f64, i32, i64 and boolean become F32, F64, I32, I64 and BOOL. Dims become sizes; padding is
/// written unchanged. The file at `path` is replaced as a whole or not at all, and is on the disk
/// when the function returns. Throws IoError with path and reason, and leaves no other file behind;
/// ArgumentError for an empty Tensor, a TensorArray, or names that cannot be keys; TraceError
/// inside a trace. Format: https://huggingface.co/docs/safetensors
template <class Tree>
void save_safetensors(const std::string& path, const Tree& tree, const Metadata& metadata = {}) {
  detail::save_tree(path, detail::TreeRef(tree), metadata, "save_safetensors");
}

/// Replaces the tensors of a tree by tensors of the same names from a file; reads no others. The
/// file must have tensors with the tree's names, dtypes and sizes, no more and no fewer (see
/// LoadOptions). The tree keeps its dims. With a prefix, only tensors below it count:
///
///   load_safetensors("training.safetensors", model, {.prefix = "model"});
///
/// Throws IoError if the file cannot be read, is damaged, or holds another model (the message lists
/// differences); the tree is then unchanged. Prints a hint to stderr, once for a path, if the file
/// is PyTorch's and has square matrices.
template <class Tree>
void load_safetensors(const SafetensorsFile& file, Tree& tree, const LoadOptions& options = {}) {
  detail::load_tree(file, detail::TreeSlot(tree), options, "load_safetensors");
}
template <class Tree>
void load_safetensors(const std::string& path, Tree& tree, const LoadOptions& options = {}) {
  load_safetensors(detail::open_file(path, "load_safetensors"), tree, options);
}

/// Returns the metadata of a file. Throws IoError if it cannot be read or is damaged.
Metadata read_safetensors_metadata(const std::string& path);

}  // namespace reel
REEL_API_END
