#include "reel/core/op/op_errors.h"

#include <exception>
#include <new>
#include <string_view>

#include "reel/core/base/errors.h"
#include "reel/core/base/str.h"
#include "reel/core/op/op.h"
#include "reel/core/runtime/cancellation.h"
#include "reel/core/runtime/memory.h"
#include "reel/core/runtime/no_memory.h"
#include "reel/core/types/tensor.h"

namespace reel {
namespace {

/// Returns true if a message begins with a function's name, as messages of the library do, or if a
/// line was added to it.
bool names_anything(std::string_view message) {
  return message.find(": ") != std::string_view::npos ||
         message.find('\n') != std::string_view::npos;
}

}  // namespace

void rethrow_of(const Op& op, SourceId source) {
  try {
    throw;
  } catch (MemoryError& error) {
    error.came_from(source);
    try {
      if (!error.names_function()) error.name_function(op.name);
    } catch (const std::bad_alloc&) {  // the message stays without a name
    }
    throw;
  } catch (const CancelledError&) {
    throw;
  } catch (Error& error) {
    error.came_from(source);
    if (!names_anything(error.message())) error.add_line(str("in ", op.name));
    throw;
  } catch (const InternalError&) {
    throw;
  } catch (const std::bad_alloc&) {
    try {
      throw_no_memory_in(op.name);
    } catch (MemoryError& error) {
      error.came_from(source);
      throw;
    }
  } catch (const std::exception& error) {
    Error result(str(op.name, ": ", error.what()));
    result.came_from(source);
    std::throw_with_nested(result);
  }
}

}  // namespace reel
