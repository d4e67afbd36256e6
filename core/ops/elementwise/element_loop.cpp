#include "reel/core/ops/elementwise/element_loop.h"

#include <array>
#include <utility>

#include "reel/core/ops/elementwise/pointwise_kernels.h"

namespace reel {
namespace {

template <int... kOps>
constexpr auto unary_kernels(std::integer_sequence<int, kOps...>) {
  return std::array{OpKernel(unary_kernel<static_cast<Unary>(kOps)>)...};
}
template <int... kOps>
constexpr auto binary_kernels(std::integer_sequence<int, kOps...>) {
  return std::array{OpKernel(binary_kernel<static_cast<Binary>(kOps)>)...};
}

constexpr auto kUnary =
    unary_kernels(std::make_integer_sequence<int, static_cast<int>(Unary::count)>());
constexpr auto kBinary =
    binary_kernels(std::make_integer_sequence<int, static_cast<int>(Binary::count)>());

}  // namespace

std::optional<ElementLoop> element_loop(const Op& op) {
  for (std::size_t i = 0; i < kUnary.size(); ++i)
    if (op.kernel == kUnary[i]) return static_cast<Unary>(i);
  for (std::size_t i = 0; i < kBinary.size(); ++i)
    if (op.kernel == kBinary[i]) return static_cast<Binary>(i);
  if (op.kernel == where_kernel) return WhereLoop{};
  if (op.kernel == cast_kernel) return CastLoop{};
  return std::nullopt;
}

}  // namespace reel
