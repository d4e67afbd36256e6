// frontend/tree/taken_leaves.h — TakenLeaves, the leaves of a call's arguments, given back if the
// call fails.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "reel/core/base/visibility.h"
#include "reel/frontend/tree/tree.h"

REEL_API_BEGIN
namespace reel::detail {

/// An argument of a call: a tree, which gives its tensors away if it was moved in.
struct Argument {
  TreeRef tree;
  std::optional<TreeSlot> moved_in = {};
};
/// Arg: as a forwarding function deduces it.
template <class Arg>
Argument argument_of(std::remove_reference_t<Arg>& argument) {
  if constexpr (!std::is_lvalue_reference_v<Arg> && !std::is_const_v<std::remove_reference_t<Arg>>)
    return {TreeRef(argument), TreeSlot(argument)};
  else
    return {TreeRef(argument)};
}
using Arguments = std::span<const Argument>;

/// Returns the paths of the leaves of all arguments. Each begins with the argument's position.
std::vector<std::string> paths_of(Arguments arguments);

/// The leaves of the arguments of a call, one argument after the other.
///
/// Takes the tensors of moved-in arguments out of the caller's objects, so that their reference
/// count may be one. The destructor puts them back unless keep() was called. The structure of the
/// caller's objects never changes. Requires that `arguments` outlive it.
class TakenLeaves {
 public:
  /// expected: the number of leaves, as far as the caller knows it; reserves memory for them.
  TakenLeaves(Arguments arguments, std::size_t expected);
  ~TakenLeaves();
  TakenLeaves(const TakenLeaves&) = delete;
  TakenLeaves& operator=(const TakenLeaves&) = delete;
  /// Keeps the tensors: the call has succeeded and owns them.
  void keep() { is_kept_ = true; }
  Arguments arguments() const { return arguments_; }

 private:
  void put_back();

  Arguments arguments_;
  bool is_kept_ = false;

 public:
  TreeLeaves leaves;
  /// Leaves with a SparseTensor's number of elements as first size: its values and indices.
  std::vector<std::size_t> any_length;
};

}  // namespace reel::detail
REEL_API_END
