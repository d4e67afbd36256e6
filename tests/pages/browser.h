// tests/pages/browser.h — Browser, a headless Chromium.
#pragma once

#include <sys/types.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace reel {

/// A Chromium process that the constructor starts and the destructor ends. Speaks the DevTools
/// protocol over two pipes. Throws std::runtime_error if a command fails or gets no answer for
/// minutes.
class Browser {
 public:
  /// Counts of a page's work, which do not depend on the speed of the machine.
  struct Work {
    double blocks = 0;   ///< blocks of its JavaScript that ran: bodies of functions and loops
    double layouts = 0;  ///< how often the browser computed layouts or styles

    Work operator-(const Work& other) const {
      return {blocks - other.blocks, layouts - other.layouts};
    }
  };

  /// folder: holds the browser's profile; the constructor makes it, and the destructor removes it.
  explicit Browser(const std::string& folder, int width = 1400, int height = 900);
  ~Browser();
  Browser(const Browser&) = delete;
  Browser& operator=(const Browser&) = delete;

  /// Opens a page of Reel and waits until it has drawn itself.
  void open(const std::string& path);
  /// Opens an address and waits until the expression `is_ready` is true there.
  void open(const std::string& address, const std::string& is_ready);
  /// Returns the value of a JavaScript expression. Waits if it is a promise, and returns its
  /// result.
  nlohmann::json evaluate(const std::string& expression);
  /// Clicks on a point of the page. count: 2 for a double click.
  void click(double x, double y, int count = 1);
  void type(const std::string& text);
  void press(const std::string& key);
  /// Returns the work of pages since the first call, without the work of ELK in its worker.
  Work work();
  /// Writes the visible page as a PNG.
  void screenshot(const std::string& path);

  /// Returns the console's errors and warnings, and uncaught exceptions.
  const std::vector<std::string>& complaints() const { return complaints_; }
  /// Returns the complaints and clears them, for a test that causes some.
  std::vector<std::string> take_complaints() { return std::exchange(complaints_, {}); }
  /// Returns the addresses that pages have loaded.
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
