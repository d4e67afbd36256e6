#include "reel/core/ops/shape/strided.h"

#include <algorithm>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace reel {
namespace {

// In this file steps are in bytes.

/// Calls leaf(to, from) at every position of the axes.
template <class TreeLeaf>
void walk(const StridedAxis* axes, std::size_t count, char* to, const char* from,
          const TreeLeaf& leaf) {
  if (count == 0) return leaf(to, from);
  const auto [size, to_step, from_step] = *axes;
  if (count == 1) {
    for (std::int64_t i = 0; i < size; ++i, to += to_step, from += from_step) leaf(to, from);
    return;
  }
  for (std::int64_t i = 0; i < size; ++i, to += to_step, from += from_step)
    walk(axes + 1, count - 1, to, from, leaf);
}

/// Converts steps to bytes, drops axes of size one, and merges neighbours that are one run on both
/// sides. Returns false if there is nothing to copy.
bool simplify(std::span<const StridedAxis> given, std::int64_t item, StridedAxes& axes) {
  for (const auto& [size, to, from] : given) {
    if (size == 0) return false;
    if (size == 1) continue;
    const StridedAxis axis{size, to * item, from * item};
    if (!axes.empty() && axes.back().to == axis.to * size && axes.back().from == axis.from * size)
      axes.back() = {axes.back().size * size, axis.to, axis.from};
    else
      axes.push_back(axis);
  }
  return true;
}

/// An item of 16 bytes and more: a short row.
template <std::size_t kWords>
struct Wide {
  std::uint64_t words[kWords];
};

template <class T>
T load(const char* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

/// Writes the first items one by one, then copies them in growing blocks, which memcpy does with
/// wide stores.
template <class T>
void repeat(char* to, std::int64_t count, const T& value) {
  constexpr std::int64_t kItem = sizeof(T), kFirst = std::max<std::int64_t>(256 / kItem, 1),
                         kMax = 64 * kFirst;
  std::int64_t done = std::min(count, kFirst);
  for (std::int64_t i = 0; i < done; ++i) std::memcpy(to + i * kItem, &value, sizeof(T));
  while (done < count) {
    const std::int64_t more = std::min({done, kMax, count - done});
    std::memcpy(to + done * kItem, to, static_cast<std::size_t>(more * kItem));
    done += more;
  }
}

/// Copies a run in the opposite order. from: the last item of the source.
template <class T>
void copy_reversed(char* to, const char* from, std::int64_t count) {
  constexpr std::int64_t kItem = sizeof(T);
  std::int64_t i = 0;
#if defined(__SSE2__)
  if constexpr (kItem == 4 || kItem == 8) {
    constexpr std::int64_t kTogether = 16 / kItem;
    constexpr int kOrder = kItem == 4 ? _MM_SHUFFLE(0, 1, 2, 3) : _MM_SHUFFLE(1, 0, 3, 2);
    for (; i + kTogether <= count; i += kTogether) {
      const auto* source = reinterpret_cast<const __m128i*>(from - (i + kTogether - 1) * kItem);
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i * kItem),
                       _mm_shuffle_epi32(_mm_loadu_si128(source), kOrder));
    }
  }
#endif
  for (; i < count; ++i) std::memcpy(to + i * kItem, from - i * kItem, sizeof(T));
}

/// Copies every second item of the source to a run.
template <class T>
void copy_every_second(char* to, const char* from, std::int64_t count) {
  constexpr std::int64_t kItem = sizeof(T);
  std::int64_t i = 0;
#if defined(__SSE2__)
  if constexpr (kItem == 4 || kItem == 8) {
    constexpr std::int64_t kTogether = 16 / kItem;
    // The last item is copied alone: the source may end with it, and two vectors read one more.
    for (; i + kTogether < count; i += kTogether) {
      const char* const source = from + 2 * i * kItem;
      const __m128 a = _mm_loadu_ps(reinterpret_cast<const float*>(source)),
                   b = _mm_loadu_ps(reinterpret_cast<const float*>(source + 16));
      constexpr int kEven = kItem == 4 ? _MM_SHUFFLE(2, 0, 2, 0) : _MM_SHUFFLE(1, 0, 1, 0);
      _mm_storeu_ps(reinterpret_cast<float*>(to + i * kItem), _mm_shuffle_ps(a, b, kEven));
    }
  }
#endif
  for (; i < count; ++i) std::memcpy(to + i * kItem, from + 2 * i * kItem, sizeof(T));
}

/// to[i][j] = from[j][i]: rows are contiguous in the source, columns in the destination.
template <class T>
void transpose_tile(char* to, std::int64_t to_step, const char* from, std::int64_t from_step,
                    std::int64_t rows, std::int64_t columns) {
  std::int64_t i = 0;
#if defined(__SSE2__)
  if constexpr (sizeof(T) == 4) {
    for (; i + 4 <= rows; i += 4) {
      std::int64_t j = 0;
      for (; j + 4 <= columns; j += 4) {
        const char* source = from + j * from_step + i * 4;
        __m128 a = _mm_loadu_ps(reinterpret_cast<const float*>(source));
        __m128 b = _mm_loadu_ps(reinterpret_cast<const float*>(source + from_step));
        __m128 c = _mm_loadu_ps(reinterpret_cast<const float*>(source + 2 * from_step));
        __m128 d = _mm_loadu_ps(reinterpret_cast<const float*>(source + 3 * from_step));
        _MM_TRANSPOSE4_PS(a, b, c, d);
        char* target = to + i * to_step + j * 4;
        _mm_storeu_ps(reinterpret_cast<float*>(target), a);
        _mm_storeu_ps(reinterpret_cast<float*>(target + to_step), b);
        _mm_storeu_ps(reinterpret_cast<float*>(target + 2 * to_step), c);
        _mm_storeu_ps(reinterpret_cast<float*>(target + 3 * to_step), d);
      }
      for (; j < columns; ++j)
        for (std::int64_t k = i; k < i + 4; ++k)
          std::memcpy(to + k * to_step + j * 4, from + j * from_step + k * 4, 4);
    }
  }
#endif
  for (; i < rows; ++i) {
    char* target = to + i * to_step;
    const char* source = from + i * static_cast<std::int64_t>(sizeof(T));
    for (std::int64_t j = 0; j < columns; ++j)
      std::memcpy(target + j * static_cast<std::int64_t>(sizeof(T)), source + j * from_step,
                  sizeof(T));
  }
}

template <class T>
void transpose_blocked(char* to, std::int64_t to_step, const char* from, std::int64_t from_step,
                       std::int64_t rows, std::int64_t columns) {
  constexpr std::int64_t kItem = sizeof(T);
  constexpr std::int64_t kTile =
      64 / kItem < 16 ? 16 : 64 / kItem;  // whole cache lines on the source side
  for (std::int64_t i = 0; i < rows; i += kTile)
    for (std::int64_t j = 0; j < columns; j += kTile)
      transpose_tile<T>(to + i * to_step + j * kItem, to_step, from + j * from_step + i * kItem,
                        from_step, std::min(kTile, rows - i), std::min(kTile, columns - j));
}

template <class T>
void copy_items(StridedAxes& axes, char* to, const char* from) {
  constexpr std::int64_t kItem = sizeof(T);
  if (axes.empty()) {
    std::memcpy(to, from, sizeof(T));
    return;
  }
  const StridedAxis last = axes.back();
  if (last.to == kItem && last.from == 0) {  // one value, repeated
    walk(axes.data(), axes.size() - 1, to, from,
         [&](char* target, const char* source) { repeat(target, last.size, load<T>(source)); });
    return;
  }
  if (last.to == kItem && last.from == -kItem) {
    walk(axes.data(), axes.size() - 1, to, from,
         [&](char* target, const char* source) { copy_reversed<T>(target, source, last.size); });
    return;
  }
  if (last.to == kItem && last.from == 2 * kItem) {
    walk(axes.data(), axes.size() - 1, to, from, [&](char* target, const char* source) {
      copy_every_second<T>(target, source, last.size);
    });
    return;
  }
  if (last.to == kItem)
    for (std::size_t k = 0; k + 1 < axes.size(); ++k) {
      if (axes[k].from != kItem) continue;
      const StridedAxis rows = axes[k];
      axes.erase(axes.begin() + static_cast<std::ptrdiff_t>(k));
      walk(axes.data(), axes.size() - 1, to, from, [&](char* target, const char* source) {
        transpose_blocked<T>(target, rows.to, source, last.from, rows.size, last.size);
      });
      return;
    }
  walk(axes.data(), axes.size() - 1, to, from, [&](char* target, const char* source) {
    for (std::int64_t i = 0; i < last.size; ++i, target += last.to, source += last.from)
      std::memcpy(target, source, sizeof(T));
  });
}

}  // namespace

void copy_strided(std::size_t item, std::span<const StridedAxis> given, void* to,
                  const void* from) {
  auto bytes = static_cast<std::int64_t>(item);
  StridedAxes axes;
  if (!simplify(given, bytes, axes)) return;
  auto* target = static_cast<char*>(to);
  const auto* source = static_cast<const char*>(from);
  if (!axes.empty() && axes.back().to == bytes && axes.back().from == bytes) {
    bytes *= axes.back().size;  // a run is one wide item
    axes.pop_back();
  }
  switch (bytes) {
    case 1:
      return copy_items<std::uint8_t>(axes, target, source);
    case 4:
      return copy_items<std::uint32_t>(axes, target, source);
    case 8:
      return copy_items<std::uint64_t>(axes, target, source);
    case 16:
      return copy_items<Wide<2>>(axes, target, source);
    case 32:
      return copy_items<Wide<4>>(axes, target, source);
    case 64:
      return copy_items<Wide<8>>(axes, target, source);
    default:
      walk(axes.data(), axes.size(), target, source, [bytes](char* row, const char* from_row) {
        std::memcpy(row, from_row, static_cast<std::size_t>(bytes));
      });
  }
}

void fill_items(std::size_t item, void* to, std::int64_t count, const void* value) {
  static constexpr char kZeros[8] = {};
  auto* target = static_cast<char*>(to);
  const auto* source = static_cast<const char*>(value);
  if (std::memcmp(source, kZeros, item) == 0) {
    std::memset(target, 0, static_cast<std::size_t>(count) * item);
    return;
  }
  switch (item) {
    case 1:
      return repeat(target, count, load<std::uint8_t>(source));
    case 4:
      return repeat(target, count, load<std::uint32_t>(source));
    default:
      return repeat(target, count, load<std::uint64_t>(source));
  }
}

Steps steps_of(const TensorType& type) {
  Steps result(static_cast<std::size_t>(type.rank()));
  std::int64_t step = 1;
  for (int i = type.rank(); i-- > 0;) {
    result[static_cast<std::size_t>(i)] = step;
    step *= type.sizes()[static_cast<std::size_t>(i)];
  }
  return result;
}

AxisView view_axis(const TensorType& type, int axis) {
  AxisView result;
  const auto& sizes = type.sizes();
  for (int i = 0; i < type.rank(); ++i) {
    std::int64_t& part = i < axis ? result.outer : i == axis ? result.size : result.inner;
    part *= sizes[static_cast<std::size_t>(i)];
  }
  return result;
}

std::vector<std::int32_t> spread(const TensorType& type, int axis, const Tensor& per_entry,
                                 bool& by_block) {
  const Steps from = steps_of(per_entry.type());
  StridedAxes axes;
  by_block = true;
  for (int i = 0; i < type.rank(); ++i) {
    const int at =
        i == axis ? -1 : find(per_entry.dims(), type.dims()[static_cast<std::size_t>(i)]);
    if (at >= 0 && i > axis) by_block = false;
    axes.push_back({type.sizes()[static_cast<std::size_t>(i)], 0,
                    at < 0 ? 0 : from[static_cast<std::size_t>(at)]});
  }
  axes.erase(axes.begin() + axis, by_block ? axes.end() : axes.begin() + axis + 1);
  std::int64_t count = 1;
  for (std::size_t i = axes.size(); i-- > 0;) {
    axes[i].to = count;
    count *= axes[i].size;
  }
  std::vector<std::int32_t> result(static_cast<std::size_t>(count));
  copy_strided(sizeof(std::int32_t), axes, result.data(), per_entry.data<void>());
  return result;
}

}  // namespace reel
