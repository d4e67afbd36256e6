// The only file of the library that includes pocketfft. Lines are transformed in groups, one in
// each element of a vector. A last group that is not full is transformed line by line, by the same
// operations.
#include "reel/core/ops/transforms/lines.h"

#include <algorithm>
#include <list>
#include <memory>
#include <mutex>
#include <type_traits>
#include <utility>

#define POCKETFFT_NO_MULTITHREADING
#define POCKETFFT_CACHE_SIZE 0
#define pocketfft reel_pocketfft  // a program may have another copy, with other settings
#include <pocketfft_hdronly.h>
#undef pocketfft

namespace reel {
namespace {

namespace fft = reel_pocketfft::detail;

constexpr std::size_t kMaxPlans = 16;  // of each kind, as many as SciPy keeps
/// The sum of the sizes of kept plans: a plan has 8 to 100 bytes for each element. Making one takes
/// a tenth of the time of a line of 2^20 elements, and as long as the line if the size is prime.
constexpr std::int64_t kMaxKeptElements = std::int64_t{1} << 20;

/// Returns the plan for a size: factors of it, and numbers of the unit circle. Keeps the last ones,
/// except large ones. Thread-safe.
template <class Plan>
std::shared_ptr<const Plan> plan_for(std::int64_t size) {
  struct Kept {
    std::mutex mutex;
    std::list<std::pair<std::int64_t, std::shared_ptr<const Plan>>> plans;  // the latest first
    std::int64_t elements = 0;                                              // of all plans
  };
  static Kept& kept = *new Kept;
  const auto find = [&] {
    const auto found = std::ranges::find(kept.plans, size, [](auto& plan) { return plan.first; });
    if (found == kept.plans.end()) return std::shared_ptr<const Plan>();
    kept.plans.splice(kept.plans.begin(), kept.plans, found);
    return found->second;
  };
  {
    const std::lock_guard lock(kept.mutex);
    if (auto plan = find()) return plan;
  }
  auto made = std::make_shared<const Plan>(static_cast<std::size_t>(size));
  if (size > kMaxKeptElements) return made;
  const std::lock_guard lock(kept.mutex);
  if (auto plan = find()) return plan;
  kept.plans.emplace_front(size, made);
  kept.elements += size;
  while (kept.plans.size() > kMaxPlans || kept.elements > kMaxKeptElements) {
    kept.elements -= kept.plans.back().first;
    kept.plans.pop_back();
  }
  return made;
}

/// An element of a vector, as a number of its own.
template <class T, class V>
T& lane(V& values, std::size_t i) {
  if constexpr (std::is_same_v<T, V>)
    return values;
  else
    return reinterpret_cast<T*>(&values)[i];
}

/// Calls fn(buffer, places, count) for groups of lines: a buffer of V, and the number of the first
/// element of each line on both sides. from, to: elements of a line.
template <class V, class T, class Fn>
void for_groups(const AxisView& view, std::int64_t from, std::int64_t to, std::int64_t first,
                std::int64_t end, fft::arr<V>& buffer, Fn&& fn) {
  constexpr std::size_t kLanes = sizeof(V) / sizeof(T);
  std::int64_t in[kLanes], out[kLanes];
  for (std::int64_t line = first; line < end; line += static_cast<std::int64_t>(kLanes)) {
    for (std::size_t i = 0; i < kLanes; ++i) {
      const std::int64_t at = line + static_cast<std::int64_t>(i);
      in[i] = at / view.inner * from * view.inner + at % view.inner;
      out[i] = at / view.inner * to * view.inner + at % view.inner;
    }
    fn(buffer.data(), in, out);
  }
}

#ifdef POCKETFFT_NO_VECTORS
template <class T>
using VectorOf = T;
#else
template <class T>
using VectorOf = fft::vtype_t<T>;
#endif

/// Calls run(V{}, first, end) for the lines in full groups, and for those left over.
template <class T, class Run>
void in_groups(std::int64_t lines, Run&& run) {
  constexpr std::int64_t kLanes = sizeof(VectorOf<T>) / sizeof(T);
  const std::int64_t full = lines / kLanes * kLanes;
  if (full > 0) run(std::type_identity<VectorOf<T>>(), std::int64_t{0}, full);
  if (full < lines) run(std::type_identity<T>(), full, lines);
}

}  // namespace

// pocketfft's order of a spectrum is FFTPACK's: re[0], re[1], im[1], re[2], im[2], ...

template <class T>
void rfft_lines(const AxisView& view, TransformFactors factors, const T* x, T* re, T* im) {
  const auto plan = plan_for<fft::pocketfft_r<T>>(view.size);
  const std::int64_t n = view.size, bins = n / 2 + 1, step = view.inner;
  const T scale = static_cast<T>(factors.scale), middle = static_cast<T>(factors.middle);
  in_groups<T>(view.outer * view.inner, [&]<class V>(std::type_identity<V>, auto first, auto end) {
    fft::arr<V> buffer(static_cast<std::size_t>(n));
    for_groups<V, T>(view, n, bins, first, end, buffer, [&](V* values, auto& in, auto& out) {
      constexpr std::size_t kLanes = sizeof(V) / sizeof(T);
      for (std::int64_t j = 0; j < n; ++j)
        for (std::size_t i = 0; i < kLanes; ++i) lane<T>(values[j], i) = x[in[i] + j * step];
      plan->exec(values, scale, true);
      for (std::size_t i = 0; i < kLanes; ++i) {
        const std::int64_t at = out[i];
        re[at] = lane<T>(values[0], i);
        im[at] = 0;
        for (std::int64_t k = 1; 2 * k < n; ++k) {
          re[at + k * step] = middle * lane<T>(values[2 * k - 1], i);
          im[at + k * step] = middle * lane<T>(values[2 * k], i);
        }
        if (n % 2 == 0) {
          re[at + n / 2 * step] = lane<T>(values[n - 1], i);
          im[at + n / 2 * step] = 0;
        }
      }
    });
  });
}

// pocketfft counts the frequencies between 0 and n/2 twice, for their conjugates.
template <class T>
void irfft_lines(const AxisView& view, TransformFactors factors, const T* re, const T* im, T* x) {
  const auto plan = plan_for<fft::pocketfft_r<T>>(view.size);
  const std::int64_t n = view.size, bins = n / 2 + 1, step = view.inner;
  const T scale = static_cast<T>(factors.scale), middle = static_cast<T>(factors.middle / 2);
  in_groups<T>(view.outer * view.inner, [&]<class V>(std::type_identity<V>, auto first, auto end) {
    fft::arr<V> buffer(static_cast<std::size_t>(n));
    for_groups<V, T>(view, bins, n, first, end, buffer, [&](V* values, auto& in, auto& out) {
      constexpr std::size_t kLanes = sizeof(V) / sizeof(T);
      for (std::size_t i = 0; i < kLanes; ++i) {
        const std::int64_t at = in[i];
        lane<T>(values[0], i) = re[at];
        for (std::int64_t k = 1; 2 * k < n; ++k) {
          lane<T>(values[2 * k - 1], i) = middle * re[at + k * step];
          lane<T>(values[2 * k], i) = middle * im[at + k * step];
        }
        if (n % 2 == 0) lane<T>(values[n - 1], i) = re[at + n / 2 * step];
      }
      plan->exec(values, scale, false);
      for (std::int64_t j = 0; j < n; ++j)
        for (std::size_t i = 0; i < kLanes; ++i) x[out[i] + j * step] = lane<T>(values[j], i);
    });
  });
}

template <class T>
void fft_lines(const AxisView& view, bool is_inverse, double scale, const T* re, const T* im,
               T* to_re, T* to_im) {
  const auto plan = plan_for<fft::pocketfft_c<T>>(view.size);
  const std::int64_t n = view.size, step = view.inner;
  in_groups<T>(view.outer * view.inner, [&]<class V>(std::type_identity<V>, auto first, auto end) {
    fft::arr<V> buffer(static_cast<std::size_t>(2 * n));
    for_groups<V, T>(view, n, n, first, end, buffer, [&](V* values, auto& in, auto&) {
      constexpr std::size_t kLanes = sizeof(V) / sizeof(T);
      auto* const numbers = reinterpret_cast<fft::cmplx<V>*>(values);
      for (std::int64_t j = 0; j < n; ++j)
        for (std::size_t i = 0; i < kLanes; ++i) {
          lane<T>(numbers[j].r, i) = re[in[i] + j * step];
          lane<T>(numbers[j].i, i) = im[in[i] + j * step];
        }
      plan->exec(numbers, static_cast<T>(scale), !is_inverse);
      for (std::int64_t j = 0; j < n; ++j)
        for (std::size_t i = 0; i < kLanes; ++i) {
          to_re[in[i] + j * step] = lane<T>(numbers[j].r, i);
          to_im[in[i] + j * step] = lane<T>(numbers[j].i, i);
        }
    });
  });
}

#define REEL_LINES(T)                                                                   \
  template void rfft_lines(const AxisView&, TransformFactors, const T*, T*, T*);        \
  template void irfft_lines(const AxisView&, TransformFactors, const T*, const T*, T*); \
  template void fft_lines(const AxisView&, bool, double, const T*, const T*, T*, T*)
REEL_LINES(float);
REEL_LINES(double);
#undef REEL_LINES

}  // namespace reel
