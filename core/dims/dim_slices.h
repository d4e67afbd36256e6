// core/dims/dim_slices.h — the table of slices: which Dims are slices of other Dims.
#pragma once

#include <atomic>
#include <optional>
#include <span>

#include "reel/core/dims/dim_env.h"
#include "reel/core/dims/slice_key.h"
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
/// that is recorded now, and in graphs inside of it. A slice without a key may be noted again with
/// one; otherwise the first call counts.
void note_slice(const Dim& dim, const Dim& whole, const Dim& found_by, const SliceKey& key = {});
/// Returns the slice that was noted with the key, while it lives; nullopt if there is none.
std::optional<Dim> known_slice(const Dim& found_by, const SliceKey& key);
/// Returns the whole dim of a slice that was noted with this key; nullopt for other dims.
std::optional<Dim> whole_of_known(const Dim& slice, const SliceKey& key);

/// A slice that can be found again: known_slice(whole, key) returns it.
struct KnownSlice {
  Dim whole;
  SliceKey key;
};
/// Returns how a slice is found again; nullopt for other dims, and for slices without a key.
std::optional<KnownSlice> noted_slice(const Dim& slice);
/// Lets known_slice() find a slice of an ended graph in the graph that is recorded now, which has
/// taken over the records of the other. Does nothing for other dims, or if there is such a slice.
void adopt_slice(const Dim& slice);
/// Makes `to` a slice of the same whole dim, if `from` is a slice.
void copy_slice(const Dim& from, const Dim& to);
/// Makes `made`, which stands outside of a graph for dims that graphs inside make, a slice if all
/// of them are slices of one dim. If their keys are equal, too, and no slice outside has this key,
/// known_slice() finds `made` by it.
///
/// outside: the outer dims for dims of the graphs.
void join_slices(std::span<const Dim> inside, const Dim& made, DimEnv& outside);

namespace detail {
inline constinit std::atomic<std::size_t> slice_count{0};  ///< Dims that are slices
}
/// Returns true if a living Dim is a slice. If there is none, find_axis equals find.
inline bool has_slices() { return detail::slice_count.load(std::memory_order_relaxed) != 0; }

}  // namespace reel
