// core/ops/loop/entries.h — values of finished entries in a loop while other entries still run.
//
// `running` is a boolean mask over the loop's entry dims; true marks running entries. It is false
// in padding: a sentence without words has no running word. The mask of a leaf that lacks some of
// these dims is any(running) over the missing dims: it runs while any of their entries does. A leaf
// with none of these dims is shared and always running.
#pragma once

#include <memory>
#include <optional>

#include "reel/core/base/visibility.h"
#include "reel/core/types/tensor.h"

namespace reel {

struct Attrs;  // core/op/attrs.h

/// Returns the mask of a leaf of `type` over the entry dims that it has; nullopt for a shared leaf.
std::optional<Tensor> leaf_mask(const TensorType& type, const Tensor& running);
/// Returns x with the values of the first running entry in all finished entries.
Tensor fill_running(const Tensor& x, const Tensor& running);
/// Returns fill_running(x, running) without setting padding to zero: running entries keep theirs,
/// and finished ones have the first running entry's.
Tensor fill_running_with_padding(const Tensor& x, const Tensor& running);
/// A filled tensor, and the mask of the entries that ran.
struct FilledEntries {
  Tensor value, mask;
};
/// Returns fill_running(x, running) with other dims of x's sizes: along them finished entries have
/// the lengths of the first running one. Returns nullopt if `dims` gives them other lengths, if
/// sizes differ, or if x has no entries.
///
/// cache: receives the result if it is not null. A later call for the same x and an equal mask then
/// shares its elements.
std::optional<Tensor> fill_running_as(const Tensor& x, const Tensor& running, const Dims& dims,
                                      std::shared_ptr<FilledEntries> cache = {});
/// Adds the values of finished entries to the first running entry: the transpose of fill_running.
Tensor collect_running(const Tensor& x, const Tensor& running);
/// Returns x with zeros in finished entries.
Tensor zero_finished(const Tensor& x, const Tensor& running);
/// Returns `next` for running entries, `before` for finished ones.
Tensor keep_finished(const Tensor& next, const Tensor& before, const Tensor& running);
/// Returns the number of dims in front of the mask that are rows of vmap: each row has a first
/// running entry of its own. attrs: of the ops in entry_ops.h; may be null.
REEL_API int rows_of_entry_op(const Attrs* attrs);
/// Return whether the mask is true everywhere, or anywhere. Require eager values.
bool all_running(const Tensor& running);
bool any_running(const Tensor& running);

}  // namespace reel
