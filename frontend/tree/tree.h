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
concept Fixed = std::is_arithmetic_v<T> || std::is_enum_v<T> || std::is_same_v<T, std::string>;
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
      "maps of trees; a class that is no plain struct joins with a function members() that "
      "returns std::tie of its members");
  if constexpr (kIsPlain) {
    static_assert(!kHasCArray<T>,
                  "a struct in a tree has no C arrays; write std::array<Tensor, 2> w{} for Tensor "
                  "w[2]");
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

/// Calls fn(leaf, path) for every leaf in the order of the fields, and fn.size(n, path) before the
/// elements of a container. Two trees of one type have the same structure if and only if these
/// sizes, and the keys given to fn.key, agree.
///
/// Paths are empty unless WithPaths. Calls fn.enter(part), if fn takes that type of part, before it
/// visits the part.
template <bool WithPaths, class Tree, class Fn>
void walk(Tree& tree, const std::string& path, Fn& fn) {
  using T = std::remove_const_t<Tree>;
  const auto below = [&](const auto& name) {
    if constexpr (!WithPaths)
      return std::string();
    else
      return str(name).empty() ? path : path.empty() ? str(name) : str(path, '.', name);
  };
  if constexpr (requires { fn.enter(tree); }) fn.enter(tree);
  if constexpr (std::is_same_v<T, Tensor> || std::is_same_v<T, TensorArray> ||
                std::is_same_v<T, Dim> || std::is_same_v<T, None> ||
                std::is_same_v<T, TensorType> || Fixed<T>) {
    fn(tree, path);
  } else if constexpr (IsInstance<T, std::vector>::value) {
    fn.size(tree.size(), path);
    for (std::size_t i = 0; i < tree.size(); ++i) walk<WithPaths>(tree[i], below(i), fn);
  } else if constexpr (IsArray<T>::value) {
    for (std::size_t i = 0; i < tree.size(); ++i) walk<WithPaths>(tree[i], below(i), fn);
  } else if constexpr (IsInstance<T, std::optional>::value) {
    fn.size(tree.has_value(), path);
    if (tree) walk<WithPaths>(*tree, path, fn);
  } else if constexpr (IsInstance<T, std::map>::value) {
    if constexpr (kIsStringMap<T>) {
      fn.size(tree.size(), path);
      for (auto& [key, value] : tree) {
        fn.key(key, path);
        walk<WithPaths>(value, below(key), fn);
      }
    }
  } else if constexpr (TupleLike<T>) {
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      (walk<WithPaths>(std::get<I>(tree), below(I), fn), ...);
    }
    (std::make_index_sequence<std::tuple_size_v<T>>{});
  } else if constexpr (WithMembers<Tree>) {
    auto members = tree.members();
    constexpr std::size_t kCount = std::tuple_size_v<decltype(members)>;
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      if constexpr (WithMemberNames<T>) {
        constexpr auto names = T::member_names();
        static_assert(names.size() == kCount, "member_names() has one name for each of members()");
        (walk<WithPaths>(std::get<I>(members), below(names[I]), fn), ...);
      } else {
        (walk<WithPaths>(std::get<I>(members), below(I), fn), ...);
      }
    }
    (std::make_index_sequence<kCount>{});
  } else if constexpr (WithMembers<T>) {
    walk<WithPaths>(const_cast<T&>(tree), path,
                    fn);  // a members() that is not const must not change anything
  } else if constexpr (kIsStructOfTrees<T>) {
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      (walk<WithPaths>(field<I>(tree), below(field_name<T, I>()), fn), ...);
    }
    (std::make_index_sequence<kFieldCount<T>>{});
  }
}

struct Flatten {
  TreeLeaves& leaves;
  void operator()(const Tensor& t, const std::string&) { leaves.push_back(TreeLeaf::of(t)); }
  void operator()(const TensorArray& a, const std::string&) {
    leaves.push_back(TreeLeaf::of(a.list()));
  }
  void operator()(const Dim& d, const std::string&) { leaves.push_back(TreeLeaf::of(d)); }
  void operator()(const None&, const std::string&) { leaves.push_back(TreeLeaf{}); }
  template <Fixed T>
  void operator()(const T& value, const std::string&) {
    leaves.push_back(TreeLeaf::of(FixedValue(value)));
  }
  void size(std::size_t n, const std::string&) {
    leaves.push_back(TreeLeaf::of(FixedValue::of_size(n)));
  }
  void key(const std::string& key, const std::string&) {
    leaves.push_back(TreeLeaf::of(FixedValue::of_key(key)));
  }
};

/// Flattens a tree and leaves empty tensors in it.
struct TakeLeaves : Flatten {
  using Flatten::operator();
  void operator()(Tensor& t, const std::string&) { leaves.push_back(TreeLeaf::of(std::move(t))); }
  void operator()(TensorArray& a, const std::string&) {
    leaves.push_back(TreeLeaf::of(std::move(a).list()));
  }
};

/// Throws StructureError: the leaves do not belong to a tree of this structure.
[[noreturn]] void refuse_leaves();

struct Unflatten {
  const TreeLeaves& leaves;
  std::size_t next = 0;
  const TreeLeaf& take(TreeLeaf::Kind kind) {
    if (next >= leaves.size() || leaves[next].kind != kind) refuse_leaves();
    return leaves[next++];
  }
  void operator()(Tensor& t, const std::string&) { t = take(TreeLeaf::Kind::tensor).tensor; }
  void operator()(TensorArray& a, const std::string&) {
    a = TensorArray::of_list(take(TreeLeaf::Kind::tensor).tensor);
  }
  void operator()(Dim& d, const std::string&) { d = take(TreeLeaf::Kind::dim).dim; }
  // Not checked: loops may leave out leaves of None and numbers, which the tree already has.
  void operator()(None&, const std::string&) { ++next; }
  template <Fixed T>
  void operator()(T&, const std::string&) {
    ++next;
  }
  void size(std::size_t n, const std::string&) {
    if (!take(TreeLeaf::Kind::fixed).fixed.is_size(n)) refuse_leaves();
  }
  void key(const std::string& key, const std::string&) {
    if (!take(TreeLeaf::Kind::fixed).fixed.is_key(key)) refuse_leaves();
  }
};

struct Paths {
  std::vector<std::string>& paths;
  template <class T>
  void operator()(const T&, const std::string& path) {
    paths.push_back(path);
  }
  void size(std::size_t, const std::string& path) { paths.push_back(path); }
  void key(const std::string&, const std::string& path) { paths.push_back(path); }
};

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
  TreeLeaves leaves;
  detail::Flatten fn{leaves};
  detail::walk<false>(tree, {}, fn);
  return leaves;
}

/// Returns the leaves as flatten does, but moves the tensors out: the tree is left with empty ones.
template <class T>
TreeLeaves take_leaves(T& tree) {
  TreeLeaves leaves;
  detail::TakeLeaves fn{{leaves}};
  detail::walk<false>(tree, {}, fn);
  return leaves;
}

/// Returns a copy of `like` with these leaves. Throws StructureError if a leaf is no tensor or Dim
/// although `like` has one there, or if a container has another size or other keys.
template <class T>
T unflatten(const T& like, const TreeLeaves& leaves) {
  T tree = like;
  detail::Unflatten fn{leaves};
  detail::walk<false>(tree, {}, fn);
  return tree;
}

/// Returns the path of each leaf, in the order of flatten, under a common root: state.h.
template <class T>
std::vector<std::string> leaf_paths(const T& tree, const std::string& root = {}) {
  std::vector<std::string> paths;
  detail::Paths fn{paths};
  detail::walk<true>(tree, root, fn);
  return paths;
}

/// Returns the paths of a tree's tensors by the names of its fields, as in
/// encoder.recurrent_weight; under a common root, as leaf_paths does.
template <class T>
std::vector<std::string> tree_paths(const T& tree, const std::string& root = {}) {
  const TreeLeaves leaves = flatten(tree);
  const std::vector<std::string> paths = leaf_paths(tree, root);
  std::vector<std::string> result;
  for (std::size_t i = 0; i < leaves.size(); ++i)
    if (leaves[i].kind == TreeLeaf::Kind::tensor) result.push_back(paths[i]);
  return result;
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
/// Throws StructureError: mapping a gradient of table rows would change its row numbers too, and
/// two gradients may have different ones.
[[noreturn]] void refuse_rows(const char* function);
struct RefuseRows {
  template <class Part>
  requires requires(const Part& part) {
    part.is_sparse();
    part.slices();
  }
  void enter(const Part& part) {
    if (part.is_sparse()) refuse_rows("tree_map");
  }
  template <class Leaf>
  void operator()(const Leaf&, const std::string&) {}
  void size(std::size_t, const std::string&) {}
  void key(const std::string&, const std::string&) {}
};
}  // namespace detail

/// Returns the tree of f(tensor, tensors at the same place in `more`...). Arrays, Dims and fixed
/// leaves are copied from `tree`.
///
/// Throws StructureError if the trees differ in structure, or if one is a gradient with rows of an
/// EmbeddingTable: make it dense with with_dense_tables first, or add two such gradients with +.
template <class Fn, class T, class... More>
T tree_map(Fn&& f, const T& tree, const More&... more) {
  detail::RefuseRows rows;
  walk<false>(tree, {}, rows);
  (walk<false>(more, {}, rows), ...);
  const TreeLeaves leaves = flatten(tree);
  const std::array<TreeLeaves, sizeof...(More)> others{flatten(more)...};
  std::size_t other = 0;
  (detail::check_same_structure(
       "tree_map", leaves, others[other++], [&] { return leaf_paths(tree); },
       [&] { return leaf_paths(more); }),
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
