// core/dims/slice_key.h — SliceKey, the name of an operation that makes slices of Dims.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "reel/core/base/key_bytes.h"
#include "reel/core/types/dim.h"

namespace reel {

/// An operation, its numbers, and the Dims that it names. Slices of one Dim with equal keys are one
/// Dim. An empty key finds no slice.
///
/// A key begins with the text of the operation. The Dims stand apart from its numbers and texts, so
/// that another graph, which has other Dims for the same axes, can write the same key. Requires
/// that each item decides which kind of item follows.
class SliceKey {
 public:
  template <class N>
  SliceKey& number(N n) {
    items_.number(n);
    return *this;
  }
  SliceKey& text(std::string_view text) {
    items_.text(text);
    return *this;
  }
  SliceKey& dim(const Dim& dim) {
    dims_.push_back(dim);
    return *this;
  }

  /// Marks a key that depends on the values of a tensor or on an index. A program makes many such
  /// keys, so signatures leave them out.
  SliceKey& by_value() {
    is_by_value_ = true;
    return *this;
  }

  bool is_by_value() const { return is_by_value_; }
  bool is_empty() const { return items_.bytes().empty(); }
  const Dims& dims() const { return dims_; }
  /// Returns the key without its Dims, as bytes.
  const std::string& items() const { return items_.bytes(); }
  /// Returns the same operation with other Dims in the place of its Dims.
  template <class Fn>
  SliceKey with_dims(Fn&& fn) const {
    SliceKey result = *this;
    for (Dim& dim : result.dims_) dim = fn(dim);
    return result;
  }
  /// Returns the key as bytes. Equal keys have equal bytes. Dims stand for their serials: a Dim may
  /// be freed, and its address used again, before the slice is.
  std::string bytes() const {
    KeyBytes all;
    all.text(items_.bytes());
    for (const Dim& dim : dims_) all.number(dim.serial());
    return all.take();
  }

 private:
  KeyBytes items_;
  Dims dims_;
  bool is_by_value_ = false;
};

}  // namespace reel
