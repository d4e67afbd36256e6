// core/runtime/denormals.h — DenormalMode, whether a thread flushes denormal numbers to zero.
#pragma once

#if defined(__SSE2__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <cstdint>
#endif

namespace reel {

/// How this thread's processor treats denormal numbers (f32 below 1.2e-38). An x86 processor takes
/// some 150 cycles for an operation that reads or makes one. Cotangents of long sequences become
/// that small, and stay so for all earlier time steps.
class DenormalMode {
 public:
#if defined(__SSE2__)
  static DenormalMode now() { return DenormalMode(_mm_getcsr() & kFlush); }
  static DenormalMode flushing() { return DenormalMode(kFlush); }
  void set() const { _mm_setcsr((_mm_getcsr() & ~kFlush) | bits_); }
  bool operator==(const DenormalMode&) const = default;

 private:
  static constexpr unsigned kFlush = 0x8040;  ///< results (FTZ) and operands (DAZ)
  explicit DenormalMode(unsigned bits) : bits_(bits) {}
  unsigned bits_;
#elif defined(__aarch64__)
  static DenormalMode now() {
    std::uint64_t all;
    asm volatile("mrs %0, fpcr" : "=r"(all));
    return DenormalMode(all & kFlush);
  }
  static DenormalMode flushing() { return DenormalMode(kFlush); }
  void set() const {
    std::uint64_t all;
    asm volatile("mrs %0, fpcr" : "=r"(all));
    asm volatile("msr fpcr, %0" : : "r"((all & ~kFlush) | bits_));
  }
  bool operator==(const DenormalMode&) const = default;

 private:
  static constexpr std::uint64_t kFlush = std::uint64_t{1} << 24;
  explicit DenormalMode(std::uint64_t bits) : bits_(bits) {}
  std::uint64_t bits_;
#else
  static DenormalMode now() { return {}; }
  static DenormalMode flushing() { return {}; }
  void set() const {}
  bool operator==(const DenormalMode&) const = default;
#endif
};

/// Sets a mode for this thread; the destructor restores the previous mode.
class DenormalScope {
 public:
  explicit DenormalScope(const DenormalMode& mode) : before_(DenormalMode::now()) {
    if (!(mode == before_)) mode.set();
  }
  ~DenormalScope() {
    if (!(DenormalMode::now() == before_)) before_.set();
  }
  DenormalScope(const DenormalScope&) = delete;
  DenormalScope& operator=(const DenormalScope&) = delete;

 private:
  const DenormalMode before_;
};

}  // namespace reel
