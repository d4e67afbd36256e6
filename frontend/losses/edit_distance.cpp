#include "reel/frontend/losses/edit_distance.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include "reel/core/base/errors.h"
#include "reel/core/base/str.h"
#include "reel/core/ops.h"
#include "reel/frontend/data/ragged.h"
#include "reel/frontend/loops/associative_scan.h"
#include "reel/frontend/loops/scan.h"
#include "reel/frontend/tree/dim_lists.h"

namespace reel {
namespace {

/// Distances of the references' symbols so far to beginnings of the hypotheses.
struct EditRow {
  Tensor distances;  // i32, over hypotheses: to the beginning that ends with the symbol
  Tensor to_empty;   // i32, over entries: to the empty beginning
  auto members() { return std::tie(distances, to_empty); }
};

void check_arguments(std::string_view function, const TensorType& hypotheses,
                     const TensorType& references, const EditDims& dims) {
  if (!is_integer(hypotheses.dtype()) || hypotheses.dtype() != references.dtype())
    throw DTypeError(str(function, ": hypotheses and references must be i32, or both i64, got ",
                         hypotheses, " and ", references));
  if (dims.time == dims.reference_time)
    throw ArgumentError(str(function, ": time and reference_time are both ", dims.time,
                            "; rename the dim of the references: rename(references, ",
                            dims.time.name(), ", Dim(\"reference\"))"));
  bool fits = hypotheses.is_named() && references.is_named() &&
              contains(hypotheses.dims(), dims.time) &&
              contains(references.dims(), dims.reference_time) &&
              !contains(hypotheses.dims(), dims.reference_time);
  for (const Dim& dim : references.dims())
    fits = fits && (dim == dims.reference_time || contains(hypotheses.dims(), dim));
  if (!fits || contains(references.dims(), dims.time))
    throw ShapeError(str(
        function, ": hypotheses must have ", dims.time, ", references ", dims.reference_time,
        " and otherwise only dims of the hypotheses, got ", hypotheses, " and ", references,
        contains(hypotheses.dims(), dims.reference_time) && contains(references.dims(), dims.time)
            ? "; exchange the dims: they are {time, reference_time}"
            : ""));
}

Tensor distance(std::string_view function, const Tensor& hypotheses, const Tensor& references,
                const EditDims& dims) {
  check_defined(function, hypotheses);
  check_defined(function, references);
  check_arguments(function, hypotheses.type(), references.type(), dims);
  const Dim& time = dims.time;
  const Dims entries = without(hypotheses.dims(), {time});
  const Tensor symbols = mask_padding(hypotheses);
  const Tensor place = expand(range(time), symbols.dims());
  const Tensor is_first = place == 0, before = maximum(range(time) - 1, 0);
  const auto body = [&](const Tensor& symbol, const EditRow& at) {
    const Tensor one_before = where(is_first, at.to_empty, gather(at.distances, before, time));
    const Tensor kept_or_replaced = one_before + cast(symbols != symbol, i32);
    const Tensor without_insertion = minimum(kept_or_replaced, at.distances + 1);
    const Tensor to_empty = at.to_empty + 1;
    // A prefix may be reached from every shorter prefix, at the price of one insertion a symbol:
    // the minimum of distance - length over the shorter prefixes.
    const Tensor least =
        associative_scan([](const Tensor& a, const Tensor& b) { return minimum(a, b); },
                         without_insertion - (place + 1), time);
    return std::pair{None{}, EditRow{minimum(least, to_empty) + (place + 1), to_empty}};
  };
  const EditRow last = scan(Scan{.spatial_dim = dims.reference_time,
                                 .initial = EditRow{place + 1, zeros(entries, i32)},
                                 .xs = references,
                                 .body = body,
                                 .name = std::string(function)})
                           .state;
  const Tensor length = expand(cast(time.lengths(), i32), entries);
  // A sum, since an index into no symbols would be an error.
  const Tensor whole = sum(where(place + 1 == length, last.distances, 0), time);
  return where(length == 0, last.to_empty, whole);
}

/// Returns the words of texts as numbers, equal for equal words.
class WordNumbers {
 public:
  std::vector<std::vector<int>> of(const std::vector<std::string>& texts) {
    std::vector<std::vector<int>> rows;
    for (const std::string& text : texts) {
      rows.emplace_back();
      for (std::size_t begin = 0; begin < text.size();) {
        const std::size_t end = std::min(text.find_first_of(kSpaces, begin), text.size());
        if (end > begin) rows.back().push_back(number_of(text.substr(begin, end - begin)));
        begin = end + 1;
      }
    }
    return rows;
  }

 private:
  static constexpr const char* kSpaces = " \t\r\n";

  int number_of(const std::string& word) {
    return numbers_.try_emplace(word, static_cast<int>(numbers_.size())).first->second;
  }

  std::map<std::string, int> numbers_;
};

}  // namespace

Tensor edit_distance(const Tensor& hypotheses, const Tensor& references, const EditDims& dims) {
  return distance("edit_distance", hypotheses, references, dims);
}

Weighted label_error_rate(const Tensor& hypotheses, const Tensor& references,
                          const EditDims& dims) {
  const Tensor errors = distance("label_error_rate", hypotheses, references, dims);
  const Tensor lengths = expand(cast(dims.reference_time.lengths(), f32), errors.dims());
  return {sum(mask_padding(cast(errors, f32))), sum(mask_padding(lengths))};
}

Weighted word_error_rate(const std::vector<std::string>& hypotheses,
                         const std::vector<std::string>& references) {
  if (hypotheses.size() != references.size())
    throw ArgumentError(str("word_error_rate: there are ", hypotheses.size(), " hypotheses and ",
                            references.size(), " references"));
  WordNumbers numbers;
  const Dim text("text", static_cast<std::int64_t>(references.size()));
  const Tensor given = ragged(numbers.of(hypotheses), {text, Dim("words")}, i32);
  const Tensor right = ragged(numbers.of(references), {text, Dim("words")}, i32);
  return label_error_rate(given, right, {given.dim("words"), right.dim("words")});
}

}  // namespace reel
