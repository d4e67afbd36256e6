// frontend/safetensors.h — trees of tensors in files that other systems read too.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "reel/frontend/tree.h"

namespace reel {

/// What goes with the tensors: strings by name, as the format has it.
using Metadata = std::map<std::string, std::string>;

namespace detail {

void save_tensors(const std::string& path, const std::vector<std::string>& names,
                  const Tensors& tensors, const Metadata& metadata);
/// Tensors of the types of `like`, whose data come from the file.
Tensors load_tensors(const std::string& path, const std::vector<std::string>& names,
                     const Tensors& like);

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
  detail::save_tensors(path, tree_paths(tree), tensors_of(flatten(tree)), metadata);
}

/// Fills a tree with the tensors of a file. Its own tensors say which names, dtypes and sizes there
/// must be; they keep their dims. Throws IoError when the file cannot be read, is damaged, or holds
/// another model (listing all that differs); then the tree is as it was.
template <class Tree>
void load_safetensors(const std::string& path, Tree& tree) {
  const TreeLeaves leaves = flatten(tree);
  tree = unflatten(
      tree, with_tensors(leaves, detail::load_tensors(path, tree_paths(tree), tensors_of(leaves))));
}

/// The metadata of a file. Throws IoError when it cannot be read or is damaged.
Metadata read_safetensors_metadata(const std::string& path);

}  // namespace reel
