// core/type_list.h — TypeList, a short list of types without an allocation.
#pragma once

#include <cstddef>
#include <new>
#include <span>
#include <vector>

#include "reel/core/tensor_type.h"

namespace reel {

/// The types of an op's operands: nearly always a handful, kept in place; more go to the heap.
class TypeList {
 public:
  TypeList() = default;
  ~TypeList() {
    for (std::size_t i = 0; i < count_; ++i) at(i).~TensorType();
  }
  TypeList(const TypeList&) = delete;
  TypeList& operator=(const TypeList&) = delete;

  void push_back(TensorType type) {
    if (many_.empty() && count_ < kInline) {
      new (inline_ + count_++ * sizeof(TensorType)) TensorType(std::move(type));
      return;
    }
    if (many_.empty()) {
      for (std::size_t i = 0; i < count_; ++i) many_.push_back(at(i));
    }
    many_.push_back(std::move(type));
  }
  std::span<const TensorType> span() const {
    return many_.empty() ? std::span<const TensorType>(&at(0), count_)
                         : std::span<const TensorType>(many_);
  }
  operator std::span<const TensorType>() const { return span(); }
  std::size_t size() const { return span().size(); }
  const TensorType& operator[](std::size_t i) const { return span()[i]; }

 private:
  static constexpr std::size_t kInline = 4;
  const TensorType& at(std::size_t i) const {
    return reinterpret_cast<const TensorType*>(inline_)[i];
  }
  TensorType& at(std::size_t i) { return reinterpret_cast<TensorType*>(inline_)[i]; }

  alignas(TensorType) std::byte inline_[kInline * sizeof(TensorType)];
  std::size_t count_ = 0;
  std::vector<TensorType> many_;
};

}  // namespace reel
