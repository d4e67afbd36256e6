// core/ops/kernels/quiet_exceptions.h — QuietExceptions, for calls of code that computes on lanes
// that are not there.
#pragma once

#if defined(__SSE2__)
#include <immintrin.h>
#else
#include <cfenv>
#endif

namespace reel {

/// While it lives, floating-point exceptions of this thread trap nothing; those raised meanwhile
/// are forgotten. Costs about 10 ns.
class QuietExceptions {
 public:
  QuietExceptions(const QuietExceptions&) = delete;
  QuietExceptions& operator=(const QuietExceptions&) = delete;
#if defined(__SSE2__)
  QuietExceptions() : before_(_mm_getcsr()) { _mm_setcsr(before_ | _MM_MASK_MASK); }
  ~QuietExceptions() { _mm_setcsr(before_); }

 private:
  unsigned before_;
#else
  QuietExceptions() { std::feholdexcept(&before_); }
  ~QuietExceptions() { std::fesetenv(&before_); }

 private:
  std::fenv_t before_;
#endif
};

}  // namespace reel
