// trace/signature.h — the parts of a call's arguments that decide which trace serves it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "reel/core/dims/slice_key.h"
#include "reel/core/types/dim_expression.h"
#include "reel/core/types/leaf.h"
#include "reel/trace/dynamic_sizes.h"

namespace reel {

/// The named dims of the arguments in the order of their first appearance. Dims of lengths come
/// before ragged dims, operands before dims computed from them.
///
/// A computed dim (time + 1) counts as computed only if its operands matter: they are dims of
/// arguments themselves, or another argument's dim is computed from them. Otherwise it counts as an
/// ordinary dim. A dim that grows from call to call, d + 1, d + 2, ..., then needs only one trace.
class DimTable {
 public:
  DimTable() = default;
  explicit DimTable(const TreeLeaves& leaves);
  /// Returns the number of a dim, which is added if it is not in the table.
  int place(const Dim& dim);
  const Dims& dims() const { return dims_; }
  /// Returns the expression of a computed dim if its operands matter; otherwise null.
  const DimExpression* visible_expression(const Dim& dim) const;
  /// Returns the key by which the table's `slice` is found among slices of the table's `whole`;
  /// nullopt if there is none, or if it names a dim that the table lacks. Keys by value count as
  /// none: a function of a word would be traced for each position of the word.
  std::optional<SliceKey> key_of_slice(const Dim& slice, const Dim& whole);

 private:
  int find(const Dim& dim);

  Dims dims_;
  std::unordered_map<const DimNode*, int> places_;  ///< of the first `placed_` dims
  std::size_t placed_ = 0;
  std::unordered_map<const DimNode*, int> uses_;  ///< by dim: its uses; it matters if above one
};

/// Returns the dims of a tensor among the leaves as a trace sees them.
///
/// place: the index of the tensor among the leaves.
Dims dims_in_trace(const TreeLeaves& leaves, std::size_t place, const DynamicSizes& dynamic);

/// Returns bytes that are equal for two lists of leaves of one C++ type exactly if one trace serves
/// both. Adds all dims to the table.
std::string signature_of(const TreeLeaves& leaves, DimTable& table, const DynamicSizes& dynamic);

/// The leaves of a call, to recognise a later call with the same signature and the same dims. A
/// comparison takes a tenth of the time of signature_of().
class KnownLeaves {
 public:
  KnownLeaves() = default;
  /// Notes the leaves of a call, and their dims in the order of a DimTable. Recognises no later
  /// call if there is a dynamic size, or a dim without a fixed size: their lengths would stay
  /// alive.
  KnownLeaves(const TreeLeaves& leaves, const DynamicSizes& dynamic, const Dims& dims);
  /// Returns true only if the leaves, of the same C++ type, have the signature and the dims of the
  /// known ones.
  bool are_like(const TreeLeaves& leaves, const DynamicSizes& dynamic) const;

  /// Return the dims of the known leaves, and a token_type() tensor of each.
  const Dims& dims() const { return dims_; }
  const Tensors& tokens() const { return tokens_; }

 private:
  struct Leaf {
    TreeLeaf::Kind kind;
    std::optional<TensorType> type;  ///< none: an empty tensor, or another leaf
    Dim dim = 0;                     ///< of a Dim
  };
  std::vector<Leaf> leaves_;  ///< empty: no call is recognised
  std::vector<FixedValue> fixed_;
  Dims dims_;
  Tensors tokens_;
};

/// Sizes of arguments for which a trace is specialised: sizes of plain axes, and of named dims with
/// a fixed size.
struct StaticSizes {
  struct Axis {
    std::size_t tensor;  ///< index among the arguments that are tensors
    int axis;
    std::int64_t size;
  };
  std::vector<Axis> plain;
  std::vector<std::pair<std::string, std::int64_t>> named;  ///< by dim; -1: not fixed

  StaticSizes() = default;
  /// Leaves out the dynamic sizes.
  StaticSizes(const TreeLeaves& leaves, const Dims& dims, const DynamicSizes& dynamic);
  /// Returns true if both have the same axes and dims, whatever their sizes.
  bool is_like(const StaticSizes& other) const;
};

}  // namespace reel
