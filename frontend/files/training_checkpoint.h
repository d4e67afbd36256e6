// frontend/files/training_checkpoint.h — save_checkpoint and load_checkpoint, the state of a
// training run in one file.
#pragma once

#include <string>

#include "reel/core/base/visibility.h"
#include "reel/core/functions/random.h"
#include "reel/frontend/files/safetensors.h"

REEL_API_BEGIN
namespace reel {

namespace detail {

/// Returns the metadata with the state of this thread's stream of random numbers added.
Metadata with_random_state(Metadata metadata);
/// Returns the state of the stream of random numbers when the file was written.
Tensor random_state_of(const Metadata& metadata, const std::string& path);

}  // namespace detail

/// Writes the state that a training run needs to resume exactly: the tensors of a tree, under the
/// paths of its fields, and the state of this thread's stream of random numbers.
///
///   struct Training {
///     Model model;
///     Adam<Model> optimiser;
///     Tensor step, next_example;  // i64 scalars
///   };
///   save_checkpoint("training.safetensors", training);
///
/// Only tensors are saved: numbers in a tree are part of its type. The file is written and replaced
/// as by save_safetensors; load_safetensors can read it too, as a whole or in part: {.prefix =
/// "model"}. Throws as save_safetensors does, and ArgumentError for metadata named "random_state",
/// which is reserved for the stream.
template <class Tree>
void save_checkpoint(const std::string& path, const Tree& tree, const Metadata& metadata = {}) {
  detail::save_tree(path, detail::TreeRef(tree), detail::with_random_state(metadata),
                    "save_checkpoint");
}

/// Fills the tree from a file of save_checkpoint, sets this thread's stream of random numbers, and
/// returns the saved metadata. The file is opened once, so tensors, stream and metadata come from
/// one save, even if another program saves at the same time. Throws as load_safetensors does, and
/// IoError for a file without the stream; tree and stream are then unchanged.
template <class Tree>
Metadata load_checkpoint(const SafetensorsFile& file, Tree& tree) {
  Metadata metadata = file.metadata();
  const Tensor state = detail::random_state_of(metadata, file.path());
  detail::load_tree(file, detail::TreeSlot(tree), {}, "load_checkpoint");
  set_random_state(state);
  metadata.erase("random_state");
  return metadata;
}
template <class Tree>
Metadata load_checkpoint(const std::string& path, Tree& tree) {
  return load_checkpoint(detail::open_file(path, "load_checkpoint"), tree);
}

}  // namespace reel
REEL_API_END
