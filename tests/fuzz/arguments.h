// tests/fuzz/arguments.h — what a program is called with: numbers from its seed.
#pragma once

#include <functional>

#include "reel/tests/fuzz/machine.h"

namespace reel::fuzz {

/// Which of the calls.
struct Call {
  bool has_nan = true;        ///< what is padding is NaN (of integers a large number), else small
  bool is_elsewhere = false;  ///< with the other lengths
};

/// The lengths of a ragged dim, or the size of a dynamic one.
const std::vector<int>& lengths_of(const DimInfo& dim, const Call& call);

/// Sizes of a dim that has one before a run.
int extent(const Program& program, int dim, const Call& call);

/// Calls fn(position in row-major order, is valid) for every element of dims that have sizes before
/// a run.
void for_each_element(const Program& program, const std::vector<int>& dims, const Call& call,
                      const std::function<void(std::uint64_t, bool)>& fn);

/// The elements of an input in row-major order.
std::vector<double> input_values(const Program& program, std::size_t input, const Call& call);
/// Numbers up to 1 for the elements that count, 0 for padding: a direction to go in, one of
/// several.
std::vector<double> direction_values(const Program& program, std::size_t input, const Call& call,
                                     int which = 0);

/// Dims that every call has in common are those of `first`, where that is given.
Arguments make_arguments(const Program& program, const Call& call,
                         const Arguments* first = nullptr);
/// Directions for all inputs that are reals and passed; zeros for others.
Tensors make_directions(const Program& program, const Arguments& arguments, const Call& call,
                        int which = 0);

}  // namespace reel::fuzz
