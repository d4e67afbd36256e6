// core/types/non_finite.h — finds NaN and infinities in tensors.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "reel/core/types/tensor.h"

namespace reel {

/// Which numbers a search finds.
enum class Search : std::uint8_t { nan, nan_and_infinities, infinities };

/// The numbers that a search has found in a tensor.
struct NonFinite {
  bool is_nan;         ///< of the first one; false: it is infinite
  std::string text;    ///< of the first one: "is nan at [batch=1, time=0]"
  std::int64_t count;  ///< how many there are
  /// Returns the text and, if there are several, their number.
  std::string all() const;
};

/// Returns the index as text: "[batch=1, time=0]", for plain dims "[1, 0]", and "" for a scalar.
std::string index_text(const TensorType& type, std::span<const std::int64_t> index);

/// Returns the numbers that the search finds among the elements that count (ValidElements); nothing
/// if there are none, and for integers, lists, and tensors without data.
std::optional<NonFinite> find_non_finite(const Tensor& tensor, std::span<const Tensor> running,
                                         Search search = Search::nan_and_infinities);

}  // namespace reel
