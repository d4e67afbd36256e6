// core/runtime/isa_list.h — the instruction sets that kernels are compiled for, one list per
// architecture.
//
// cmake/ReelInstructionSets.cmake has the same lists with the compiler's flags. A set's name is the
// namespace of its kernels. Table headers of core/ops/kernels include this file, so it must define
// no function.
#pragma once

// REEL_FOR_EACH_ISA(macro, arguments...): macro(set, arguments...) for each set, the lowest first.
// Each includes the instructions of the sets before it.
#if defined(__x86_64__)
#define REEL_FOR_EACH_ISA(macro, ...) \
  macro(sse42, __VA_ARGS__) macro(avx2, __VA_ARGS__) macro(avx512, __VA_ARGS__)
#elif defined(__aarch64__)
#define REEL_FOR_EACH_ISA(macro, ...) macro(neon, __VA_ARGS__)
#else
#error "Reel has kernels for x86-64 and aarch64"
#endif

// Declares a table of kernels in the namespace of each set.
#define REEL_DECLARE_TABLES(type, name) REEL_FOR_EACH_ISA(REEL_DECLARE_TABLE_, type, name)
#define REEL_DECLARE_TABLE_(isa, type, name) \
  namespace isa {                            \
  extern const type name;                    \
  }

// Initialises an array of pointers to these tables, the lowest set first.
#define REEL_TABLES(name) \
  { REEL_FOR_EACH_ISA(REEL_ADDRESS_OF_TABLE_, name) }
#define REEL_ADDRESS_OF_TABLE_(isa, name) &isa::name,
