#include "reel/core/runtime/no_memory.h"

#include <exception>
#include <optional>

#include "reel/core/base/quantities.h"
#include "reel/core/base/str.h"
#include "reel/core/runtime/memory.h"

namespace reel {
namespace {

/// Made at program start and never destroyed. Copying it takes no memory.
const MemoryError& error_without_words() {
  static const MemoryError& error = *new MemoryError("there is no memory");
  return error;
}
[[maybe_unused]] const MemoryError& made_at_start = error_without_words();

/// Returns nothing if there is no memory for the text.
template <class Text>
std::optional<MemoryError> error_of(const Text& text) {
  try {
    return MemoryError(text());
  } catch (const std::bad_alloc&) {
    return std::nullopt;
  }
}

}  // namespace

void throw_no_memory(std::int64_t bytes) {
  const auto error = error_of([&] { return str("there is no memory for ", bytes_text(bytes)); });
  throw error ? *error : error_without_words();
}

void throw_no_memory_in(std::string_view function) {
  const auto error =
      error_of([&] { return str(function, ": there is no memory for its temporary data"); });
  std::throw_with_nested(error ? *error : error_without_words());
}

}  // namespace reel
