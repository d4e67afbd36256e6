// frontend/losses/edit_distance.h — edit_distance, and error rates of labels and words.
#pragma once

#include <string>
#include <vector>

#include "reel/core/base/visibility.h"
#include "reel/core/types/dim.h"
#include "reel/core/types/tensor.h"
#include "reel/frontend/losses/metrics.h"

REEL_API_BEGIN
namespace reel {

/// The axes of edit_distance, by name.
struct EditDims {
  Dim time;            ///< the symbols of hypotheses
  Dim reference_time;  ///< the symbols of references
};

/// Returns the least number of insertions, deletions and substitutions that turn hypotheses into
/// references, i32 over the dims of the hypotheses without time.
///
/// hypotheses: i32 or i64, [..., time]. references: of the same dtype, [..., reference_time], with
/// the other dims of the hypotheses, all or some, so that several hypotheses may have one
/// reference. All dims are named; both may be ragged or empty, and padding does not count. No
/// gradient. Throws DTypeError or ShapeError for other arguments.
/// Source: Levenshtein (1966); Wagner & Fischer (1974).
Tensor edit_distance(const Tensor& hypotheses, const Tensor& references, const EditDims& dims);

/// Returns the sum of the edit distances and the number of symbols in the references, so that
/// mean() is the error rate. Arguments: as for edit_distance.
Weighted label_error_rate(const Tensor& hypotheses, const Tensor& references, const EditDims& dims);

/// Returns the sum of the edit distances of words, which spaces separate, and the number of words
/// in the references. Texts, not tensors: not for traces. Throws ArgumentError unless there is a
/// hypothesis for each reference.
Weighted word_error_rate(const std::vector<std::string>& hypotheses,
                         const std::vector<std::string>& references);

}  // namespace reel
REEL_API_END
