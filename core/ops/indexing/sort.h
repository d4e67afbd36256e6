// core/ops/indexing/sort.h — ops that compute the order of elements along an axis.
#pragma once

#include <vector>

#include "reel/core/op/attrs.h"
#include "reel/core/op/op.h"

namespace reel {

struct SortAttrs {
  int axis = 0;
  bool descending = false;
  template <class F>
  static void fields(F&& f) {
    f("axis", &SortAttrs::axis);
    f("descending", &SortAttrs::descending);
  }
};
extern const Op argsort_op;

struct TopKAttrs {
  int axis = 0;   ///< the first
  int count = 1;  ///< number of adjacent axes, treated as one
  Dim k{1};
  template <class F>
  static void fields(F&& f) {
    f("axis", &TopKAttrs::axis);
    f("count", &TopKAttrs::count);
    f("k", &TopKAttrs::k);
  }
  std::vector<int> axes() const {
    std::vector<int> result;
    for (int i = axis; i < axis + count; ++i) result.push_back(i);
    return result;
  }
};
extern const Op top_k_op;

}  // namespace reel
