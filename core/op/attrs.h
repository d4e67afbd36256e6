// core/op/attrs.h — typed attributes of ops: they can be hashed, compared and printed, and their
// dims can be substituted.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <functional>
#include <optional>
#include <ostream>
#include <string>
#include <type_traits>
#include <vector>

#include "reel/core/base/ref.h"
#include "reel/core/base/str.h"
#include "reel/core/base/visibility.h"
#include "reel/core/dims/dim_env.h"
#include "reel/core/types/tensor.h"

REEL_API_BEGIN
namespace reel {

/// Attributes of one application of an op. Immutable and shared; owned by reference counts.
struct Attrs : RefCounted {
  virtual ~Attrs() = default;
  virtual std::size_t hash() const = 0;
  virtual bool equals(const Attrs& other) const = 0;
  virtual void print(std::ostream& out) const = 0;
  /// Returns these attributes with every symbol replaced by the dim that it stands for.
  virtual Ref<const Attrs> resolve(DimEnv& env) const = 0;
  virtual void each_symbol(const std::function<void(const Dim&)>& fn) const = 0;
  static void destroy(const Attrs* attrs) { delete attrs; }
};
using AttrsRef = Ref<const Attrs>;

namespace attr {

// Functions for fields that are attributes themselves.
inline std::size_t hash_of(const AttrsRef& attrs) { return attrs->hash(); }
inline bool same(const AttrsRef& a, const AttrsRef& b) { return a->equals(*b); }
inline void print(std::ostream& out, const AttrsRef& attrs) { attrs->print(out); }
inline AttrsRef resolve(const AttrsRef& attrs, DimEnv& env) { return attrs->resolve(env); }
inline void each_symbol(const AttrsRef& attrs, const std::function<void(const Dim&)>& fn) {
  attrs->each_symbol(fn);
}

inline std::size_t mix(std::size_t seed, std::size_t value) {
  return (seed ^ value) * 0x9E3779B97F4A7C15ull + (seed >> 29);
}

// A field type needs hash_of, print, resolve and each_symbol. Overloads for common types and for
// structs with `fields` follow; SubGraph defines its own.
template <class T>
requires std::is_arithmetic_v<T> || std::is_enum_v<T> std::size_t hash_of(T value) {
  return std::hash<T>{}(value);
}
// Numbers are compared by their bits: zeros of different sign differ, and NaN equals itself.
inline std::size_t hash_of(double number) {
  return std::hash<std::uint64_t>{}(std::bit_cast<std::uint64_t>(number));
}
inline std::size_t hash_of(const std::string& text) { return std::hash<std::string>{}(text); }
/// A struct that lists its members as AttrsOf requires; as a field it is treated member by member.
template <class T>
concept HasFields = requires {
  T::fields([](const char*, auto) {});
};
template <HasFields T>
std::size_t hash_of(const T& value);
template <HasFields T>
void print(std::ostream& out, const T& value);
template <HasFields T>
void print(std::ostream& out, const std::vector<T>& items);
template <HasFields T>
T resolve(const T& value, DimEnv& env);
template <HasFields T>
void each_symbol(const T& value, const std::function<void(const Dim&)>& fn);

inline std::size_t hash_of(const Dim& dim) { return dim.hash(); }
inline std::size_t hash_of(const TensorType& type) { return type.node()->hash; }
inline std::size_t hash_of(const Tensor& tensor) {
  return reinterpret_cast<std::size_t>(tensor.block()) >> 6;
}
template <class T>
std::size_t hash_of(const std::vector<T>& items) {
  std::size_t result = items.size();
  for (const auto& item : items) result = mix(result, hash_of(static_cast<const T&>(item)));
  return result;
}
template <class T>
std::size_t hash_of(const std::optional<T>& item) {
  return item ? mix(1, hash_of(*item)) : 0;
}

template <class T>
bool same(const T& a, const T& b) {
  return a == b;
}
template <HasFields T>
bool same(const T& a, const T& b);
template <HasFields T>
bool same(const std::vector<T>& a, const std::vector<T>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (!same(a[i], b[i])) return false;
  return true;
}
inline bool same(double a, double b) {
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}
inline bool same(const Tensor& a, const Tensor& b) { return a.block() == b.block(); }

template <class T>
void print(std::ostream& out, const T& value) {
  if constexpr (std::is_enum_v<T> && !std::is_same_v<T, DType>)
    out << static_cast<int>(value);
  else if constexpr (std::is_same_v<T, bool>)
    out << (value ? "true" : "false");
  else
    out << value;
}
template <class T>
void print(std::ostream& out, const std::vector<T>& items) {
  out << '[';
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i) out << ',';
    print(out, static_cast<const T&>(items[i]));
  }
  out << ']';
}
template <class T>
void print(std::ostream& out, const std::optional<T>& item) {
  if (item)
    print(out, *item);
  else
    out << "none";
}

template <class T>
T resolve(const T& value, DimEnv& env) {
  if constexpr (std::is_same_v<T, Dim> || std::is_same_v<T, TensorType>)
    return env.resolve(value);
  else
    return value;
}
template <class T>
std::vector<T> resolve(const std::vector<T>& items, DimEnv& env) {
  std::vector<T> result;
  result.reserve(items.size());
  for (const auto& item : items) result.push_back(resolve(static_cast<const T&>(item), env));
  return result;
}
template <class T>
std::optional<T> resolve(const std::optional<T>& item, DimEnv& env) {
  if (!item) return item;
  return resolve(*item, env);
}

using SymbolFn = std::function<void(const Dim&)>;
template <class T>
void each_symbol(const T& value, const SymbolFn& fn) {
  if constexpr (std::is_same_v<T, Dim> || std::is_same_v<T, TensorType>) for_each_symbol(value, fn);
}
template <class T>
void each_symbol(const std::vector<T>& items, const SymbolFn& fn) {
  for (const auto& item : items) each_symbol(static_cast<const T&>(item), fn);
}
template <class T>
void each_symbol(const std::optional<T>& item, const SymbolFn& fn) {
  if (item) each_symbol(*item, fn);
}

template <HasFields T>
std::size_t hash_of(const T& value) {
  std::size_t result = 17;
  T::fields([&](const char*, auto member) { result = mix(result, hash_of(value.*member)); });
  return result;
}
template <HasFields T>
bool same(const T& a, const T& b) {
  bool result = true;
  T::fields([&](const char*, auto member) { result = result && same(a.*member, b.*member); });
  return result;
}
/// Prints the members that differ from the members of T{}.
template <HasFields T>
void print(std::ostream& out, const T& value) {
  const T usual{};
  const char* before = "";
  out << '{';
  T::fields([&](const char* name, auto member) {
    if (same(value.*member, usual.*member)) return;
    out << before << name << '=';
    print(out, value.*member);
    before = ", ";
  });
  out << '}';
}
/// Prints the number of elements. AttrsOf prints the elements behind all fields.
template <HasFields T>
void print(std::ostream& out, const std::vector<T>& items) {
  out << items.size();
}
/// Prints `, name=[...]` if some element differs from T{}; nothing for other types.
template <class T>
void print_elements(std::ostream&, const char*, const T&) {}
template <HasFields T>
void print_elements(std::ostream& out, const char* name, const std::vector<T>& items) {
  const T usual{};
  if (std::all_of(items.begin(), items.end(), [&](const T& item) { return same(item, usual); }))
    return;
  out << ", " << name << "=[";
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i) out << ',';
    print(out, items[i]);
  }
  out << ']';
}
template <HasFields T>
T resolve(const T& value, DimEnv& env) {
  T copy = value;
  T::fields([&](const char*, auto member) { copy.*member = resolve(value.*member, env); });
  return copy;
}
template <HasFields T>
void each_symbol(const T& value, const SymbolFn& fn) {
  T::fields([&](const char*, auto member) { each_symbol(value.*member, fn); });
}

}  // namespace attr

/// Attributes stored as a plain struct T, which lists its fields:
///
///   template <class F> static void fields(F&& f) { f("axes", &SumAttrs::axes); }
template <class T>
struct AttrsOf final : Attrs {
  T value;
  explicit AttrsOf(T given) : value(std::move(given)) {}

  std::size_t hash() const override {
    using attr::hash_of;  // and, by argument-dependent lookup, the overloads next to a field's type
    std::size_t result = 17;
    T::fields(
        [&](const char*, auto member) { result = attr::mix(result, hash_of(value.*member)); });
    return result;
  }
  bool equals(const Attrs& other) const override {
    const auto* same_kind = dynamic_cast<const AttrsOf*>(&other);
    if (!same_kind) return false;
    bool result = true;
    T::fields([&](const char*, auto member) {
      result = result && attr::same(value.*member, same_kind->value.*member);
    });
    return result;
  }
  void print(std::ostream& out) const override {
    const char* before = "";
    T::fields([&](const char* name, auto member) {
      out << before << name << '=';
      attr::print(out, value.*member);
      before = ", ";
    });
    T::fields(
        [&](const char* name, auto member) { attr::print_elements(out, name, value.*member); });
  }
  AttrsRef resolve(DimEnv& env) const override {
    using attr::resolve;
    T copy = value;
    T::fields([&](const char*, auto member) { copy.*member = resolve(value.*member, env); });
    return AttrsRef(new AttrsOf(std::move(copy)));
  }
  void each_symbol(const std::function<void(const Dim&)>& fn) const override {
    using attr::each_symbol;
    T::fields([&](const char*, auto member) { each_symbol(value.*member, fn); });
  }
};

template <class T>
AttrsRef make_attrs(T value) {
  return AttrsRef(new AttrsOf<T>(std::move(value)));
}
template <class T>
const T& get(const Attrs* attrs) {
  return static_cast<const AttrsOf<T>*>(attrs)->value;
}

}  // namespace reel
REEL_API_END
