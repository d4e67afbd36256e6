// core/types/persistent_list.h — PersistentList, the elements of a TensorArray: a sparse list whose
// versions share unchanged elements.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "reel/core/types/tensor.h"

namespace reel {

/// A radix tree of 32 children per node (Bagwell & Rompf 2011, without the relaxed part). An absent
/// subtree stands for elements never written.
///
/// set() copies the nodes on the path to the element that other lists share, at most a handful.
/// Writing costs O(log N) while an older version is alive; a list with a single owner is written in
/// place. Not thread-safe for writing.
class PersistentList {
 public:
  static constexpr int kBits = 5;
  static constexpr std::size_t kWidth = std::size_t{1} << kBits;

  std::int64_t size() const { return size_; }
  void resize(std::int64_t size) { size_ = size; }
  /// Returns the number of written elements.
  std::int64_t written() const { return written_; }
  /// Returns the element, or an empty Tensor if none was written. Requires: index >= 0.
  const Tensor& get(std::int64_t index) const {
    if (index >> (kBits * height_) || !root_) return kNothing;
    const Node* node = root_.get();
    for (int level = height_ - 1; level > 0; --level) {
      node = node->children[index >> (kBits * level) & (kWidth - 1)].get();
      if (!node) return kNothing;
    }
    return node->elements[index & (kWidth - 1)];
  }
  /// Writes an element, and extends size() to include it. Requires: index >= 0.
  void set(std::int64_t index, Tensor element) {
    while (!height_ || index >> (kBits * height_)) {
      Ref<Node> above(new Node(height_ > 0));
      if (height_ > 0) above->children[0] = std::move(root_);
      root_ = std::move(above);
      ++height_;
    }
    written_ += element.is_defined() - get(index).is_defined();
    set_in(root_, height_ - 1, index, std::move(element));
    if (index >= size_) size_ = index + 1;
  }
  /// Merges another list: combine(mine, theirs) for elements that both have; elements that only one
  /// has are taken over.
  template <class Fn>
  void merge(const PersistentList& other, Fn&& combine) {
    if (other.root_)
      other.each([&](std::int64_t i, const Tensor& theirs) {
        const Tensor mine = get(i);
        set(i, mine.is_defined() ? combine(mine, theirs) : theirs);
      });
    if (other.size_ > size_) size_ = other.size_;
  }
  /// Calls fn(index, element) for the written elements, in order.
  template <class Fn>
  void each(Fn&& fn) const {
    if (root_) each_in(*root_, height_ - 1, 0, fn);
  }

 private:
  struct Node : RefCounted {
    explicit Node(bool is_inner)
        : is_inner(is_inner), children(is_inner ? kWidth : 0), elements(is_inner ? 0 : kWidth) {}
    Node(const Node& other)
        : RefCounted(other),
          is_inner(other.is_inner),
          children(other.children),
          elements(other.elements) {}
    bool is_inner;
    std::vector<Ref<Node>> children;
    std::vector<Tensor> elements;
    static void destroy(const Node* node) { delete node; }
  };

  static void set_in(Ref<Node>& node, int level, std::int64_t index, Tensor element) {
    if (!node)
      node = Ref<Node>(new Node(level > 0));
    else if (!node.unique())
      node = Ref<Node>(new Node(*node));
    const std::int64_t slot = index >> (kBits * level) & (kWidth - 1);
    if (level > 0)
      set_in(node->children[slot], level - 1, index, std::move(element));
    else
      node->elements[slot] = std::move(element);
  }
  template <class Fn>
  static void each_in(const Node& node, int level, std::int64_t first, Fn& fn) {
    for (std::int64_t slot = 0; slot < std::int64_t{kWidth}; ++slot) {
      const std::int64_t index = first + (slot << (kBits * level));
      if (level > 0) {
        if (node.children[slot]) each_in(*node.children[slot], level - 1, index, fn);
      } else if (node.elements[slot].is_defined()) {
        fn(index, node.elements[slot]);
      }
    }
  }
  inline static const Tensor kNothing;

  Ref<Node> root_;
  int height_ = 0;
  std::int64_t size_ = 0, written_ = 0;

  friend struct PersistentListOffsets;  // core/debugger/offsets.cpp
};

}  // namespace reel
