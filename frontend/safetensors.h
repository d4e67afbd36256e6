// frontend/safetensors.h — trees of tensors in files that other systems read too.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "reel/frontend/tree.h"

namespace reel {

struct LoadOptions;
struct SafetensorsContents;  // the file and its header

class SafetensorsFile;

namespace detail {

/// A file as SafetensorsFile opens it. function: that the user called, for errors.
SafetensorsFile open_file(const std::string& path, const char* function);
/// Tensors of the types of `like`, whose data come from the file.
Tensors load_tensors(const SafetensorsFile& file, const std::vector<std::string>& names,
                     const Tensors& like, const LoadOptions& options, const char* function);

}  // namespace detail

/// What goes with the tensors: strings by name, as the format has it.
using Metadata = std::map<std::string, std::string>;

/// A file whose header is read and checked, and whose tensors are read when they are asked for.
///
/// F32, F64, I32, I64 and BOOL are ours; F16 and BF16 are read as f32, U8, I8, U16 and I16 as i32,
/// U32 as i64, exactly. The path is opened once, and the file stays open until the last copy is
/// gone: all tensors and metadata are of one save, also if another file takes its place meanwhile.
/// Const members may be called from several threads at once. Format:
/// https://huggingface.co/docs/safetensors
class SafetensorsFile {
 public:
  /// Throws IoError, with path and reason, when the file cannot be read, is damaged, or is of
  /// another kind.
  explicit SafetensorsFile(const std::string& path);

  const std::string& path() const;

  /// In alphabetical order.
  std::vector<std::string> names() const;
  bool contains(const std::string& name) const;
  /// The type that tensor() gives, with plain sizes. Throws IoError for a name that the file has
  /// not, DTypeError for U64, F8 and dtypes that this library does not know.
  TensorType type(const std::string& name) const;
  /// Reads one tensor, its axes called as `dims`, or plain. An undefined dim is a name: it is
  /// replaced by one of the size in the file. Throws as type() does, ShapeError when dims do not
  /// fit, IoError when the file cannot be read.
  Tensor tensor(const std::string& name, const Dims& dims = {}) const;
  const Metadata& metadata() const;

 private:
  SafetensorsFile(const std::string& path, const char* function);
  friend SafetensorsFile detail::open_file(const std::string& path, const char* function);
  friend Tensors detail::load_tensors(const SafetensorsFile& file,
                                      const std::vector<std::string>& names, const Tensors& like,
                                      const LoadOptions& options, const char* function);

  std::shared_ptr<const SafetensorsContents> contents_;
};

struct LoadOptions {
  std::string prefix{};        ///< the tree stands under this path in the file: "model.encoder"
  bool allow_missing = false;  ///< a tensor that the file has not stays as it is
  bool allow_extra = false;    ///< the file may have more below the prefix than the tree
};

namespace detail {

// function: that the user called, for errors.
void save_tensors(const std::string& path, const std::vector<std::string>& names,
                  const Tensors& tensors, const Metadata& metadata, const char* function);

template <class Tree>
void save_tree(const std::string& path, const Tree& tree, const Metadata& metadata,
               const char* function) {
  save_tensors(path, tree_paths(tree), tensors_of(flatten(tree)), metadata, function);
}
template <class Tree>
void load_tree(const SafetensorsFile& file, Tree& tree, const LoadOptions& options,
               const char* function) {
  const TreeLeaves leaves = flatten(tree);
  tree = unflatten(tree, with_tensors(leaves, load_tensors(file, tree_paths(tree, options.prefix),
                                                           tensors_of(leaves), options, function)));
}

}  // namespace detail

/// Writes the tensors of a tree to a safetensors file, under the paths of its fields:
/// encoder.recurrent_weight.
///
/// f32, f64, i32, i64 and boolean become F32, F64, I32, I64 and BOOL; dims become sizes, padding is
/// written as it is. The file at `path` is replaced as a whole or not at all, and is on the disk
/// when the function returns. Throws IoError with path and reason, and leaves no other file behind;
/// ArgumentError for an empty Tensor, a TensorArray, or names that cannot be keys; TraceError
/// inside a trace. Format: https://huggingface.co/docs/safetensors
template <class Tree>
void save_safetensors(const std::string& path, const Tree& tree, const Metadata& metadata = {}) {
  detail::save_tree(path, tree, metadata, "save_safetensors");
}

/// Fills a tree with the tensors of a file, and reads no others. Its own tensors say which names,
/// dtypes and sizes there must be; they keep their dims. With a prefix, only what is below it is
/// looked at:
///
///   load_safetensors("training.safetensors", model, {.prefix = "model"});
///
/// Throws IoError when the file cannot be read, is damaged, or holds another model (listing all
/// that differs); then the tree is as it was.
template <class Tree>
void load_safetensors(const SafetensorsFile& file, Tree& tree, const LoadOptions& options = {}) {
  detail::load_tree(file, tree, options, "load_safetensors");
}
template <class Tree>
void load_safetensors(const std::string& path, Tree& tree, const LoadOptions& options = {}) {
  load_safetensors(detail::open_file(path, "load_safetensors"), tree, options);
}

/// The metadata of a file. Throws IoError when it cannot be read or is damaged.
Metadata read_safetensors_metadata(const std::string& path);

}  // namespace reel
