// onnx/writers/entries.h — nodes for entries that finish one by one in a loop.
#pragma once

#include <optional>

#include "reel/core/ops/loop/loop_attrs.h"
#include "reel/onnx/graph_writer.h"

namespace reel::exported {

/// Reads and writes values of a loop's body in iterations in which some entries have finished, as
/// core/ops/loop/entries.h says. Types are those outside the loop.
///
/// Finished entries read a running entry's values, but keep their own lengths along ragged dims.
class EntryWriter {
 public:
  /// running: the mask of running entries over `dims`, in the graph of `to`.
  EntryWriter(GraphWriter& to, const Name& running, const Dims& dims)
      : to_(to), running_(running), dims_(dims) {}

  /// Returns x as the body reads it.
  Name seen(const Name& x, const TensorType& type, FinishedFill fill);
  /// Returns x with the values of finished entries added to the first running one.
  Name collected(const Name& x, const TensorType& type);
  /// Returns x with zeros in finished entries.
  Name zero_finished(const Name& x, const TensorType& type);
  /// Returns `next` for running entries, `before` for finished ones.
  Name keep_finished(const Name& next, const Name& before, const TensorType& type);

 private:
  /// The mask of a leaf, over the dims of entries that the leaf has.
  struct Mask {
    Name name;
    Dims dims;
  };
  std::optional<Mask> mask_of(const TensorType& type);
  /// x with the dims of the mask in front, merged into one axis, and the mask in one axis.
  struct Rows {
    Name x, mask, first;     ///< first: the position of the first running entry, i64[1]
    std::vector<int> order;  ///< of the axes of x
    Name shape;              ///< of x in this order
    int rank;                ///< of x as rows
  };
  Rows rows_of(const Name& x, const TensorType& type, const Mask& mask);
  Name from_rows(const Rows& rows, const Name& result);
  Name zero(const TensorType& type) { return to_.model().number(0, type.dtype()); }

  GraphWriter& to_;
  Name running_;
  const Dims& dims_;
};

}  // namespace reel::exported
