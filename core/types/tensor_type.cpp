#include "reel/core/types/tensor_type.h"

#include <algorithm>
#include <mutex>
#include <ostream>
#include <unordered_map>

#include "reel/core/base/errors.h"
#include "reel/core/base/str.h"
#include "reel/core/types/mode.h"

namespace reel {
namespace {

struct Table {
  std::mutex mutex;
  std::unordered_multimap<std::size_t, const TypeNode*> nodes;
};
Table& table() {
  static Table& instance = *new Table;  // types outlive every static tensor
  return instance;
}

bool same_dims(const Dims& a, const Dims& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (a[i].node() != b[i].node() || a[i].raw_size() != b[i].raw_size()) return false;
  return true;
}

void check(const Dims& dims, DType dtype) {
  int named = 0;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (!dims[i].node() && !dims[i].has_size())
      throw ShapeError(str(name_of(dtype), dims,
                           ": an empty Dim has neither a name nor a size; assign one to it first"));
    if (dims[i].is_undefined())
      throw ShapeError(
          str(name_of(dtype), dims, ": dim ", dims[i], " is undefined; give it a size or lengths"));
    if (!dims[i].is_named()) continue;
    ++named;
    for (std::size_t j = 0; j < i; ++j)
      if (dims[i].node() == dims[j].node())
        throw ShapeError(str(name_of(dtype), dims, ": a tensor has each dim once, but ", dims[i],
                             " is there twice; make a second Dim for one of the axes"));
  }
  if (named && named != static_cast<int>(dims.size()))
    throw ShapeError(str(
        name_of(dtype), dims,
        ": a tensor's dims are all named or all plain sizes; give every axis a Dim with a name"));
}

/// Returns the number of elements; -1 if known only at run time. Bytes in memory are signed 64-bit
/// integers throughout; a size that wrapped around would be allocated. The limit holds for the
/// other sizes of an empty tensor, too, as steps and counts over some axes multiply them.
std::int64_t count_elements(const Dims& dims, DType dtype) {
  std::int64_t numel = 1, bytes = 0;
  bool is_too_large = false, is_empty = false;
  for (const Dim& dim : dims)
    if (!dim.has_size()) return -1;
  for (const Dim& dim : dims) {
    is_empty = is_empty || dim.raw_size() == 0;
    is_too_large = is_too_large ||
                   __builtin_mul_overflow(numel, std::max<std::int64_t>(dim.raw_size(), 1), &numel);
  }
  if (is_too_large ||
      __builtin_mul_overflow(numel, static_cast<std::int64_t>(size_of(dtype)), &bytes))
    throw ShapeError(str(name_of(dtype), dims,
                         is_empty ? ": the product of its sizes other than 0, in bytes, is more "
                                    "than 64 bits can count"
                                  : ": too many elements; their bytes are more than 64 bits can "
                                    "count"));
  return is_empty ? 0 : numel;
}

}  // namespace

void TypeNode::destroy(const TypeNode* node) {
  {
    Table& t = table();
    const std::lock_guard lock(t.mutex);
    auto [it, end] = t.nodes.equal_range(node->hash);
    for (; it != end; ++it)
      if (it->second == node) {
        t.nodes.erase(it);
        break;
      }
  }
  delete node;  // outside the lock: freeing its dims may free other types
}

const TypeNode* TensorType::intern(DType dtype, const Dims& given, bool is_list, bool is_unranked) {
  Dims renamed;
  const Dims* dims = &given;
  if (is_tracing() || thread_mode.entries) {
    renamed = canonical(given);
    dims = &renamed;
  }
  std::size_t hash = static_cast<std::size_t>(dtype) * 31 + is_list + 2 * is_unranked;
  for (const Dim& dim : *dims) hash = hash * 0x100000001B3ull ^ dim.hash();
  Table& t = table();
  const std::lock_guard lock(t.mutex);
  auto [it, end] = t.nodes.equal_range(hash);
  for (; it != end; ++it) {
    const TypeNode* node = it->second;
    if (node->dtype != dtype || node->is_list != is_list || node->is_unranked != is_unranked ||
        !same_dims(node->dims, *dims))
      continue;
    if (node->is_permanent) return node;
    // A count of zero means that the last owner is about to remove it: make another.
    std::uint32_t count = node->refs.load(std::memory_order_relaxed);
    while (count && !node->refs.compare_exchange_weak(count, count + 1)) {
    }
    if (count) return node;
  }
  check(*dims, dtype);
  const std::int64_t numel = count_elements(*dims, dtype);
  auto made = std::make_unique<TypeNode>();  // owned by the table once it is in it
  TypeNode* const node = made.get();
  node->dtype = dtype;
  node->is_list = is_list;
  node->is_unranked = is_unranked;
  node->is_known = !is_unranked;
  node->dims = *dims;
  node->hash = hash;
  node->is_permanent = true;
  for (const Dim& dim : *dims) {
    node->sizes.push_back(dim.raw_size());
    node->is_known = node->is_known && dim.has_size();
    node->is_ragged = node->is_ragged || dim.is_ragged();
    node->has_symbols = node->has_symbols || dim.is_symbol();
    node->is_named = node->is_named || dim.is_named();
    for (const Dim& of : dim.length_dims()) node->has_symbols = node->has_symbols || of.is_symbol();
    if (dim.node()) node->is_permanent = false;
  }
  node->numel = numel;
  node->refs.store(1, std::memory_order_relaxed);
  t.nodes.emplace(hash, node);
  return made.release();
}

TensorType::TensorType(DType dtype, const Dims& dims) : node_(intern(dtype, dims, false, false)) {}

TensorType TensorType::with(DType dtype) const {
  if (dtype == this->dtype()) return *this;
  return TensorType(Interned{}, intern(dtype, dims(), is_list(), is_unranked()));
}
TensorType TensorType::with(const Dims& dims) const {
  return TensorType(Interned{}, intern(dtype(), dims, is_list(), is_unranked()));
}
TensorType TensorType::as_list() const {
  return TensorType(Interned{}, intern(dtype(), dims(), true, is_unranked()));
}
TensorType TensorType::element() const {
  return TensorType(Interned{}, intern(dtype(), dims(), false, is_unranked()));
}
TensorType TensorType::unranked(DType dtype) {
  return TensorType(Interned{}, intern(dtype, {}, true, true));
}

TensorType token_type(const Dim& dim) {
  static const Dim& none = []() -> const Dim& {
    ModeScope plain({});
    return *new Dim("none", 0);
  }();
  return dim.is_named() ? TensorType(boolean, {none, dim}) : TensorType(boolean, {Dim(0), dim});
}

std::ostream& operator<<(std::ostream& out, const TensorType& type) {
  if (type.is_unranked()) return out << type.dtype() << "[...]";
  if (type.is_list()) out << "list of ";
  out << type.dtype();
  return out << type.dims();
}

}  // namespace reel
