// core/dims/dim_slices.h — the table of slices: which Dims are slices of other Dims.
#pragma once

#include <atomic>
#include <optional>
#include <string>

#include "reel/core/types/dim.h"

namespace reel {

// If the lengths of `letters` run over {batch, words}, an element along words has another Dim of
// that name: its lengths run over {batch} alone. `letters` is the whole dim, and selects the axis
// of the slice (find_axis). The functions are thread-safe; entries end with the Dims.

/// Returns true if `dim` is a slice of `whole`, or of a slice of it.
bool is_slice_of(const Dim& dim, const Dim& whole);
/// Returns the Dim that `dim` is a slice of; nullopt if it is no slice.
std::optional<Dim> whole_of(const Dim& dim);
/// Returns the whole Dim that both are slices of, or a or b if the other is a slice of it; nullopt
/// if there is none.
std::optional<Dim> shared_whole(const Dim& a, const Dim& b);
/// Returns the position of a dim in a list, otherwise of its only slice there; -1 if the list has
/// neither, or several slices.
int find_axis(const Dims& dims, const Dim& dim);

/// Makes `dim` a slice of `whole`.
///
/// key: if it is not empty, known_slice(found_by, key) returns `dim` while it lives, in the graph
/// that is recorded now, and in graphs inside of it.
void note_slice(const Dim& dim, const Dim& whole, const Dim& found_by, const std::string& key);
/// Returns the slice that was noted with the key, while it lives; nullopt if there is none.
std::optional<Dim> known_slice(const Dim& found_by, const std::string& key);
/// Returns the whole dim of a slice that was noted with this key; nullopt for other dims.
std::optional<Dim> whole_of_known(const Dim& slice, const std::string& key);
/// Makes `to` a slice of the same whole dim, if `from` is a slice.
void copy_slice(const Dim& from, const Dim& to);

namespace detail {
inline constinit std::atomic<std::size_t> slice_count{0};  ///< Dims that are slices
}
/// Returns true if a living Dim is a slice. If there is none, find_axis equals find.
inline bool has_slices() { return detail::slice_count.load(std::memory_order_relaxed) != 0; }

}  // namespace reel
