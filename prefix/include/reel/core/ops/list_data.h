// core/ops/list_data.h — what a list value holds, for the kernels of ops on lists.
#pragma once

#include <string_view>

#include "reel/core/op.h"
#include "reel/core/ops/new_dims.h"
#include "reel/core/persistent_list.h"
#include "reel/core/tensor.h"

namespace reel {

struct ListData final : BlockAttachment {
  PersistentList items;
  bool may_grow = false;  ///< by a write beyond the end
};

inline const ListData& data_of(const Tensor& list) {
  return *static_cast<const ListData*>(list.block()->attachment.get());
}
inline const PersistentList& items_of(const Tensor& list) { return data_of(list).items; }

/// The data of input i, to be changed: in place when nobody else can see it.
Ref<ListData> editable(const KernelArgs& a, std::size_t i);

/// One edit of input list i, of the type of output 0. The reference it holds on the block goes
/// first, so that nodes count one owner.
template <class Edit>
Tensor edited(const KernelArgs& a, std::size_t i, Edit&& edit) {
  Ref<ListData> data = editable(a, i);
  edit(data->items);
  return Tensor(allocate_list(a.types[0], data));
}

inline std::int64_t index_at(const Tensor& indices, std::int64_t i) {
  return indices.dtype() == i64 ? indices.data<std::int64_t>()[i] : indices.data<std::int32_t>()[i];
}

/// Elements may differ in size: zeros in place of one need it to look at.
inline bool is_open(const TensorType& list) { return has_unknown_size(list); }

/// The type of a list as an attribute. A size that differs from element to element is nobody's to
/// know: it is no symbol of the graph.
struct ListType {
  TensorType type{f32};
  bool operator==(const ListType&) const = default;
};
inline std::ostream& operator<<(std::ostream& out, const ListType& list) {
  return out << list.type;
}
inline std::size_t hash_of(const ListType& list) { return attr::hash_of(list.type); }
inline ListType resolve(const ListType& list, DimEnv& env) { return {env.resolve(list.type)}; }
inline void each_symbol(const ListType& list, const attr::SymbolFn& fn) {
  for_each_symbol(list.type, [&](const Dim& dim) {
    if (dim.is_named()) fn(dim);
  });
}
/// Of ops that give a list of that type.
struct ListTypeAttrs {
  ListType list;
  template <class F>
  static void fields(F&& f) {
    f("list", &ListTypeAttrs::list);
  }
};

/// The type of an element, of which one it is not said: a size that differs from element to element
/// is another unknown whenever it is asked for.
TensorType any_element(const TensorType& list);

/// The element at an index, or zeros where none was written. Throws IndexError where nobody knows
/// of which shape.
Tensor element_or_zeros(const Tensor& list, std::int64_t index);

/// The dims of such elements side by side along a dim; and the type of a slice of x along its first
/// one.
Dims behind(const Dim& dim, const TensorType& element);
TensorType without_first(const TensorType& x);

/// Throws DTypeError or ShapeError unless x may be an element; `op` names the method.
void check_element(const TensorType& x, const TensorType& list, std::string_view op);
/// Throws IndexError unless an element may be written there.
void check_write(std::int64_t index, std::int64_t size, bool may_grow);

}  // namespace reel
