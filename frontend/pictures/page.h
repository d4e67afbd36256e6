// frontend/pictures/page.h — write_page, which writes the HTML page that shows pictures.
#pragma once

#include <string>
#include <string_view>

namespace reel {

/// Writes a self-contained page: text, scripts, and `data`, a JSON object in the format of main.js.
/// Throws IoError; the message begins with `what`.
void write_page(const std::string& path, const std::string& data, std::string_view what);

}  // namespace reel
