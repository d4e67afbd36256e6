// tests/pages/browser.h — Browser, a real Chromium without a window.
#pragma once

#include <sys/types.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace reel {

/// Started by the constructor, ended by the destructor; spoken to in the DevTools protocol over two
/// pipes. What it cannot do, and what does not come for minutes, is a std::runtime_error.
class Browser {
 public:
  /// Counts of a page's work. They do not depend on how fast the machine is.
  struct Work {
    double blocks = 0;   ///< blocks of its JavaScript that ran: bodies of functions and loops
    double layouts = 0;  ///< how often the browser placed its elements or looked up their styles

    Work operator-(const Work& other) const {
      return {blocks - other.blocks, layouts - other.layouts};
    }
  };

  /// folder: for its profile; made, and removed in the end.
  explicit Browser(const std::string& folder, int width = 1400, int height = 900);
  ~Browser();
  Browser(const Browser&) = delete;
  Browser& operator=(const Browser&) = delete;

  /// Opens a page of ours and waits until it has drawn itself.
  void open(const std::string& path);
  /// Opens an address and waits until an expression is true there.
  void open(const std::string& address, const std::string& is_ready);
  /// The value of a JavaScript expression; of a promise, what it gives in the end.
  nlohmann::json evaluate(const std::string& expression);
  /// count: 2 for a double click.
  void click(double x, double y, int count = 1);
  void type(const std::string& text);
  void press(const std::string& key);
  /// Returns what pages have done so far; without what ELK does in its worker. Counts from the
  /// first call on.
  Work work();
  /// Writes what is seen as a PNG.
  void screenshot(const std::string& path);

  /// What stood on the console as error or warning, and exceptions that nobody caught.
  const std::vector<std::string>& complaints() const { return complaints_; }
  /// The same, and forgets them: of a test that makes some.
  std::vector<std::string> take_complaints() { return std::exchange(complaints_, {}); }
  /// Addresses that were loaded.
  const std::vector<std::string>& requests() const { return requests_; }

 private:
  nlohmann::json send(const std::string& method, nlohmann::json params = nlohmann::json::object());
  nlohmann::json read_message();
  void note(const nlohmann::json& event);

  std::string folder_;
  pid_t pid_ = -1;
  int to_ = -1, from_ = -1;
  int last_id_ = 0;
  bool counts_work_ = false;
  Work work_;
  std::string session_, buffer_;
  std::vector<std::string> complaints_, requests_;
};

}  // namespace reel
