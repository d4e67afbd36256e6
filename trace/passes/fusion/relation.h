// trace/passes/fusion/relation.h — Relation, a set of items for each of some items.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace reel {

/// For each of `count` items (a row) a set of these items, as bits.
class Relation {
 public:
  explicit Relation(std::size_t count) : words_((count + 63) / 64), bits_(count * words_) {}
  bool has(std::size_t row, std::size_t i) const {
    return bits_[row * words_ + i / 64] >> (i % 64) & 1;
  }
  void set(std::size_t row, std::size_t i) {
    bits_[row * words_ + i / 64] |= std::uint64_t{1} << (i % 64);
  }
  void clear(std::size_t row, std::size_t i) {
    bits_[row * words_ + i / 64] &= ~(std::uint64_t{1} << (i % 64));
  }
  /// Adds the items of one row to another row.
  void add_all(std::size_t to, std::size_t from) {
    for (std::size_t w = 0; w < words_; ++w) bits_[to * words_ + w] |= bits_[from * words_ + w];
  }
  /// Returns true if the predicate holds for an item of the row.
  template <class Predicate>
  bool any_of(std::size_t row, const Predicate& is) const {
    for (std::size_t w = 0; w < words_; ++w)
      for (std::uint64_t rest = bits_[row * words_ + w]; rest; rest &= rest - 1)
        if (is(w * 64 + static_cast<std::size_t>(std::countr_zero(rest)))) return true;
    return false;
  }

 private:
  std::size_t words_;
  std::vector<std::uint64_t> bits_;
};

}  // namespace reel
