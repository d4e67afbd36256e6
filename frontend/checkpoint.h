// frontend/checkpoint.h — the state of a training run in one file, to go on from.
#pragma once

#include <string>

#include "reel/core/functions/random.h"
#include "reel/frontend/safetensors.h"

namespace reel {

namespace detail {

/// The metadata, and where the stream of random numbers stands.
Metadata with_random_state(Metadata metadata);
/// Where the stream of random numbers stood when the file was written.
Tensor random_state_of(const Metadata& metadata, const std::string& path);

}  // namespace detail

/// Writes all that a run of training needs to go on as if it had never stopped: the tensors of a
/// tree, under the paths of its fields, and where this thread's stream of random numbers stands.
///
///   struct Training {
///     Model model;
///     Adam<Model> optimiser;
///     Tensor step, next_example;  // i64 scalars
///   };
///   save_checkpoint("training.safetensors", training);
///
/// What is to come back must be a tensor: numbers in a tree are part of its type. The file is
/// written and replaced as save_safetensors does, and is read by load_safetensors too, as a whole
/// or in part: {.prefix = "model"}. Throws what that throws, and ArgumentError for metadata under
/// "random_state", which is the stream's.
template <class Tree>
void save_checkpoint(const std::string& path, const Tree& tree, const Metadata& metadata = {}) {
  detail::save_tree(path, tree, detail::with_random_state(metadata), "save_checkpoint");
}

/// Fills the tree from a file of save_checkpoint, and sets this thread's stream of random numbers;
/// returns the metadata that were given. The file is opened once, so that tensors, stream and
/// metadata are of one save, also while another program saves there. Throws as load_safetensors
/// does, and IoError for a file without the stream; then tree and stream are as they were.
template <class Tree>
Metadata load_checkpoint(const SafetensorsFile& file, Tree& tree) {
  Metadata metadata = file.metadata();
  const Tensor state = detail::random_state_of(metadata, file.path());
  detail::load_tree(file, tree, {}, "load_checkpoint");
  set_random_state(state);
  metadata.erase("random_state");
  return metadata;
}
template <class Tree>
Metadata load_checkpoint(const std::string& path, Tree& tree) {
  return load_checkpoint(detail::open_file(path, "load_checkpoint"), tree);
}

}  // namespace reel
