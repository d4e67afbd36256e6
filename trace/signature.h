// trace/signature.h — what of a call's arguments decides which trace serves it.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "reel/core/dim_expression.h"
#include "reel/core/leaf.h"

namespace reel {

/// The named dims of the arguments in the order of their first appearance, those of lengths before
/// the ragged ones, operands before what is computed from them.
///
/// A computed dim (time + 1) is seen as one where its operands matter: they are dims of arguments
/// too, or another argument's dim is computed from them. Otherwise it is a dim like others, so that
/// one that grows from call to call, d + 1, d + 2, ..., needs no trace for each.
class DimTable {
 public:
  explicit DimTable(const TreeLeaves& leaves);
  /// The number of a dim, which joins the table if it is not there yet.
  int place(const Dim& dim);
  const Dims& dims() const { return dims_; }
  /// The expression of a dim whose operands matter, else null.
  const DimExpression* visible_expression(const Dim& dim) const;

 private:
  int find(const Dim& dim);

  Dims dims_;
  std::unordered_map<const DimNode*, int> places_;  ///< of the first `placed_` dims
  std::size_t placed_ = 0;
  std::unordered_map<const DimNode*, int> uses_;  ///< by dim: more than one, and it matters
};

/// The dims of a tensor among the leaves, as a trace sees them. of_any_length: as of
/// TracedFunction.
Dims dims_in_trace(const TreeLeaves& leaves, std::size_t place,
                   const std::vector<std::size_t>& of_any_length);

/// Returns bytes that are equal for two lists of leaves of one C++ type exactly if one trace serves
/// both. Puts all dims into the table.
std::string signature_of(const TreeLeaves& leaves, DimTable& table,
                         const std::vector<std::size_t>& of_any_length);

/// What of the sizes of arguments a trace is for: those of plain axes, and of dims that are not
/// known by a tensor.
struct StaticSizes {
  struct Axis {
    std::size_t tensor;  ///< among the arguments that are tensors
    int axis;
    std::int64_t size;
  };
  std::vector<Axis> plain;
  std::vector<std::pair<std::string, std::int64_t>> named;  ///< by dim; -1: of others

  StaticSizes() = default;
  /// of_any_length: as of TracedFunction; their first axes are no sizes of a trace.
  StaticSizes(const TreeLeaves& leaves, const Dims& dims,
              const std::vector<std::size_t>& of_any_length);
  /// The same axes and dims, whatever their sizes.
  bool is_like(const StaticSizes& other) const;
};

}  // namespace reel
