// Rules for generic functions: one jit serves arguments of several C++ types. Each call is compared
// with the function itself. It reads each leaf once, so gradients add up in one order.
#include <array>
#include <tuple>

#include "reel/core/base/errors.h"
#include "reel/core/options/checkpoint_policy.h"
#include "reel/frontend/jit.h"
#include "reel/tests/fuzz/program/families.h"
#include "reel/tests/fuzz/program/typing.h"

namespace reel::fuzz {

Rules generic_rules() {
  const Typing one = unary(Element::real, Element::real);
  return {
      // Leaves of equal types in different aggregates.
      expression(REEL_EXPRESSION([&](auto f) {
                   const auto jitted = jit(f, {.executor = Executor::interpreter});
                   const auto call = [&](const auto& s) {
                     const Tensor t = jitted(s), u = f(s);
                     if (!t.is_traced() && !all(t == u || isnan(u)).template item<bool>())
                       throw ArgumentError("jit: the trace of another type");
                     return t;
                   };
                   return call(std::pair{a, sin(a)}) + call(std::tuple{a, sin(a)}) +
                          call(std::array{a, sin(a)});
                 }([]<class T>(const T& s) {
                   if constexpr (std::is_same_v<T, std::pair<Tensor, Tensor>>)
                     return std::get<0>(s) * std::get<1>(s);
                   else if constexpr (std::is_same_v<T, std::tuple<Tensor, Tensor>>)
                     return std::get<0>(s) - std::get<1>(s);
                   else
                     return tanh(std::get<1>(s));
                 })),
                 3, one),
      // Equal numbers of several types, and texts.
      expression(REEL_EXPRESSION([&](auto f) {
                   const auto jitted = jit(f, {.executor = Executor::interpreter});
                   const auto call = [&](const auto& kind) {
                     const Tensor t = jitted(a, kind), u = f(a, kind);
                     if (!t.is_traced() && !all(t == u || isnan(u)).template item<bool>())
                       throw ArgumentError("jit: the trace of another type");
                     return t;
                   };
                   return call(1) + call(true) + call(Saving(1)) + call(std::string("1")) +
                          call(std::string("1;1"));
                 }([]<class T>(const Tensor& t, const T& kind) {
                   if constexpr (std::is_same_v<T, bool>)
                     return square(t);
                   else if constexpr (std::is_same_v<T, std::string>)
                     return t * (1.0 + 0.25 * double(kind.size()));
                   else
                     return std::is_same_v<T, int> ? sin(t) : cos(t);
                 })),
                 3, one),
  };
}

}  // namespace reel::fuzz
