// core/types/type_list.h — TypeList and TypeViews, short lists of types without allocation.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <vector>

#include "reel/core/base/visibility.h"
#include "reel/core/types/tensor_type.h"

REEL_API_BEGIN
namespace reel {

/// Owns the output types of a type rule. Up to four are stored in place, more on the heap.
class TypeList {
 public:
  TypeList() = default;
  ~TypeList() {
    for (std::size_t i = 0; i < count_; ++i) at(i).~TensorType();
  }
  TypeList(const TypeList&) = delete;
  TypeList& operator=(const TypeList&) = delete;

  void push_back(const TensorType& type) {
    if (!many_ && count_ < kInline)
      new (inline_ + count_++ * sizeof(TensorType)) TensorType(type);
    else
      push_back_many(type);
  }
  std::span<const TensorType> span() const {
    return many_ ? std::span<const TensorType>(*many_)
                 : std::span<const TensorType>(&at(0), count_);
  }
  operator std::span<const TensorType>() const { return span(); }
  std::size_t size() const { return span().size(); }
  const TensorType& operator[](std::size_t i) const { return span()[i]; }

 private:
  static constexpr std::size_t kInline = 4;
  void push_back_many(const TensorType& type) {
    if (!many_) many_ = std::make_unique<std::vector<TensorType>>(&at(0), &at(0) + count_);
    many_->push_back(type);
  }
  const TensorType& at(std::size_t i) const {
    return reinterpret_cast<const TensorType*>(inline_)[i];
  }
  TensorType& at(std::size_t i) { return reinterpret_cast<TensorType*>(inline_)[i]; }

  alignas(TensorType) std::byte inline_[kInline * sizeof(TensorType)];
  std::size_t count_ = 0;
  std::unique_ptr<std::vector<TensorType>> many_;
};

/// Borrows the input types of a type rule. Requires: their tensors outlive the list, because
/// references are not counted.
class TypeViews {
 public:
  explicit TypeViews(std::size_t count) {
    if (count > kInline) {
      many_ = std::make_unique<Slot[]>(count);
      slots_ = many_.get();
    }
  }
  TypeViews(const TypeViews&) = delete;
  TypeViews& operator=(const TypeViews&) = delete;

  void push_back(const TensorType& type) {
    std::memcpy(&slots_[count_++], &type, sizeof type);  // the handle, without its reference
  }
  operator std::span<const TensorType>() const {
    return {std::launder(reinterpret_cast<const TensorType*>(slots_)), count_};
  }

 private:
  static constexpr std::size_t kInline = 4;
  struct Slot {
    alignas(TensorType) std::byte bytes[sizeof(TensorType)];
  };

  Slot inline_[kInline];
  Slot* slots_ = inline_;
  std::size_t count_ = 0;
  std::unique_ptr<Slot[]> many_;
};

}  // namespace reel
REEL_API_END
