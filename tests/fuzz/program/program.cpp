#include "reel/tests/fuzz/program/program.h"

#include <algorithm>

namespace reel::fuzz {

DType dtype_of(const Program& program, Element element) {
  switch (element) {
    case Element::real:
      return program.real;
    case Element::i32:
      return i32;
    case Element::i64:
      return i64;
    default:
      return boolean;
  }
}

int count_instructions(const Program& program) {
  int count = 0;
  for_each_block(program.main, [&](const Block& block) { count += block.body.size(); });
  return count;
}

bool contains(const std::vector<int>& list, int item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

bool is_subset(const std::vector<int>& part, const std::vector<int>& whole) {
  return std::all_of(part.begin(), part.end(), [&](int item) { return contains(whole, item); });
}

namespace {

bool is_slice_of(const Program& program, int dim, int whole) {
  for (int at = program.dims[dim].whole; at >= 0; at = program.dims[at].whole)
    if (at == whole) return true;
  return false;
}

/// Returns `dims` with slices of `other` in place of dims that have no lengths here, unless `dims`
/// has the slice too.
std::vector<int> cut(const Program& program, const std::vector<int>& dims,
                     const std::vector<int>& other) {
  std::vector<int> result = dims;
  for (int& dim : result) {
    const std::vector<int>& over = program.dims[dim].over;
    if (over.empty() || is_subset(over, dims) || contains(other, dim)) continue;
    const int whole = dim;
    for (const int slice : other)
      if (is_slice_of(program, slice, whole) && !contains(result, slice)) dim = slice;
  }
  return result;
}

}  // namespace

std::optional<std::vector<int>> joined_dims(const Program& program, const std::vector<int>& a,
                                            const std::vector<int>& b) {
  if (program.is_named) {
    const std::vector<int> x = cut(program, a, b), y = cut(program, b, a);
    if (is_subset(y, x)) return x;
    if (is_subset(x, y)) return y;
    return std::nullopt;
  }
  const std::vector<int>&longer = a.size() < b.size() ? b : a,
        &shorter = a.size() < b.size() ? a : b;
  std::vector<int> result = longer;
  const std::size_t missing = longer.size() - shorter.size();
  for (std::size_t i = 0; i < shorter.size(); ++i) {
    int& dim = result[missing + i];
    if (dim == shorter[i] || program.dims[shorter[i]].size == 1) continue;
    if (program.dims[dim].size != 1) return std::nullopt;
    dim = shorter[i];
  }
  return result;
}

bool same_dims(const Program& program, const std::vector<int>& a, const std::vector<int>& b) {
  return program.is_named ? a.size() == b.size() && is_subset(a, b) : a == b;
}

bool same_type(const Program& program, const ValueType& a, const ValueType& b) {
  if (a.element != b.element || a.is_array != b.is_array) return false;
  // Elements of an array must have the same order of dims.
  return a.is_array ? a.dims == b.dims : same_dims(program, a.dims, b.dims);
}

}  // namespace reel::fuzz
