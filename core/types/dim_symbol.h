// core/types/dim_symbol.h — makes symbols, the named dims of a trace.
#pragma once

#include <cstdint>
#include <string>

#include "reel/core/types/dim.h"

namespace reel {

/// Returns a new symbol, a dim that belongs to a trace. Only a run knows its size, or its lengths
/// if length_dims is not empty: then it is ragged.
Dim dim_symbol(std::string name, Dims length_dims = {});

/// Returns the Dim::serial() that the next new dim will have; the serials of all dims are below it.
std::uint64_t next_dim_serial();

}  // namespace reel
