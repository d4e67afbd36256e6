// frontend/pictures/chrome_trace.h — the spans of pictures as a file of trace events.
#pragma once

#include <string>
#include <vector>

#include "reel/frontend/pictures/picture.h"

namespace reel {

/// In the trace event format. Spans on one row of one process lie in each other or apart, as its
/// viewers need them. Source: "Trace Event Format", Google, 2016: complete events, in microseconds.
std::string chrome_trace_of(const std::vector<Picture>& parts);

}  // namespace reel
