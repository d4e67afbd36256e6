// onnx/writers/lists.h — lists in ONNX: a TensorArray is a tensor with its elements along the first
// axis. Elements that were not written are zeros.
#pragma once

#include "reel/onnx/graph_writer.h"

namespace reel::exported {

/// Returns a list without elements.
Name empty_list(GraphWriter& to, const TensorType& list);
/// Returns the number of elements: i64[1].
Name list_size(GraphWriter& to, const Name& list);
/// Returns the list with at least `size` elements, i64[1]: zeros behind its own.
Name padded_list(GraphWriter& to, const Name& list, const TensorType& type, const Name& size);
/// Returns the sums of elements; the shorter list counts as padded with zeros.
Name add_lists(GraphWriter& to, const Name& a, const Name& b, const TensorType& type);

/// Returns true if elements of a list may differ in size along their first axis alone, and
/// list_concat alone reads it. A loop that makes such a list has the joined elements as its result.
bool is_only_joined(const GraphWriter& at, ValueId list);
/// Returns true if a gradient reads the lengths of the elements that list_concat joins.
bool reads_joined_lengths(const GraphWriter& at, ValueId list);

}  // namespace reel::exported
