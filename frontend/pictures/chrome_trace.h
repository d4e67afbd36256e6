// frontend/pictures/chrome_trace.h — chrome_trace_of, the spans of pictures in trace event format.
#pragma once

#include <string>
#include <vector>

#include "reel/frontend/pictures/picture.h"

namespace reel {

/// Returns the spans as JSON in the trace event format. Spans on one row of a process are nested or
/// disjoint, as viewers require. Source: "Trace Event Format", Google, 2016: complete events, in
/// microseconds.
std::string chrome_trace_of(const std::vector<Picture>& parts);

}  // namespace reel
