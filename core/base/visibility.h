// core/base/visibility.h — REEL_API: the names that a shared library of Reel exports.
#pragma once

/// Marks one declaration as exported. The library is compiled with hidden visibility.
#define REEL_API __attribute__((visibility("default")))

/// Marks all declarations up to REEL_API_END as exported; both stand outside of namespaces.
///
/// Every public header has the pair, so inline functions, templates and types of exceptions are the
/// same objects in the library and in programs, also if a program is compiled with hidden
/// visibility. An attribute of the namespace cannot replace the pragma: clang does not apply it to
/// functions defined outside of the namespace block, and nested namespaces accept no attribute.
#define REEL_API_BEGIN _Pragma("GCC visibility push(default)")
#define REEL_API_END _Pragma("GCC visibility pop")
