#include "reel/core/ops/products/gemm.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "reel/core/base/errors.h"
#include "reel/core/ops/elementwise/pointwise_kernels.h"
#include "reel/core/ops/kernels/isa.h"
#include "reel/core/ops/products/large_product.h"
#include "reel/core/ops/products/scratch.h"
#include "reel/core/ops/shape/strided.h"
#include "reel/core/runtime/parallel.h"

namespace reel {
namespace {

const ProductTable& table() {
  static const ProductTable& chosen = for_this_processor(REEL_TABLES(products));
  return chosen;
}

/// Numbers of elements of a and of columns above which copies of the operands for the cache pay.
/// Below them, the kernel that reads the operands in place is as fast or faster.
constexpr std::int64_t kMaxElementsInPlace = 128 * 1024, kNarrow = 64;
/// Elements of a transposed b that are copied as one block of columns, which stays in the
/// second-level cache.
constexpr std::int64_t kTransposed = 128 * 1024;

/// Each slice reads and writes all of c. There are no slices if that costs much compared with the
/// products, and c is too large for the caches. 2048×2048×2048 took 1.23 times as long with them.
constexpr std::int64_t kMaxSlicedTerms = 2048, kFewSlices = 2 * kSlice, kSmallResult = 1024 * 1024;
bool has_slices(const MatrixSizes& s) {
  return s.k > kSlice &&
         (s.k <= kFewSlices || (s.k <= kMaxSlicedTerms && s.m * s.n <= kSmallResult));
}

/// A product with one column runs as cᵀ = bᵀ·aᵀ, with one row and the long side in vectors.
bool is_turned(const MatrixSizes& s) { return s.n == 1 && s.c_row == 1 && s.m > 1; }
MatrixSizes turned(const MatrixSizes& s) {
  return {1, s.m, s.k, s.b_step, s.b_row, s.a_step, s.a_row, s.m, s.add, s.order};
}

bool can_be_of_runs(const MatrixSizes& s) {
  const bool are_runs = (s.a_step == 1 || s.k == 1) && (s.b_row == 1 || s.k == 1),
             are_rows = s.b_step == 1 && s.n > 1;
  return are_runs && !are_rows;
}
/// True if elements are computed as products of two runs of memory. Adding the lanes of a vector
/// costs, per element of c, about as much as transposing 5 elements of b.
bool is_of_runs(const MatrixSizes& s) { return can_be_of_runs(s) && (s.m <= 3 || 5 * s.m <= s.k); }

bool is_large_f32(const MatrixSizes& s) {
  return s.m * s.k > kMaxElementsInPlace && s.n > kNarrow && !s.b_panel;
}

/// True if b and c leave the second-level cache, so that our kernel would read rows of b from
/// memory again and again, even if a is small. large_product() takes 0.65 to 0.85 of the time with
/// AVX-512, 0.66 to 1.04 with AVX2, where 16 rows took up to 1.28. Sums that are added to c keep
/// their bits: oneDNN adds them last.
bool streams_operands(const MatrixSizes& s) {
  constexpr std::int64_t kRows = 32, kTerms = 64, kColumns = 2048, kElements = 1024 * 1024;
  return s.m >= kRows && s.k >= kTerms && s.n >= kColumns && (s.m + s.k) * s.n >= kElements &&
         !s.b_panel && !s.add;
}

/// True if large_product() may run for this order.
bool large_keeps_order(const MatrixSizes& s) {
  if (s.order == SumOrder::library) return true;
  return (s.order == SumOrder::slices || s.k <= kSlice) && large_products_are_chains();
}

/// True if our kernel on packed copies is faster than the one that reads b in place: the rows of b
/// begin in the same sets of the first-level cache. Both have the same orders.
bool gains_from_copies(const MatrixSizes& s) {
  constexpr std::int64_t kRows = 64, kElements = 16 * 1024, kShared = 1024;
  return s.b_row % kShared == 0 && s.m >= kRows && s.m * s.k > kElements && s.n > kNarrow &&
         !s.b_panel;
}

/// True if large_product() computes the product from any packed b, or any strides: a large product,
/// one that gains from copies, or one with a packed b and enough rows for its tiles.
bool is_packed(const MatrixSizes& s) {
  return (is_large_f32(s) || streams_operands(s) || gains_from_copies(s) ||
          (s.b_panel && s.m > 2)) &&
         large_products_are_packed() && large_keeps_order(s);
}

/// Requires b_step 1, or is_packed() for f32.
template <class T>
void rows_product(const MatrixSizes& s, const T* a, const T* b, T* c) {
  if constexpr (std::is_same_v<T, float>) {
    const bool leaves_cache = is_large_f32(s) || streams_operands(s);
    if (is_packed(s) || (leaves_cache && large_keeps_order(s))) return large_product(s, a, b, c);
    table().rows_f32(s, a, b, c);
  } else if constexpr (std::is_same_v<T, double>) {
    table().rows_f64(s, a, b, c);
  } else if constexpr (sizeof(T) == 4) {
    table().rows_i32(s, a, b, c);
  } else {
    table().rows_i64(s, a, b, c);
  }
}

/// Copies b into rows, some columns at a time.
template <class T>
void copied_product(const MatrixSizes& s, const T* a, const T* b, T* c) {
  const std::int64_t width = std::min(s.n, std::max<std::int64_t>(64, kTransposed / s.k / 64 * 64));
  const Scratch<T> copy(s.k * width);
  MatrixSizes block = s;
  block.b_step = 1;
  for (std::int64_t j = 0; j < s.n; j += width) {
    block.n = block.b_row = std::min(width, s.n - j);
    copy_strided(sizeof(T), {{s.k, block.n, s.b_row}, {block.n, 1, s.b_step}}, copy.get(),
                 b + j * s.b_step);
    rows_product(block, a, copy.get(), c + j);
  }
}

/// Runs a product of at most kLongestSum terms per element, or of another dtype than f32, with a
/// given order other than parts.
template <class T>
void short_product(MatrixSizes s, const T* a, const T* b, T* c) {
  if (s.k == 1) s.a_step = 1;
  if constexpr (std::is_floating_point_v<T>) {
    if (s.order == SumOrder::runs && can_be_of_runs(s)) {
      if constexpr (std::is_same_v<T, float>)
        return table().runs_f32(s, a, b, c);
      else
        return table().runs_f64(s, a, b, c);
    }
  }
  if (s.b_step == 1 || s.n == 1 || (std::is_same_v<T, float> && is_packed(s)))
    rows_product(s, a, b, c);
  else
    copied_product(s, a, b, c);
}

/// The largest number of products that are summed in f32. A chain of a million would be off by a
/// percent, and stuck at 2^24 terms. Longer sums add up blocks of this length in f64.
constexpr std::int64_t kLongestSum = 16384;

/// Computes a product as the sum of its blocks, a few rows at a time so that they stay in the
/// cache.
void product_in_blocks(const MatrixSizes& s, const float* a, const float* b, float* c) {
  constexpr std::int64_t kMaxBlockElements = 256 * 1024;
  const std::int64_t most_rows = std::clamp<std::int64_t>(kMaxBlockElements / s.n, 1, s.m);
  const Scratch<float> made(most_rows * s.n);
  const Scratch<double> sums(most_rows * s.n);
  MatrixSizes block = s;
  block.add = false;
  block.c_row = s.n;
  for (std::int64_t row = 0; row < s.m; row += block.m) {
    block.m = std::min(most_rows, s.m - row);
    float* const to = c + row * s.c_row;
    for (std::int64_t i = 0; i < block.m * s.n; ++i)
      sums.get()[i] = s.add ? static_cast<double>(to[i / s.n * s.c_row + i % s.n]) : 0;
    for (std::int64_t k = 0; k < s.k; k += block.k) {
      block.k = std::min(kLongestSum, s.k - k);
      short_product(block, a + row * s.a_row + k * s.a_step, b + k * s.b_row, made.get());
      for (std::int64_t i = 0; i < block.m * s.n; ++i)
        sums.get()[i] += static_cast<double>(made.get()[i]);
    }
    for (std::int64_t i = 0; i < block.m; ++i)
      std::copy_n(sums.get() + i * s.n, s.n, to + i * s.c_row);
  }
}

/// Runs a product with a given order other than parts.
template <class T>
void product(const MatrixSizes& s, const T* a, const T* b, T* c) {
  if constexpr (std::is_same_v<T, float>)
    if (s.k > kLongestSum) return product_in_blocks(s, a, b, c);
  short_product(s, a, b, c);
}

/// Returns the order of a product that runs as one share. Requires that it is not turned.
SumOrder order_in_one(DType dtype, const MatrixSizes& s) {
  if (is_float(dtype) && is_of_runs(s)) return SumOrder::runs;
  MatrixSizes made = s;
  made.order = chain_order(dtype, s);
  if (dtype != f32 || !is_large_f32(s) || large_keeps_order(made)) return made.order;
  return large_products_are_packed() ? SumOrder::slices
                                     : SumOrder::library;  // the chain is longer than a slice
}

// ---- Several threads ----------------------------------------------------------------------------

/// Products with at least this number of multiplications run in shares of at least half as many.
/// Sizes alone decide where borders change bits: results do not depend on the number of threads.
constexpr std::int64_t kManyProducts = std::int64_t{1} << 22;
constexpr std::int64_t kMaxShards = 4;
/// Fewest columns of a share. Every share packs the other operand for itself. 64 columns take 1.1
/// to 1.3 times as long as all at once, 128 columns 1.0 to 1.1 times.
constexpr std::int64_t kLeastColumns = 128;
/// Number of shares of a sum over k, if the result is small compared with the operands.
constexpr int kSums = 4;

struct Range {
  std::int64_t first, count;
};
/// Returns range i of `shards`; borders are multiples of 64.
Range shard_of(std::int64_t size, std::int64_t i, std::int64_t shards) {
  const auto border = [&](std::int64_t at) {
    return at == shards ? size : size * at / shards / 64 * 64;
  };
  return {border(i), border(i + 1) - border(i)};
}

bool is_large(const MatrixSizes& s) { return s.m * s.n * s.k >= kManyProducts && !s.b_panel; }

/// True if our kernel on packed copies computes a product of runs faster: enough rows share the
/// copy of b, which runs read anew for every three rows.
bool gains_over_runs(DType dtype, const MatrixSizes& s) {
  constexpr std::int64_t kRows = 192, kColumns = 128;
  return dtype == f32 && is_of_runs(s) && s.m >= kRows && s.n >= kColumns && is_large_f32(s) &&
         large_products_are_packed();
}

template <class T>
void sums_in_shards(DType dtype, const MatrixSizes& s, const T* a, const T* b, T* c) {
  const Scratch<T> others((kSums - 1) * s.m * s.n);
  parallel_for(kSums, [&](int i) {
    const auto [first, count] = shard_of(s.k, i, kSums);
    MatrixSizes shard = s;
    shard.k = count;
    if (i) shard.c_row = s.n, shard.add = false;
    shard.order = gains_over_runs(dtype, shard) ? SumOrder::slices : order_in_one(dtype, shard);
    product(shard, a + first * s.a_step, b + first * s.b_row,
            i ? others.get() + (i - 1) * s.m * s.n : c);
  });
  const PointwiseRows rows{
      .columns = s.n, .rows = s.m, .step = {s.c_row, s.n}, .out_step = s.c_row};
  const RowsLoop add = pointwise_table().binary[static_cast<int>(Binary::add)][column_of(dtype)];
  for (int i = 1; i < kSums; ++i) {
    const void* const in[] = {c, others.get() + (i - 1) * s.m * s.n};
    add(in, c, rows);
  }
}

bool is_summed_in_shards(const MatrixSizes& s) {
  return s.k >= 4 * std::max(s.m, s.n) && s.m * s.n <= kSmallResult;
}

/// Returns the number of shares of rows or columns. If their borders change no bits, it is at most
/// the number of threads: one thread computes the product as a whole, and packs each operand once.
/// They change bits if values are added, because sizes choose a kernel, and kernels add them first
/// or last.
std::int64_t shares_of(const MatrixSizes& s) {
  const std::int64_t most = std::min(
      {s.m * s.n * s.k / (kManyProducts / 2), kMaxShards, std::max(s.m, s.n) / kLeastColumns});
  return has_alike_rows(s.order) && !s.add ? std::min<std::int64_t>(most, threads()) : most;
}

template <class T>
void product_in_shards(DType dtype, const MatrixSizes& s, const T* a, const T* b, T* c) {
  if (s.order == SumOrder::shards) return sums_in_shards(dtype, s, a, b, c);
  const bool by_rows = s.m >= s.n;
  const std::int64_t size = by_rows ? s.m : s.n, shards = shares_of(s);
  if (shards < 2) return product(s, a, b, c);
  parallel_for(static_cast<int>(shards), [&](int i) {
    const auto [first, count] = shard_of(size, i, shards);
    MatrixSizes shard = s;
    (by_rows ? shard.m : shard.n) = count;
    product(shard, by_rows ? a + first * s.a_row : a, by_rows ? b : b + first * s.b_step,
            c + first * (by_rows ? s.c_row : 1));
  });
}

/// Returns the order of a product that is not turned.
SumOrder order_of(DType dtype, const MatrixSizes& s) {
  if (s.order != SumOrder::by_sizes) return s.order;
  return is_large(s) && is_summed_in_shards(s) ? SumOrder::shards : order_in_one(dtype, s);
}

/// True if short_product() copies an operand.
bool is_copied(DType dtype, const MatrixSizes& s) {
  if (is_float(dtype) && s.order == SumOrder::runs && can_be_of_runs(s)) return false;
  const bool is_f32 = dtype == f32;
  if (s.b_step != 1 && s.n != 1 && !(is_f32 && is_packed(s))) return true;
  return is_f32 &&
         (is_packed(s) ? !s.b_panel || s.a_step != 1 : is_large_f32(s) && large_keeps_order(s));
}

// ---- Small products -----------------------------------------------------------------------------

/// Returns the loop of a product of at most three rows and 128 terms that is one chain or of runs,
/// if its columns fit one tile, and sets its order; returns null for other products. Requires that
/// it is not turned.
template <class T>
ProductLoop<T> small_loop(MatrixSizes& s) {
  // Beyond, choosing a loop takes little of the time, and rows gain from a tile.
  constexpr std::int64_t kMaxRows = 3, kMaxTerms = 128, kMaxFactors = 256;
  static_assert(kMaxTerms <= kSlice);  // slices are then one chain
  if (s.m > kMaxRows || s.k > kMaxTerms || s.m * s.k > kMaxFactors || s.m * s.n * s.k == 0 ||
      s.b_panel || is_large(s))
    return nullptr;
  const bool is_given = s.order != SumOrder::by_sizes,
             are_runs = is_given ? s.order == SumOrder::runs && can_be_of_runs(s) : is_of_runs(s),
             is_chain = !is_given || s.order == SumOrder::chain || s.order == SumOrder::slices;
  if (!are_runs && !(is_chain && (s.b_step == 1 || s.n == 1))) return nullptr;
  s.order = are_runs ? SumOrder::runs : SumOrder::chain;
  if constexpr (std::is_same_v<T, float>)
    return table().small_f32(s);
  else
    return table().small_f64(s);
}

}  // namespace

bool takes_memory(DType dtype, const MatrixSizes& sizes) {
  MatrixSizes s = is_turned(sizes) ? turned(sizes) : sizes;
  if (s.m == 0 || s.n == 0 || s.k == 0) return false;
  s.order = order_of(dtype, s);
  if (is_large(s) && s.order == SumOrder::shards) return true;
  return (dtype == f32 && s.k > kLongestSum) || is_copied(dtype, s);
}

std::optional<SmallProduct> small_product(DType dtype, const MatrixSizes& sizes) {
  SmallProduct result;
  result.is_turned = is_turned(sizes);
  MatrixSizes s = result.is_turned ? turned(sizes) : sizes;
  if (dtype == f32)
    result.f32 = small_loop<float>(s);
  else if (dtype == f64)
    result.f64 = small_loop<double>(s);
  if (!result.f32 && !result.f64) return std::nullopt;
  result.sizes[0] = result.sizes[1] = s;
  result.sizes[0].add = false;
  result.sizes[1].add = true;
  return result;
}

SumOrder chain_order(DType dtype, const MatrixSizes& sizes) {
  return dtype == f32 && has_slices(sizes) ? SumOrder::slices : SumOrder::chain;
}

SumOrder sum_order(DType dtype, const MatrixSizes& sizes) {
  return order_of(dtype, is_turned(sizes) ? turned(sizes) : sizes);
}

std::int64_t panel_columns(DType dtype) {
  return table().panel_bytes / static_cast<std::int64_t>(size_of(dtype));
}

bool rows_are_alike(DType dtype, const MatrixSizes& sizes, std::int64_t rows) {
  if (sizes.add) return false;  // our chains start from the value in c, oneDNN adds it last
  MatrixSizes some = sizes;
  some.m = rows;
  const SumOrder order = sum_order(dtype, sizes);
  return has_alike_rows(order) && order == sum_order(dtype, some);
}

void multiply(DType dtype, const MatrixSizes& sizes, const void* a, const void* b, void* c) {
  visit(dtype, [&](auto zero) {
    using T = decltype(zero);
    const T *from_a = static_cast<const T*>(a), *from_b = static_cast<const T*>(b);
    T* const to = static_cast<T*>(c);
    MatrixSizes s = sizes;
    if constexpr (std::is_same_v<T, bool>) {
      throw InternalError("a product of booleans");
    } else {
      if (s.m == 0 || s.n == 0) return;
      if (s.k == 0) {
        for (std::int64_t i = 0; i < s.m && !s.add; ++i) std::fill_n(to + i * s.c_row, s.n, T(0));
        return;
      }
      if (is_turned(s)) {
        std::swap(from_a, from_b);
        s = turned(s);
      }
      if constexpr (std::is_floating_point_v<T>)
        if (const auto loop = small_loop<T>(s)) return loop(s, from_a, from_b, to);
      s.order = order_of(dtype, s);
      if (is_large(s))
        product_in_shards(dtype, s, from_a, from_b, to);
      else
        product(s, from_a, from_b, to);
    }
  });
}

}  // namespace reel
