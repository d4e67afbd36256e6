// tests/fuzz/arguments.h — arguments of a program, drawn from its seed.
#pragma once

#include <functional>
#include <optional>

#include "reel/tests/fuzz/machine.h"

namespace reel::fuzz {

/// Selects a call of a program.
struct Call {
  bool has_nan = true;        ///< true: padding is NaN (for integers a large number); false: small
  bool is_elsewhere = false;  ///< true: with DimInfo::elsewhere as lengths
  bool is_static = false;     ///< true: dims whose size comes with arguments have it in their type
  std::optional<double> padding = {};  ///< instead of has_nan: of reals; integers have 2e9
};

/// Returns the lengths of a ragged dim, or the size of a dynamic one.
const std::vector<int>& lengths_of(const DimInfo& dim, const Call& call);

/// Returns the size of a dim, for ragged dims the largest length. Requires that the size is
/// known before a run.
int extent(const Program& program, int dim, const Call& call);

/// Calls fn(position in row-major order, is valid) for every element. Requires dims with sizes that
/// are known before a run.
void for_each_element(const Program& program, const std::vector<int>& dims, const Call& call,
                      const std::function<void(std::uint64_t, bool)>& fn);

/// Returns the elements of an input in row-major order.
std::vector<double> input_values(const Program& program, std::size_t input, const Call& call);
/// Returns a direction for differences and tangents, in row-major order: numbers of at most 1 for
/// valid elements, 0 for padding. which: selects a direction.
std::vector<double> direction_values(const Program& program, std::size_t input, const Call& call,
                                     int which = 0);

/// Returns the arguments of a call. If `first` is given, named dims that are captured or fixed are
/// taken from it, so that several calls share them.
Arguments make_arguments(const Program& program, const Call& call,
                         const Arguments* first = nullptr);
/// Returns directions for the inputs that are passed: zeros for inputs that are not real.
Tensors make_directions(const Program& program, const Arguments& arguments, const Call& call,
                        int which = 0);

}  // namespace reel::fuzz
