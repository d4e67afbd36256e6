// onnx/writers/uneven_lists.h — lists in ONNX whose elements may differ in size.
//
// Elements lie along the first axis, as in other lists, with zeros up to the largest size. A second
// value of the model has the sizes of each element.
#pragma once

#include <cstdint>
#include <vector>

#include "reel/onnx/graph_writer.h"

namespace reel::exported {

/// Elements along the first axis, and their sizes: i64[n, rank].
struct UnevenList {
  Name elements, sizes;
};

/// Returns the name of a list. Throws NotExpressible if its elements may differ in size, for places
/// that have no value for their sizes.
const Name& even(const GraphWriter& to, const Name& list);
/// Returns a list with the sizes of its elements. A list without recorded sizes has equal ones.
UnevenList uneven_list(GraphWriter& to, const Name& list, const TensorType& type);
/// Records the sizes of a list's elements, and returns the name of the list.
Name recorded(GraphWriter& to, const UnevenList& list);

/// Returns an uneven list without elements. type: of the list.
UnevenList empty_uneven_list(GraphWriter& to, const TensorType& type);
/// Returns the list with at least `sizes` along its axes, that of its elements first. New elements
/// have sizes 0.
UnevenList with_sizes(GraphWriter& to, const UnevenList& list,
                      const std::vector<std::int64_t>& sizes, const TensorType& type);
/// Returns the elements of the list, each with the largest sizes that elements have now, but at
/// least `sizes`, those of an element. Elements that were replaced or dropped may have been larger.
Name with_largest_sizes(GraphWriter& to, const UnevenList& list,
                        const std::vector<std::int64_t>& sizes, const TensorType& type);
/// Returns the list with an element behind its last one, or in front of its first one.
UnevenList with_element(GraphWriter& to, const UnevenList& list, const Name& element,
                        const TensorType& type, bool in_front = false);
/// Returns the element at an index, an i64 scalar.
Name element_at(GraphWriter& to, const UnevenList& list, const Name& index, const TensorType& type);
/// Returns the list with an element at `index`, i64[1]. A list that is too short gets elements of
/// sizes 0.
UnevenList with_written(GraphWriter& to, const UnevenList& list, const Name& element,
                        const Name& index, const TensorType& type);
/// Returns the element at `index`, i64[1], with the sizes of `like`: zeros if it is missing.
Name element_like(GraphWriter& to, const UnevenList& list, const Name& index, const Name& like,
                  const TensorType& type);
/// Returns the first list with at least `count` elements, i64[1], and the second one behind them.
UnevenList extended(GraphWriter& to, const UnevenList& list, const UnevenList& more,
                    const Name& count, const TensorType& type);
/// Returns the sums of elements; missing elements count as zeros.
UnevenList sum_of(GraphWriter& to, const UnevenList& a, const UnevenList& b,
                  const TensorType& type);

/// Returns parts of x along its first axis, of these lengths: an integer vector.
UnevenList split(GraphWriter& to, const Name& x, const TensorType& x_type, const Name& lengths);
/// Returns the elements joined along their first axis. Each takes its length of `lengths`, an
/// integer vector: elements that are too short, or missing, get zeros.
Name joined(GraphWriter& to, const UnevenList& list, const TensorType& type, const Name& lengths);

}  // namespace reel::exported
