// frontend/pictures/page.h — the page that pictures are looked at with.
#pragma once

#include <string>
#include <string_view>

namespace reel {

/// Writes a page that needs nothing but itself: text, scripts, and `data`, a JSON object (main.js
/// says of what). Throws IoError, which begins with `what`.
void write_page(const std::string& path, const std::string& data, std::string_view what);

}  // namespace reel
