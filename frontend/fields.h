// frontend/fields.h — the fields of a struct: how many it has, references to them, and their names.
//
// Boost.PFR 1.81 makes the references. It knows no names; and its counting of fields searches up to
// eight times the size of the struct, and crashes GCC 12 where the first field is a std::array
// without a default.
#pragma once

#include <boost/pfr/detail/core17_generated.hpp>
#include <cstddef>
#include <string_view>
#include <type_traits>
#include <utility>

namespace reel::detail {

/// Converts to whatever a field is, without being called; only the second kind to what cannot be
/// copied.
struct AnyField {
  std::size_t unused;
  template <class T>
  operator T&() const&& noexcept;
  template <class T>
  operator T&() const& noexcept;  // for fields that take one argument of any type
};
struct AnyMoveOnlyField {
  std::size_t unused;
  template <class T>
  operator T() const&& noexcept;
};

/// Converts to a base class of T only, without being called.
template <class T>
struct AnyBaseOf {
  template <class Base>
  requires(std::is_base_of_v<Base, T> && !std::is_same_v<Base, T>) operator Base() const noexcept;
};
/// True for an aggregate with a base class, whose fields cannot be told apart.
template <class T>
inline constexpr bool kHasBase = requires {
  T{AnyBaseOf<T>{}};
};

template <class T, std::size_t... I>
constexpr bool can_be_made_of(std::index_sequence<I...>) {
  using Any = std::conditional_t<std::is_copy_constructible_v<T>, AnyField, AnyMoveOnlyField>;
  return requires { T{Any{I}...}; };
}

/// As many as can be given at once, and no more. Fewer than that cannot be given where later fields
/// have no default.
template <class T, std::size_t N = 1, std::size_t kFound = 0>
constexpr std::size_t count_fields() {
  constexpr std::size_t kMost = 100;  // that PFR makes references to
  if constexpr (can_be_made_of<T>(std::make_index_sequence<N>()))
    return count_fields<T, N + 1, N>();
  else if constexpr (kFound == 0 && N < kMost && N < sizeof(T))
    return count_fields<T, N + 1>();
  else
    return kFound;
}
template <class T>
inline constexpr std::size_t kFieldCount = count_fields<std::remove_const_t<T>>();

template <class T, std::size_t... I, std::size_t... J>
constexpr bool can_be_made_with_braces_at(std::index_sequence<I...>, std::index_sequence<J...>) {
  using Any = std::conditional_t<std::is_copy_constructible_v<T>, AnyField, AnyMoveOnlyField>;
  return requires { T{Any{I}..., {Any{0}}, Any{J}...}; };
}
/// A field that takes several of those things unless it has braces of its own is a C array.
template <class T, std::size_t... I>
constexpr bool has_c_array(std::index_sequence<I...>) {
  constexpr std::size_t kCount = sizeof...(I);
  return ((can_be_made_with_braces_at<T>(std::make_index_sequence<I>(), std::index_sequence<>()) &&
           !can_be_made_with_braces_at<T>(std::make_index_sequence<I>(),
                                          std::make_index_sequence<kCount - 1 - I>())) ||
          ...);
}
template <class T>
inline constexpr bool kHasCArray =
    has_c_array<std::remove_const_t<T>>(std::make_index_sequence<kFieldCount<T>>());

/// Field I of an aggregate.
template <std::size_t I, class T>
constexpr auto& field(T& object) {
  namespace pfr = boost::pfr::detail;
  return pfr::sequence_tuple::get<I>(pfr::tie_as_tuple(object, pfr::size_t_<kFieldCount<T>>{}));
}

/// An object of T that is never made: only the addresses of its fields are used, as template
/// arguments.
template <class T>
union NeverMade {
  char unused;
  T value;
  constexpr NeverMade() : unused() {}
  ~NeverMade() {}
};
template <class T>
struct NeverMadeObject {
  static inline NeverMade<T> object{};
};

template <class T, std::size_t I>
constexpr auto field_address() {
  return &field<I>(NeverMadeObject<T>::object.value);
}

template <auto Address>
constexpr std::string_view name_at_address() {
  // GCC prints [with auto Address = (& ...value.State::h); ...], Clang [Address = &...value.h].
  std::string_view text = __PRETTY_FUNCTION__;
  text = text.substr(0, text.find_first_of(";]", text.find("Address = ")));
  const std::size_t end = text.find_last_not_of(")");
  text = text.substr(0, end + 1);
  return text.substr(text.find_last_of(":.") + 1);
}

/// A constant: searching for the name took a tenth of the time of small loops in eager mode, which
/// flatten their state in every iteration.
template <auto Address>
inline constexpr std::string_view kNameAtAddress = name_at_address<Address>();

/// The name of field I of the aggregate T.
template <class T, std::size_t I>
constexpr std::string_view field_name() {
  return kNameAtAddress<field_address<T, I>()>;
}

}  // namespace reel::detail
