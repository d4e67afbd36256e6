// core/dims/dim_slices.h — the table that tells which Dims are slices of which.
#pragma once

#include <atomic>
#include <optional>
#include <string>

#include "reel/core/types/dim.h"

namespace reel {

// If the lengths of `letters` run over {batch, words}, an element along words has another Dim of
// that name: its lengths run over {batch} alone. `letters` is the whole dim, and finds the axis of
// the slice (find_axis).

/// True if `dim` was made from `whole`, or from a slice of it.
bool is_slice_of(const Dim& dim, const Dim& whole);
/// Returns the Dim that `dim` was made from, if it is a slice.
std::optional<Dim> whole_of(const Dim& dim);
/// The Dim that both were made from, if they are slices of one Dim, or one is a slice of the other.
std::optional<Dim> shared_whole(const Dim& a, const Dim& b);
/// The position of a dim in a list, or of the only slice of it there; -1 otherwise.
int find_axis(const Dims& dims, const Dim& dim);

/// Makes `dim` a slice of `whole`.
///
/// key: if it is not empty, known_slice(found_by, key) returns `dim` while it lives, in the graph
/// that is recorded now, and in graphs inside of it.
void note_slice(const Dim& dim, const Dim& whole, const Dim& found_by, const std::string& key);
std::optional<Dim> known_slice(const Dim& found_by, const std::string& key);
/// The dim that a slice was noted with, if it was noted with this key.
std::optional<Dim> whole_of_known(const Dim& slice, const std::string& key);
/// Makes `to` a slice of the same whole dim, if `from` is a slice.
void copy_slice(const Dim& from, const Dim& to);

namespace detail {
inline constinit std::atomic<std::size_t> slice_count{0};  ///< Dims that are slices
}
/// True if some living Dim is a slice. Otherwise find_axis is find.
inline bool has_slices() { return detail::slice_count.load(std::memory_order_relaxed) != 0; }

}  // namespace reel
