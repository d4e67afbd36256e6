// bench/ops.h — public ops that libtorch has too, with operands of one size.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "reel/core/types/tensor.h"

namespace reel::bench {

/// An operand of a case: its sizes, and the kind of its elements.
struct OpInput {
  enum class Values {
    normal,    ///< f32, of mean 0 and variance 1
    positive,  ///< f32, from 0.1 to 2
    boolean,   ///< half of them true
    index,     ///< i32 for Reel and i64 for libtorch, from 0 to `below` - 1
  };
  std::vector<std::int64_t> sizes;
  Values values = Values::normal;
  std::int64_t below = 0;
};
/// Returns the elements of an operand; number: its index among a case's operands.
std::vector<float> elements_of(const OpInput& input, std::size_t number);

/// A case for operands of some rows and columns. libtorch's side has the same name (Libtorch::op).
struct OpCase {
  std::string name;
  std::vector<OpInput> inputs;
  std::function<Tensor(const Tensors&)> ours;
  bool may_differ = false;  ///< results of both libraries: random, or of ties
};
std::vector<OpCase> op_cases(std::int64_t rows, std::int64_t columns);

}  // namespace reel::bench
