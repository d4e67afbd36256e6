// TfIdfVectorizer on integers: counts how often the n-grams of a pool occur.
#include <algorithm>

#include "reel/core/base/str.h"
#include "reel/core/functions/creation.h"
#include "reel/core/functions/elementwise.h"
#include "reel/core/functions/indices.h"
#include "reel/core/functions/reductions.h"
#include "reel/core/functions/shape.h"
#include "reel/onnx/registry.h"

namespace reel::imported {
namespace {

using Integers = std::vector<std::int64_t>;

constexpr std::int64_t kMaxRowElements = 1 << 24;  // elements in a row of the result

/// Returns the pool's n-grams of one length as columns: [length, number].
Tensor columns_of(const Integers& elements, std::int64_t length) {
  const auto count = static_cast<std::int64_t>(elements.size()) / length;
  return transpose(reshape(tensor(elements), {count, length}), {1, 0});
}

/// Returns how often each n-gram occurs in a row: f32 [rows, number of n-grams]. x: [rows, size].
/// skip: elements left out between two elements of an n-gram.
Tensor count_ngrams(const Tensor& x, const Tensor& columns, std::int64_t skip) {
  const std::int64_t length = columns.dim(0).size();
  const std::int64_t places = x.dim(1).size() - (length - 1) * (skip + 1);
  if (places <= 0) return zeros({x.dim(0), columns.dim(1)});
  Tensor is_equal;
  for (std::int64_t i = 0; i < length; ++i) {
    const Tensor elements = slice(x, 1, i * (skip + 1), i * (skip + 1) + places);
    const Tensor here = equal(reshape(elements, {x.dim(0).size(), places, 1}),
                              gather(columns, scalar(i), 0));  // [rows, places, number]
    is_equal = i ? is_equal && here : here;
  }
  return sum(cast(is_equal, f32), {1});
}

/// Returns the weights of results, in the order of the n-grams.
Tensor weighted(const Call& call, const Tensor& counts) {
  const std::string mode = call.text("mode", "");
  if (mode == "TF") return counts;
  const Tensor weights = call.has_attribute("weights") ? tensor(call.numbers("weights"), {}, f32)
                                                       : ones({counts.dim(1)});
  if (mode == "TFIDF") return counts * weights;
  if (mode == "IDF") return where(counts > 0, weights, zeros_like(counts));
  call.refuse(str("mode is \"", mode, "\", which is not TF, IDF or TFIDF"));
}

/// Returns counts at the places that ngram_indexes lists.
Values run_tfidf_vectorizer(const Call& call) {
  if (!call.has_attribute("pool_int64s")) call.refuse("pool_strings, a pool of texts");
  const Integers pool = call.integers("pool_int64s"), begins = call.integers("ngram_counts"),
                 places = call.integers("ngram_indexes");
  const std::int64_t shortest = call.integer("min_gram_length", 1),
                     longest = call.integer("max_gram_length", 1),
                     skips = call.integer("max_skip_count", 0);
  const Tensor& given = call.tensor(0);
  const bool is_row = given.rank() == 1;
  const Tensor x = cast(is_row ? reshape(given, {1, -1}) : given, i64);
  if (x.rank() != 2 || !x.type().is_known()) call.refuse(str("the input is ", given.type()));
  Tensors counts;
  std::int64_t covered = 0;
  for (std::size_t i = 0; i < begins.size(); ++i) {
    const auto length = static_cast<std::int64_t>(i + 1);
    const auto size = static_cast<std::int64_t>(pool.size());
    const std::int64_t begin = begins[i], end = i + 1 < begins.size() ? begins[i + 1] : size;
    if (begin != covered || end < begin || end > size || (end - begin) % length)
      call.refuse("ngram_counts does not divide the pool into n-grams");
    covered = end;
    if (begin == end) continue;
    const Tensor columns = columns_of({pool.begin() + begin, pool.begin() + end}, length);
    Tensor total = zeros({x.dim(0), columns.dim(1)});
    if (length >= shortest && length <= longest)
      for (std::int64_t skip = 0; skip <= (length > 1 ? skips : 0); ++skip) {
        if ((length - 1) * (skip + 1) >= x.dim(1).size()) break;  // longer than a row
        total = total + count_ngrams(x, columns, skip);
      }
    counts.push_back(total);
  }
  std::int64_t number = 0;
  for (const Tensor& of_length : counts) number += of_length.dim(1).size();
  if (number != static_cast<std::int64_t>(places.size()) || !number)
    call.refuse(str("ngram_indexes has ", places.size(), " elements for ", number, " n-grams"));
  const std::int64_t last = *std::max_element(places.begin(), places.end());
  if (*std::min_element(places.begin(), places.end()) < 0 || last >= kMaxRowElements)
    call.refuse("ngram_indexes has a place out of range");
  const Tensor made = scatter_add(zeros({x.dim(0), Dim(last + 1)}), tensor(places),
                                  weighted(call, concat(counts, 1)), 1);
  return {Value::of(is_row ? reshape(made, {-1}) : made)};
}

const Rule kRules[] = {{"TfIdfVectorizer", run_tfidf_vectorizer, "", 9}};

}  // namespace

std::span<const Rule> ngram_rules() { return kRules; }

}  // namespace reel::imported
