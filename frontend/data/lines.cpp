#include "reel/frontend/data/lines.h"

#include <string_view>

#include "reel/frontend/files/stored_file.h"

namespace reel {

std::vector<std::string> load_lines(const std::string& path) {
  const StoredFile file(path, "load_lines");
  std::string bytes(file.size(), '\0');
  file.read(bytes.data(), 0, bytes.size());
  std::vector<std::string> lines;
  for (std::string_view rest = bytes; !rest.empty();) {
    const std::size_t end = rest.find('\n');
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.emplace_back(line);
  }
  return lines;
}

}  // namespace reel
