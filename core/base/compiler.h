// core/base/compiler.h — ends the compilation if the compiler or its options do not fit Reel.
#pragma once

// After an #error, compilers go on and print hundreds of further errors. A header that is not there
// ends them.
#if __cplusplus < 202002L
#error "Reel needs C++20: compile with -std=c++20"
#include <ends_after_the_error_above>
#elif !defined(__cpp_exceptions)
#error "Reel needs exceptions: compile without -fno-exceptions"
#include <ends_after_the_error_above>
#elif !defined(__cpp_rtti)
#error "Reel needs run-time type information: compile without -fno-rtti"
#include <ends_after_the_error_above>
#endif
