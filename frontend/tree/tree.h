// frontend/tree/tree.h — trees, the aggregates of tensors that make up states, parameters and
// results.
#pragma once

#include <array>
#include <concepts>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "reel/core/base/errors.h"
#include "reel/core/base/str.h"
#include "reel/core/base/visibility.h"
#include "reel/core/types/leaf.h"
#include "reel/frontend/tree/fields.h"
#include "reel/frontend/tree/tensor_array.h"
#include "reel/frontend/tree/visit.h"

REEL_API_BEGIN
namespace reel {

/// An empty tree: no state, no y.
struct None {
  bool operator==(const None&) const { return true; }
};

namespace detail {

template <class T, template <class...> class Template>
struct IsInstance : std::false_type {};
template <template <class...> class Template, class... Args>
struct IsInstance<Template<Args...>, Template> : std::true_type {};
template <class T>
struct IsArray : std::false_type {};
template <class T, std::size_t N>
struct IsArray<std::array<T, N>> : std::true_type {};

template <class T>
concept TupleLike = IsInstance<T, std::tuple>::value || IsInstance<T, std::pair>::value;
template <class T>
concept WithMembers = requires(T& t) {
  t.members();
};
/// Names the members in paths. A member with an empty name has the path of the whole.
template <class T>
concept WithMemberNames = requires {
  T::member_names();
};
template <class T>
concept Plain = std::is_aggregate_v<T> && std::is_class_v<T> && !IsArray<T>::value;

/// True for a struct with fields that can be visited. The static_asserts fail once per class,
/// however many functions visit it.
template <class T>
constexpr bool is_struct_of_trees() {
  constexpr bool kIsPlain = [] {
    if constexpr (Plain<T>)
      return !kHasBase<T>;
    else
      return false;
  }();
  static_assert(
      kIsPlain,
      "a tree is made of Tensor, TensorArray, Dim, None, numbers, and structs (without "
      "constructors or base classes), pairs, tuples, arrays, vectors, optionals and string "
      "maps of trees; in place of a constructor, give each member its initial value (Tensor w = "
      "zeros({3});) or write a function that returns the struct; a class that is no plain struct "
      "joins with a function members() that returns std::tie of its members");
  if constexpr (kIsPlain) {
    static_assert(!kHasCArray<T>,
                  "a struct in a tree has no C arrays; write std::array<Tensor, 2> w{} for Tensor "
                  "w[2]");
    static_assert(std::is_move_assignable_v<T>,
                  "a struct in a tree has members that can be assigned: remove const from the "
                  "member, and hold values instead of references");
    return !kHasCArray<T>;
  } else {
    return false;
  }
}
template <class T>
inline constexpr bool kIsStructOfTrees = is_struct_of_trees<T>();

/// True for a map whose keys are strings. The static_assert fails once per map.
template <class Map>
constexpr bool is_string_map() {
  constexpr bool kHasStrings = std::is_same_v<typename Map::key_type, std::string>;
  static_assert(kHasStrings, "a map in a tree has std::string as keys");
  return kHasStrings;
}
template <class Map>
inline constexpr bool kIsStringMap = is_string_map<Map>();

/// Calls the visitor for every leaf of a tree in the order of the fields, and for the sizes and
/// keys of containers before their elements. Two trees of one type have the same structure if and
/// only if these agree.
///
/// Visitor: a TreeReader, a TreeWriter, or another TreePath with their functions. Readers see all
/// parts as constants, so that each type of trees needs one instance for them.
template <class Visitor, class Tree>
void walk(Visitor& visitor, Tree& tree, PartName name = {}) {
  using T = std::remove_const_t<Tree>;
  if constexpr (std::is_same_v<Visitor, TreeReader> && !std::is_const_v<Tree>) {
    walk(visitor, std::as_const(tree), name);
  } else if constexpr (std::is_same_v<T, Tensor> || std::is_same_v<T, TensorArray> ||
                       std::is_same_v<T, Dim> || std::is_same_v<T, None> ||
                       std::is_same_v<T, TensorType> || Fixed<T>) {
    visitor.visit(name, tree);
  } else {
    if constexpr (std::is_same_v<T, EmbeddingTable> || std::is_same_v<T, IndexedSlices> ||
                  std::is_same_v<T, SparseTensor>)
      visitor.part(tree);
    const std::size_t outer = visitor.enter(name);
    walk_parts(visitor, tree);
    visitor.leave(outer);
  }
}

/// Visits the members of a class that lists them.
template <class T, class Visitor, class Members>
void walk_members(Visitor& visitor, Members members) {
  constexpr std::size_t kCount = std::tuple_size_v<Members>;
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    if constexpr (WithMemberNames<T>) {
      constexpr auto names = T::member_names();
      static_assert(names.size() == kCount, "member_names() has one name for each of members()");
      (walk(visitor, std::get<I>(members), PartName(names[I])), ...);
    } else {
      (walk(visitor, std::get<I>(members), PartName(I)), ...);
    }
  }
  (std::make_index_sequence<kCount>{});
}

template <class Visitor, class Tree>
void walk_parts(Visitor& visitor, Tree& tree) {
  using T = std::remove_const_t<Tree>;
  if constexpr (IsInstance<T, std::vector>::value) {
    visitor.size(tree.size());
    for (std::size_t i = 0; i < tree.size(); ++i) walk(visitor, tree[i], PartName(i));
  } else if constexpr (IsArray<T>::value) {
    for (std::size_t i = 0; i < tree.size(); ++i) walk(visitor, tree[i], PartName(i));
  } else if constexpr (IsInstance<T, std::optional>::value) {
    visitor.size(tree.has_value());
    if (tree) walk(visitor, *tree);
  } else if constexpr (IsInstance<T, std::map>::value) {
    if constexpr (kIsStringMap<T>) {
      visitor.size(tree.size());
      for (auto& [key, value] : tree) {
        visitor.key(key);
        walk(visitor, value, PartName(key));
      }
    }
  } else if constexpr (TupleLike<T>) {
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      (walk(visitor, std::get<I>(tree), PartName(I)), ...);
    }
    (std::make_index_sequence<std::tuple_size_v<T>>{});
  } else if constexpr (WithMembers<Tree>) {
    walk_members<T>(visitor, tree.members());
  } else if constexpr (WithMembers<T>) {
    // A members() that is not const must not change anything.
    walk_members<T>(visitor, const_cast<T&>(tree).members());
  } else if constexpr (kIsStructOfTrees<T>) {
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      (walk(visitor, field<I>(tree), PartName(field_name<T, I>())), ...);
    }
    (std::make_index_sequence<kFieldCount<T>>{});
  }
}

/// A tree of any type, to read. Requires that the tree outlives it.
class TreeRef {
 public:
  template <class T>
  requires(!std::is_base_of_v<TreeRef, T>) explicit TreeRef(const T& tree)
      : tree_(&tree), read_(&read_as<T>) {}
  void read(TreeReader& reader) const { read_(reader, tree_); }

 private:
  template <class T>
  static void read_as(TreeReader& reader, const void* tree) {
    walk(reader, *static_cast<const T*>(tree));
  }

  const void* tree_;
  void (*read_)(TreeReader&, const void*);
};

/// A tree of any type, to read and to change. Requires that the tree outlives it.
class TreeSlot : public TreeRef {
 public:
  template <class T>
  requires(!std::is_const_v<T>) explicit TreeSlot(T& tree)
      : TreeRef(tree), tree_(&tree), write_(&write_as<T>) {}
  void write(TreeWriter& writer) const { write_(writer, tree_); }

 private:
  template <class T>
  static void write_as(TreeWriter& writer, void* tree) {
    walk(writer, *static_cast<T*>(tree));
  }

  void* tree_;
  void (*write_)(TreeWriter&, void*);
};

TreeLeaves flatten_tree(const TreeRef& tree);
TreeLeaves take_leaves_of(const TreeSlot& tree);
/// Sets the leaves of a tree. Throws StructureError as unflatten does; allocates nothing.
void fill_tree(const TreeSlot& tree, const TreeLeaves& leaves);
/// Moves the tensors out of the leaves instead of copying their references.
void fill_tree(const TreeSlot& tree, TreeLeaves&& leaves);
std::size_t count_leaves(const TreeRef& tree);
std::vector<std::string> leaf_paths_of(const TreeRef& tree, const std::string& root);
std::vector<std::string> tree_paths_of(const TreeRef& tree, const std::string& root);
/// Returns a function that returns leaf_paths(tree, root). Requires that the tree outlives it.
std::function<std::vector<std::string>()> paths_fn(const TreeRef& tree, const char* root = "");
/// Replaces the tensors of a tree by empty ones. Never throws.
void drop_tensors(const TreeSlot& tree) noexcept;

/// The type of a loop's state, given the initial tree: numbers become tensors.
template <class T>
struct StateOf {
  using type = T;
};
template <class T>
requires std::is_arithmetic_v<T>
struct StateOf<T> {
  using type = Tensor;
};
template <class... Ts>
struct StateOf<std::tuple<Ts...>> {
  using type = std::tuple<typename StateOf<Ts>::type...>;
};
template <class A, class B>
struct StateOf<std::pair<A, B>> {
  using type = std::pair<typename StateOf<A>::type, typename StateOf<B>::type>;
};

/// True if a function given to a loop, branch or transformation returns R: not void.
template <class R>
constexpr bool returns_tree() {
  static_assert(!std::is_void_v<R>,
                "functions given to loops, branches and transformations return their results, a "
                "tree of tensors, not void");
  return !std::is_void_v<R>;
}

Tensor number_as_tensor(double number);
Tensor number_as_tensor(std::int64_t number);
Tensor number_as_tensor(bool number);

template <class T>
typename StateOf<T>::type as_state(const T& tree) {
  if constexpr (std::is_same_v<T, bool>) {
    return number_as_tensor(tree);
  } else if constexpr (std::is_integral_v<T>) {
    return number_as_tensor(static_cast<std::int64_t>(tree));
  } else if constexpr (std::is_floating_point_v<T>) {
    return number_as_tensor(static_cast<double>(tree));
  } else if constexpr (IsInstance<T, std::tuple>::value) {
    return std::apply(
        [](const auto&... item) { return typename StateOf<T>::type{as_state(item)...}; }, tree);
  } else if constexpr (IsInstance<T, std::pair>::value) {
    return {as_state(tree.first), as_state(tree.second)};
  } else {
    return tree;
  }
}

}  // namespace detail

/// Returns the leaves of a tree in the order of its fields. Sizes and keys of containers are fixed
/// leaves.
template <class T>
TreeLeaves flatten(const T& tree) {
  return detail::flatten_tree(detail::TreeRef(tree));
}

/// Returns the leaves as flatten does, but moves the tensors out: the tree is left with empty ones.
template <class T>
TreeLeaves take_leaves(T& tree) {
  return detail::take_leaves_of(detail::TreeSlot(tree));
}

/// Returns a copy of `like` with these leaves. Throws StructureError if a leaf is no tensor or Dim
/// although `like` has one there, or if a container has another size or other keys.
template <class T>
T unflatten(const T& like, const TreeLeaves& leaves) {
  T tree = like;
  detail::fill_tree(detail::TreeSlot(tree), leaves);
  return tree;
}
template <class T>
T unflatten(const T& like, TreeLeaves&& leaves) {  // moves the tensors out of the leaves
  T tree = like;
  detail::fill_tree(detail::TreeSlot(tree), std::move(leaves));
  return tree;
}

/// Returns the path of each leaf, in the order of flatten, under a common root: state.h.
template <class T>
std::vector<std::string> leaf_paths(const T& tree, const std::string& root = {}) {
  return detail::leaf_paths_of(detail::TreeRef(tree), root);
}

/// Returns the paths of a tree's tensors by the names of its fields, as in
/// encoder.recurrent_weight; under a common root, as leaf_paths does.
template <class T>
std::vector<std::string> tree_paths(const T& tree, const std::string& root = {}) {
  return detail::tree_paths_of(detail::TreeRef(tree), root);
}

/// Returns the tensors among leaves.
Tensors tensors_of(const TreeLeaves& leaves);
/// Returns leaves with these tensors in the place of theirs. Throws StructureError if there are too
/// few.
TreeLeaves with_tensors(TreeLeaves leaves, const Tensors& tensors);
/// Results of a recorded subcomputation get new Dims where it is used. Therefore its outputs are
/// its tensors and one token per named Dim; with_outputs fills the outputs' values and Dims into
/// leaves.
bool has_token(const TreeLeaf& leaf);
Tensors outputs_of(const TreeLeaves& leaves);
TreeLeaves with_outputs(TreeLeaves leaves, const Tensors& outputs);

namespace detail {
/// Throws StructureError, which names the differences, if `other` does not have the structure of
/// `first`.
void check_same_structure(const char* function, const TreeLeaves& first, const TreeLeaves& other,
                          const std::function<std::vector<std::string>()>& first_paths,
                          const std::function<std::vector<std::string>()>& other_paths);
/// Throws StructureError if a table in the tree is a gradient of rows: mapping it would change its
/// row numbers too, and two gradients may have different ones. Defined with EmbeddingTable.
void refuse_rows(const char* function, const TreeRef& tree);
}  // namespace detail

/// Returns the tree of f(tensor, tensors at the same place in `more`...). Arrays, Dims and fixed
/// leaves are copied from `tree`.
///
/// Throws StructureError if the trees differ in structure, or if one is a gradient with rows of an
/// EmbeddingTable: make it dense with with_dense_tables first, or add two such gradients with +.
template <class Fn, class T, class... More>
T tree_map(Fn&& f, const T& tree, const More&... more) {
  detail::refuse_rows("tree_map", detail::TreeRef(tree));
  (detail::refuse_rows("tree_map", detail::TreeRef(more)), ...);
  const TreeLeaves leaves = flatten(tree);
  const std::array<TreeLeaves, sizeof...(More)> others{flatten(more)...};
  std::size_t other = 0;
  (detail::check_same_structure("tree_map", leaves, others[other++],
                                detail::paths_fn(detail::TreeRef(tree)),
                                detail::paths_fn(detail::TreeRef(more))),
   ...);
  TreeLeaves result = leaves;
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    if (leaves[i].kind != TreeLeaf::Kind::tensor || leaves[i].tensor.type().is_list()) continue;
    result[i].tensor = [&]<std::size_t... I>(std::index_sequence<I...>) {
      return f(leaves[i].tensor, others[I][i].tensor...);
    }
    (std::index_sequence_for<More...>{});
  }
  return unflatten(tree, result);
}

}  // namespace reel
REEL_API_END
