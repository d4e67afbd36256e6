// Large products by oneDNN, or by our own kernel, if that is faster.
#include <dnnl.h>

#include <algorithm>
#include <new>
#include <optional>
#include <vector>

#include "reel/core/base/errors.h"
#include "reel/core/base/str.h"
#include "reel/core/ops/kernels/isa.h"
#include "reel/core/ops/kernels/quiet_exceptions.h"
#include "reel/core/ops/products/large_product.h"
#include "reel/core/ops/products/one_thread.h"
#include "reel/core/ops/products/scratch.h"
#include "reel/core/ops/shape/strided.h"

namespace reel {
namespace {

void slice_by_onednn(const MatrixSizes& s, const float* a, const float* b, float* c) {
  // With a single row or column the step is arbitrary, and may be below oneDNN's minimum.
  const bool is_transposed = s.a_step != 1;
  const std::int64_t a_row = is_transposed ? std::max(s.a_step, s.m) : std::max(s.a_row, s.k);
  instruction_set();            // limits oneDNN too, before it is called
  const OneThread one_thread;   // it would use all of OpenMP's; multiply() has its own shares
  const QuietExceptions quiet;  // it multiplies by zeros in lanes behind the last column
  const dnnl_status_t status =
      dnnl_sgemm(is_transposed ? 'T' : 'N', 'N', s.m, s.n, s.k, 1.0f, a, a_row, b,
                 std::max(s.b_row, s.n), s.add ? 1.0f : 0.0f, c, std::max(s.c_row, s.n));
  if (status == dnnl_out_of_memory) throw std::bad_alloc();
  if (status != dnnl_success)
    throw InternalError(str("dnnl_sgemm failed with status ", static_cast<int>(status)));
}

/// Returns true if oneDNN's product has the bits of our chains for these sizes.
bool has_chains(std::int64_t m, std::int64_t n, std::int64_t k, bool is_transposed) {
  std::vector<float> a(m * k), b(k * n), ours(m * n), theirs(m * n);
  const auto fill = [](std::vector<float>& all, std::uint32_t seed) {
    for (float& x : all) x = static_cast<float>((seed = seed * 1664525 + 1013904223) >> 8) - 8e6f;
  };
  fill(a, 1);
  fill(b, 2);
  const MatrixSizes sizes{.m = m,
                          .n = n,
                          .k = k,
                          .a_row = is_transposed ? 1 : k,
                          .a_step = is_transposed ? m : 1,
                          .b_row = n,
                          .b_step = 1,
                          .c_row = n};
  for_this_processor(REEL_TABLES(products)).rows_f32(sizes, a.data(), b.data(), ours.data());
  slice_by_onednn(sizes, a.data(), b.data(), theirs.data());
  return ours == theirs;
}

/// Tried once at run time, since oneDNN documents no order and has other kernels for other
/// processors. Tries a few large matrices, which it copies, and small ones, with and without
/// remaining rows and columns.
bool onednn_keeps_chains() {
  static const bool result = has_chains(24, 96, kSlice, false) &&
                             has_chains(43, 281, kSlice, false) && has_chains(40, 128, 200, true) &&
                             has_chains(535, 541, 24, false) && has_chains(535, 541, 24, true);
  return result;
}

void product_of_onednn(const MatrixSizes& s, const float* a, const float* b, float* c) {
  const bool is_copied = s.a_step != 1 && s.a_row != 1;
  MatrixSizes slice = s;
  slice.k = s.order == SumOrder::slices ? std::min(kSlice, s.k) : s.k;
  std::optional<Scratch<float>> copy;  // of one slice, which may stay in the second-level cache
  if (is_copied) copy.emplace(s.m * slice.k);
  for (std::int64_t k = 0; k < s.k; k += slice.k) {
    slice.k = std::min(slice.k, s.k - k);
    const float* from = a + k * s.a_step;
    if (is_copied) {
      copy_strided(sizeof(float), {{s.m, slice.k, s.a_row}, {slice.k, 1, s.a_step}}, copy->get(),
                   from);
      from = copy->get();
      slice.a_row = slice.k;
      slice.a_step = 1;
    }
    slice_by_onednn(slice, from, b + k * s.b_row, c);
    slice.add = true;
  }
}

}  // namespace

void large_product(const MatrixSizes& s, const float* a, const float* b, float* c) {
  if (large_products_are_packed())
    run_packed(avx2::packed_f32, s, a, b, c);
  else
    product_of_onednn(s, a, b, c);
}

bool large_products_are_chains() { return large_products_are_packed() || onednn_keeps_chains(); }

bool large_products_are_packed() {
  static const bool result = instruction_set() == "avx2";
  return result;
}

}  // namespace reel
