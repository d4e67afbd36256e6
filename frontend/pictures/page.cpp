#include "reel/frontend/pictures/page.h"

#include <vector>

#include "reel/core/base/errors.h"
#include "reel/core/base/str.h"
#include "reel/frontend/files/replace_file.h"

// Embeds the files in the read-only data of the library.
#define REEL_EMBED(symbol, file)                                                    \
  asm(".section .rodata\n.global reel_page_" #symbol "\nreel_page_" #symbol         \
      ":\n"                                                                         \
      ".incbin \"" file "\"\n.global reel_page_" #symbol "_end\nreel_page_" #symbol \
      "_end:\n.byte 0\n.previous\n");                                               \
  extern "C" const char reel_page_##symbol[], reel_page_##symbol##_end[]

#define REEL_PAGE(file) REEL_PAGE_FOLDER "/" file
#define REEL_ELK(file) REEL_ELK_FOLDER "/" file

REEL_EMBED(html, REEL_PAGE("page.html"));
REEL_EMBED(style, REEL_PAGE("style.css"));
REEL_EMBED(model, REEL_PAGE("model.js"));
REEL_EMBED(elk, REEL_PAGE("elk.js"));
REEL_EMBED(chips, REEL_PAGE("chips.js"));
REEL_EMBED(layout, REEL_PAGE("layout.js"));
REEL_EMBED(draw, REEL_PAGE("draw.js"));
REEL_EMBED(viewport, REEL_PAGE("viewport.js"));
REEL_EMBED(details, REEL_PAGE("details.js"));
REEL_EMBED(search, REEL_PAGE("search.js"));
REEL_EMBED(tokens, REEL_PAGE("tokens.js"));
REEL_EMBED(run, REEL_PAGE("run.js"));
REEL_EMBED(main, REEL_PAGE("main.js"));
REEL_EMBED(elk_notice, REEL_ELK("NOTICE"));
REEL_EMBED(elk_api, REEL_ELK("elk-api.js"));
REEL_EMBED(elk_worker, REEL_ELK("elk-worker.min.js"));

namespace reel {
namespace {

#define REEL_TEXT(symbol) \
  std::string_view(reel_page_##symbol, std::size_t(reel_page_##symbol##_end - reel_page_##symbol))

/// Returns JSON without '<', so that no text can end the script element around it.
std::string without_tags(const std::string& json) {
  std::string result;
  result.reserve(json.size());
  for (const char c : json) {
    if (c == '<')
      result += "\\u003c";
    else
      result += c;
  }
  return result;
}

}  // namespace

void write_page(const std::string& path, const std::string& data, std::string_view what) {
  const std::string json = without_tags(data);
  std::vector<std::string_view> parts;
  std::string_view rest = REEL_TEXT(html);
  const auto up_to = [&](std::string_view mark) {
    const std::size_t at = rest.find(mark);
    if (at == std::string_view::npos) throw InternalError(str("the page has no ", mark));
    parts.push_back(rest.substr(0, at));
    rest.remove_prefix(at + mark.size());
  };
  up_to("<!--style-->");
  parts.push_back(REEL_TEXT(style));
  up_to("<!--data-->");
  parts.push_back(json);
  up_to("<!--elk-->");
  for (const std::string_view part : {std::string_view("<!--\n"), REEL_TEXT(elk_notice),
                                      std::string_view("-->\n<script>\n"), REEL_TEXT(elk_api),
                                      std::string_view("</script>\n<script type=\"text/plain\" "
                                                       "id=\"elk-worker\">\n"),
                                      REEL_TEXT(elk_worker), std::string_view("</script>\n")})
    parts.push_back(part);
  up_to("<!--script-->");
  for (const std::string_view part :
       {REEL_TEXT(model), REEL_TEXT(elk), REEL_TEXT(chips), REEL_TEXT(layout), REEL_TEXT(draw),
        REEL_TEXT(viewport), REEL_TEXT(details), REEL_TEXT(search), REEL_TEXT(tokens),
        REEL_TEXT(run), REEL_TEXT(main)})
    parts.push_back(part);
  parts.push_back(rest);
  replace_file(path, parts, what);
}

}  // namespace reel
