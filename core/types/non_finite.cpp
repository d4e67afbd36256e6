#include "reel/core/types/non_finite.h"

#include <bit>
#include <cmath>
#include <type_traits>
#include <vector>

#include "reel/core/base/str.h"
#include "reel/core/types/valid_elements.h"

namespace reel {
namespace {

/// Returns true if some number is NaN or infinite. Most tensors have none, so this is the time that
/// a search takes.
template <class T>
bool has_non_finite(const T* x, std::int64_t count) {
  using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  constexpr Bits kExponent = std::bit_cast<Bits>(std::numeric_limits<T>::infinity());
  Bits found = 0;
  for (std::int64_t i = 0; i < count; ++i)
    found |= static_cast<Bits>((std::bit_cast<Bits>(x[i]) & kExponent) == kExponent);
  return found != 0;
}

template <class T>
bool is_found(T x, Search search) {
  return (search != Search::infinities && std::isnan(x)) ||
         (search != Search::nan && std::isinf(x));
}

/// Moves to the next index; the last axis runs fastest.
void advance(std::vector<std::int64_t>& index, const std::vector<std::int64_t>& sizes) {
  for (std::size_t i = sizes.size(); i-- > 0;) {
    if (++index[i] < sizes[i]) return;
    index[i] = 0;
  }
}

template <class T>
std::optional<NonFinite> find_in(const Tensor& tensor, std::span<const Tensor> running,
                                 Search search) {
  const T* const x = tensor.data<T>();
  const std::int64_t count = tensor.type().numel();
  if (!has_non_finite(x, count)) return std::nullopt;
  const ValidElements is_valid(tensor.type(), running);
  std::optional<NonFinite> result;
  std::vector<std::int64_t> index(tensor.type().sizes().size());
  for (std::int64_t i = 0; i < count; ++i, advance(index, tensor.type().sizes())) {
    if (!is_found(x[i], search) || !is_valid(index)) continue;
    if (result) {
      ++result->count;
      continue;
    }
    const std::string place = index_text(tensor.type(), index);
    const char* const value = std::isnan(x[i]) ? "nan" : x[i] < 0 ? "-inf" : "inf";
    result = {std::isnan(x[i]), str("is ", value, place.empty() ? "" : " at ", place), 1};
  }
  return result;
}

}  // namespace

std::string NonFinite::all() const {
  return count == 1 ? text : str(text, ", the first of ", count, " such elements");
}

std::string index_text(const TensorType& type, std::span<const std::int64_t> index) {
  if (index.empty()) return {};
  std::string result = "[";
  for (std::size_t i = 0; i < index.size(); ++i) {
    const Dim& dim = type.dims()[i];
    result += str(i ? ", " : "", dim.is_named() ? dim.name() + '=' : "", index[i]);
  }
  return result + ']';
}

std::optional<NonFinite> find_non_finite(const Tensor& tensor, std::span<const Tensor> running,
                                         Search search) {
  const TensorBlock* const block = tensor.block();
  if (!block || !is_float(tensor.dtype()) || block->kind == BlockKind::promise ||
      block->kind == BlockKind::list || !block->data)
    return std::nullopt;
  return tensor.dtype() == f32 ? find_in<float>(tensor, running, search)
                               : find_in<double>(tensor, running, search);
}

}  // namespace reel
