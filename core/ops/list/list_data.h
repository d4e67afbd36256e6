// core/ops/list/list_data.h — ListData, the storage of a list value, for the kernels of ops on
// lists.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

#include "reel/core/op/op.h"
#include "reel/core/ops/shape/new_dims.h"
#include "reel/core/types/persistent_list.h"
#include "reel/core/types/tensor.h"

namespace reel {

struct ListData final : BlockAttachment {
  PersistentList items;
  bool may_grow = false;  ///< by a write beyond the end
};

inline const ListData& data_of(const Tensor& list) {
  return *static_cast<const ListData*>(list.block()->attachment.get());
}
inline const PersistentList& items_of(const Tensor& list) { return data_of(list).items; }

/// Calls fn(index, element) for the elements of a list that were written. If the list stands for
/// the residuals of a loop, loads them one by one, from the last to the first.
void each_element(const Tensor& list, const std::function<void(std::int64_t, const Tensor&)>& fn);
/// Returns the number of elements of a list, which may stand for residuals.
std::int64_t element_count(const Tensor& list);

/// Returns the data of input i for modification: in place if the kernel may take the input and has
/// the only reference, otherwise a copy.
Ref<ListData> editable(const KernelArgs& a, std::size_t i);

/// Applies an edit to input list i and returns the result, of the type of output 0. Edits in place
/// as editable() does.
template <class Edit>
Tensor edited(const KernelArgs& a, std::size_t i, Edit&& edit) {
  Ref<ListData> data = editable(a, i);
  edit(data->items);
  return Tensor(allocate_list(a.types[0], data));
}

inline std::int64_t index_at(const Tensor& indices, std::int64_t i) {
  return indices.dtype() == i64 ? indices.data<std::int64_t>()[i] : indices.data<std::int32_t>()[i];
}

/// True if elements may differ in size. Zeros in place of an element then need an element of the
/// same sizes.
inline bool is_open(const TensorType& list) { return has_unknown_size(list); }

/// The type of a list as an attribute. A size that differs between elements is no symbol of the
/// graph, so each_symbol() skips plain dims.
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
/// Attributes of list_new: the number of unwritten elements.
struct ListNewAttrs {
  ListType list;
  std::int64_t size = 0;
  bool may_grow = false;
  template <class F>
  static void fields(F&& f) {
    f("list", &ListNewAttrs::list);
    f("size", &ListNewAttrs::size);
    f("may_grow", &ListNewAttrs::may_grow);
  }
};
/// Attributes of list_read. is_lenient: an index beyond the end reads zeros.
struct ListReadAttrs {
  bool is_lenient = false;
  template <class F>
  static void fields(F&& f) {
    f("is_lenient", &ListReadAttrs::is_lenient);
  }
};
/// Attributes of list_stack. is_lenient: missing elements are zeros.
struct ListStackAttrs {
  std::optional<Dim> dim;
  bool is_lenient = false;
  template <class F>
  static void fields(F&& f) {
    f("dim", &ListStackAttrs::dim);
    f("is_lenient", &ListStackAttrs::is_lenient);
  }
};
/// Attributes of list_gather.
struct ListGatherAttrs {
  /// For cotangents: elements beyond the end, and unwritten ones, are zeros.
  bool is_lenient = false;
  bool last_only =
      false;  ///< of equal indices only the last gets its element; the others get zeros
  template <class F>
  static void fields(F&& f) {
    f("is_lenient", &ListGatherAttrs::is_lenient);
    f("last_only", &ListGatherAttrs::last_only);
  }
};
/// Attributes of list_spread.
struct ListSpreadAttrs {
  ListType list;
  bool last_only = false;  ///< of equal indices only the last one writes
  template <class F>
  static void fields(F&& f) {
    f("list", &ListSpreadAttrs::list);
    f("last_only", &ListSpreadAttrs::last_only);
  }
};
/// Attributes of ops that return a list of the given type.
struct ListTypeAttrs {
  ListType list;
  template <class F>
  static void fields(F&& f) {
    f("list", &ListTypeAttrs::list);
  }
};

/// Returns the type of an unspecified element: each size that differs between elements is a fresh
/// unknown dim.
TensorType any_element(const TensorType& list);

/// Returns the element at an index, or zeros if it was not written. Throws IndexError if it was not
/// written and its shape is unknown.
Tensor element_or_zeros(const Tensor& list, std::int64_t index);

/// Returns the dims of elements stacked along `dim`.
Dims behind(const Dim& dim, const TensorType& element);
/// Returns the type of a slice of x along its first axis.
TensorType without_first(const TensorType& x);

/// Throws DTypeError or ShapeError unless x may be an element. op: the method, in messages.
void check_element(const TensorType& x, const TensorType& list, std::string_view op);
/// Throws IndexError unless an element may be written at `index`.
void check_write(std::int64_t index, std::int64_t size, bool may_grow);

}  // namespace reel
