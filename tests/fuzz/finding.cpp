#include "reel/tests/fuzz/finding.h"

#include <cctype>

namespace reel::fuzz {

std::string gist(std::string message) {
  // Some messages begin with a type.
  if (const std::size_t end = message.find(": "); end != message.npos && message.find('[') < end)
    message.erase(0, end + 2);
  std::string result;
  for (const char c : message.substr(0, message.find_first_of("[,(;\n")))
    if (!std::isdigit(static_cast<unsigned char>(c))) result += c;
  return result;
}

}  // namespace reel::fuzz
