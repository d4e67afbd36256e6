// frontend/tree/fields.h — counts, references and names of a struct's fields.
//
// Boost.PFR 1.81 makes the references. It does not give names. Its own field counting tries up to
// eight times the size of the struct. It also crashes GCC 12 if the first field is a std::array
// without a default. Therefore the counting is done here.
#pragma once

#include <boost/pfr/detail/core17_generated.hpp>
#include <cstddef>
#include <string_view>
#include <type_traits>
#include <utility>

#include "reel/core/base/visibility.h"

REEL_API_BEGIN
namespace reel::detail {

/// Converts to any field type; the conversions are declared only, never called. AnyMoveOnlyField
/// serves structs that cannot be copied.
struct AnyField {
  std::size_t unused;
  template <class T>
  operator T&() const&& noexcept;
  template <class T>
  operator T&() const& noexcept;  // for fields constructible from one argument of any type
};
struct AnyMoveOnlyField {
  std::size_t unused;
  template <class T>
  operator T() const&& noexcept;
};

/// Converts to proper base classes of T only. The conversion is declared only, never called.
template <class T>
struct AnyBaseOf {
  template <class Base>
  requires(std::is_base_of_v<Base, T> && !std::is_same_v<Base, T>) operator Base() const noexcept;
};
/// True for an aggregate with a base class: its fields cannot be told from the base's.
template <class T>
inline constexpr bool kHasBase = requires {
  T{AnyBaseOf<T>{}};
};

template <class T, std::size_t... I>
constexpr bool can_be_made_of(std::index_sequence<I...>) {
  using Any = std::conditional_t<std::is_copy_constructible_v<T>, AnyField, AnyMoveOnlyField>;
  return requires { T{Any{I}...}; };
}

/// Returns the largest number of initializers that T accepts in braces. Smaller numbers may be
/// rejected, because later fields may have no default.
template <class T, std::size_t N = 1, std::size_t kFound = 0>
constexpr std::size_t count_fields() {
  constexpr std::size_t kMaxFields = 100;  // PFR's limit
  if constexpr (can_be_made_of<T>(std::make_index_sequence<N>()))
    return count_fields<T, N + 1, N>();
  else if constexpr (kFound == 0 && N < kMaxFields && N < sizeof(T))
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
/// True if a field takes several initializers without braces of its own: it is a C array.
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

/// Returns a reference to field I of an aggregate.
template <std::size_t I, class T>
constexpr auto& field(T& object) {
  namespace pfr = boost::pfr::detail;
  return pfr::sequence_tuple::get<I>(pfr::tie_as_tuple(object, pfr::size_t_<kFieldCount<T>>{}));
}

/// Storage for an object of T that is never constructed. Only the addresses of its fields are used,
/// as template arguments.
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

/// The address of a field as a template argument. A plain pointer will not do: clang before 18
/// takes none to a part of an object.
template <class T>
struct FieldAddress {
  const T* address;
};

template <class T, FieldAddress<T> Address>
constexpr std::string_view name_at_address() {
  // GCC prints [with ... Address = ...{((const T*)(& ...value.State::h))}; ...],
  // Clang [..., Address = ...{&object.value.h}].
  std::string_view text = __PRETTY_FUNCTION__;
  text = text.substr(0, text.find_last_of("}"));
  const std::size_t end = text.find_last_not_of(")");
  text = text.substr(0, end + 1);
  return text.substr(text.find_last_of(":.") + 1);
}

/// A constant, because loops of eager mode flatten their state in every iteration: searching for
/// the name each time took a tenth of the time of small loops.
template <class T, FieldAddress<T> Address>
inline constexpr std::string_view kNameAtAddress = name_at_address<T, Address>();

/// Returns the name of field I of the aggregate T.
template <class T, std::size_t I>
constexpr std::string_view field_name() {
  using Field = std::remove_reference_t<decltype(field<I>(NeverMadeObject<T>::object.value))>;
  return kNameAtAddress<Field, FieldAddress<Field>{&field<I>(NeverMadeObject<T>::object.value)}>;
}

}  // namespace reel::detail
REEL_API_END
