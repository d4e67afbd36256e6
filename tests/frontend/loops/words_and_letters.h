// tests/frontend/loops/words_and_letters.h — WordsAndLetters, a text of words with different
// numbers of letters.
#pragma once

#include <limits>
#include <vector>

#include "reel/tests/modes.h"

namespace reel {

inline constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
using Words = std::vector<double>;

/// Two sentences, of the words [1 2] [3] [4 5 6] and [7] [8 9].
class WordsAndLetters : public InEveryMode {
 protected:
  Dim batch{"batch", 2}, words{"words", tensor({3, 2}, {batch})},
      letters{"letters", tensor({{2, 1, 3}, {1, 2, 0}}, {batch, words})};

  Tensor text(double padding = kNaN) const {
    const Tensor all = tensor(
        {{{1., 2., 0.}, {3., 0., 0.}, {4., 5., 6.}}, {{7., 0., 0.}, {8., 9., 0.}, {0., 0., 0.}}},
        {batch, words, letters}, f64);
    return mask_padding(all, padding);
  }

  template <class F>
  Tensor mapped(const F& of_word) {
    return run([&](const Tensor& x) { return map(of_word, x, {.spatial_dim = words}); })(text());
  }
  /// Returns the elements of x that are not padding, in row-major order.
  static std::vector<double> valid(const Tensor& x) { return values_of(pack(x, x.dims())); }
  std::vector<double> by_sentence(const Tensor& x) const {
    Dims order{batch, words};
    for (const Dim& dim : x.dims())
      if (!contains(order, dim)) order.push_back(dim);
    return valid(transpose(x, Axes(order)));
  }
};

}  // namespace reel
