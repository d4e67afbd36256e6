// frontend/data/lines.h — load_lines, the lines of a text file.
#pragma once

#include <string>
#include <vector>

#include "reel/core/base/visibility.h"

REEL_API_BEGIN
namespace reel {

/// Returns the lines of a text file without their ends, "\n" or "\r\n". Bytes are not interpreted;
/// the last line may lack its end. Throws IoError with path and reason.
std::vector<std::string> load_lines(const std::string& path);

}  // namespace reel
REEL_API_END
