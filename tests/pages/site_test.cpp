// The site of scripts/docs in a real browser: it fits a phone, its search finds functions, and it
// needs no network. The test site.IsBuilt makes it before.
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>

#include "reel/tests/own_folder.h"
#include "reel/tests/pages/browser.h"

namespace reel {
namespace {

class SiteTest : public InOwnFolder {
 protected:
  SiteTest() : InOwnFolder("browser") {}
  void SetUp() override {
    InOwnFolder::SetUp();
    if (!std::filesystem::exists(html() / "index.html"))
      GTEST_SKIP() << "there is no site: scripts/install brings Doxygen, which makes it";
    browser_ = std::make_unique<Browser>(path, 800, 900);
  }
  static std::filesystem::path html() { return std::filesystem::absolute("site/html"); }
  void open(const std::string& page) {
    browser_->open("file://" + (html() / page).string(),
                   "document.readyState === 'complete' && document.getElementById('MSearchField') "
                   "&& location.pathname.endsWith('/" +
                       page + "')");
  }

  std::unique_ptr<Browser> browser_;
};

TEST_F(SiteTest, NoPageIsWiderThanAPhone) {
  int count = 0;
  for (const auto& file : std::filesystem::directory_iterator(html())) {
    const std::string name = file.path().filename();
    if (file.path().extension() != ".html") continue;
    if (name.starts_with("class") || name.starts_with("struct") || name.starts_with("decisions_"))
      continue;
    open(name);
    ++count;
    const auto width =
        browser_->evaluate("document.body.style.width = '390px', document.body.scrollWidth");
    EXPECT_LE(width.get<int>(), 390) << name;
  }
  EXPECT_GT(count, 50);
  for (const std::string& address : browser_->requests())
    EXPECT_TRUE(address.starts_with("file://") || address.starts_with("data:")) << address;
}

TEST_F(SiteTest, TheSearchFindsFunctions) {
  open("index.html");
  browser_->evaluate("document.getElementById('MSearchField').focus()");
  browser_->type("matmul");
  browser_->press("Shift");  // the search waits for a key to be released
  browser_->evaluate(R"(new Promise((resolve) => {
    const window = document.getElementById('MSearchResultsWindow');
    const look = () => window.style.display === 'block' ? resolve(true) : setTimeout(look, 50);
    look();
  }))");
  // The results are a page in a frame, which scripts of another file must not read.
  std::string results;
  for (const std::string& address : browser_->requests())
    if (address.find("/search/all_") != std::string::npos && address.ends_with("matmul"))
      results = address;
  ASSERT_NE(results, "");
  browser_->open(results, "document.body && document.body.innerText.includes('matmul')");
}

TEST_F(SiteTest, AFunctionOfTheIndexLeadsToItsContract) {
  open("functions.html");
  const auto contract = browser_->evaluate(R"((() => {
    const link = [...document.querySelectorAll('a')].find((a) => a.textContent.startsWith('linear_scan('));
    return link.getAttribute('href');
  })())");
  EXPECT_TRUE(contract.get<std::string>().starts_with("group__loops.html#"));
}

}  // namespace
}  // namespace reel
