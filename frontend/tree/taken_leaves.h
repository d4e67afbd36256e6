// frontend/tree/taken_leaves.h — TakenLeaves, the leaves of a call's arguments, given back if the
// call fails.
#pragma once

#include <cstddef>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "reel/core/base/visibility.h"
#include "reel/frontend/tree/tree.h"

REEL_API_BEGIN
namespace reel::detail {

/// Replaces the tensors of a tree by empty ones. Never throws.
struct DropTensors {
  void operator()(Tensor& tensor, const std::string&) { tensor = Tensor(); }
  void operator()(TensorArray& array, const std::string&) { array = TensorArray::of_list({}); }
  template <class Leaf>
  void operator()(Leaf&, const std::string&) {}
  void size(std::size_t, const std::string&) {}
  void key(const std::string&, const std::string&) {}
};

/// Moves the tensors of leaves back into the tree that they were taken from. Never throws.
struct PutTensorsBack {
  TreeLeaf* next;
  void operator()(Tensor& tensor, const std::string&) { tensor = std::move((next++)->tensor); }
  void operator()(TensorArray& array, const std::string&) {
    array = TensorArray::of_list(std::move((next++)->tensor));
  }
  template <class Leaf>
  void operator()(Leaf&, const std::string&) {
    ++next;
  }
  void size(std::size_t, const std::string&) { ++next; }
  void key(const std::string&, const std::string&) { ++next; }
};

struct SkipLeaves {
  TreeLeaf*& next;
  template <class Leaf>
  void operator()(const Leaf&, const std::string&) {
    ++next;
  }
  void size(std::size_t, const std::string&) { ++next; }
  void key(const std::string&, const std::string&) { ++next; }
};

/// The leaves of the arguments of a call, one argument after the other.
///
/// Args: as a forwarding function deduces them. Takes the tensors of moved-in arguments out of the
/// caller's objects, so that their reference count may be one. The destructor puts them back unless
/// keep() was called. The structure of the caller's objects never changes.
template <class... Args>
class TakenLeaves {
 public:
  explicit TakenLeaves(Args&... args) : args_(args...), leaves(flatten(args_)) {
    DropTensors drop;
    each([&]<class Arg>(std::type_identity<Arg>, auto& arg) {
      if constexpr (kIsMovedIn<Arg>) walk<false>(arg, {}, drop);
    });
  }
  ~TakenLeaves() {
    if (is_kept_) return;
    PutTensorsBack put{leaves.data()};
    SkipLeaves skip{put.next};
    each([&]<class Arg>(std::type_identity<Arg>, auto& arg) {
      if constexpr (kIsMovedIn<Arg>)
        walk<false>(arg, {}, put);
      else
        walk<false>(arg, {}, skip);
    });
  }
  TakenLeaves(const TakenLeaves&) = delete;
  TakenLeaves& operator=(const TakenLeaves&) = delete;
  /// Keeps the tensors: the call has succeeded and owns them.
  void keep() { is_kept_ = true; }

 private:
  template <class Arg>
  static constexpr bool kIsMovedIn =
      !std::is_lvalue_reference_v<Arg> && !std::is_const_v<std::remove_reference_t<Arg>>;

  template <class Fn>
  void each(Fn&& fn) {
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      (fn(std::type_identity<Args>{}, std::get<I>(args_)), ...);
    }
    (std::index_sequence_for<Args...>{});
  }

  std::tuple<Args&...> args_;
  bool is_kept_ = false;

 public:
  TreeLeaves leaves;
};

}  // namespace reel::detail
REEL_API_END
