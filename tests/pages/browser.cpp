#include "reel/tests/pages/browser.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <thread>

extern char** environ;

namespace reel {
namespace {

using nlohmann::json;

/// After this time the browser counts as hung; a slow machine takes a few seconds at most.
constexpr int kMilliseconds = 240'000;

[[noreturn]] void fail(const std::string& what) { throw std::runtime_error("chromium: " + what); }

/// Returns a pipe with descriptors far from 3 and 4, which the browser's ends will be.
std::array<int, 2> make_pipe() {
  std::array<int, 2> low{}, high{};
  if (::pipe(low.data()) != 0) fail("no pipe");
  for (int i = 0; i < 2; ++i) {
    high[i] = ::fcntl(low[i], F_DUPFD_CLOEXEC, 20);
    ::close(low[i]);
  }
  return high;
}

std::string decoded(const std::string& base64) {
  std::string result;
  std::uint32_t bits = 0;
  int count = 0;
  for (const char c : base64) {
    const std::string_view alphabet =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const std::size_t value = alphabet.find(c);
    if (value == std::string_view::npos) break;
    bits = bits << 6 | static_cast<std::uint32_t>(value);
    if ((count += 6) < 8) continue;
    count -= 8;
    result += static_cast<char>(bits >> count & 255);
  }
  return result;
}

}  // namespace

Browser::Browser(const std::string& folder, int width, int height)
    : folder_(std::filesystem::absolute(folder)) {
  std::filesystem::create_directories(folder_);
  const auto there = make_pipe(), back = make_pipe();
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, there[0], 3);
  posix_spawn_file_actions_adddup2(&actions, back[1], 4);
  for (const int out : {1, 2})
    posix_spawn_file_actions_addopen(&actions, out, "/dev/null", O_WRONLY, 0);
  // No sandbox: it needs rights that containers do not give. The browser opens only the tests' own
  // pages.
  std::vector<std::string> arguments{
      REEL_CHROMIUM,
      "--headless",
      "--no-sandbox",
      "--disable-gpu",
      "--disable-dev-shm-usage",
      "--hide-scrollbars",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--remote-debugging-pipe",
      "--user-data-dir=" + folder_,
      "--window-size=" + std::to_string(width) + "," + std::to_string(height),
      "about:blank"};
  std::vector<char*> raw;
  for (std::string& argument : arguments) raw.push_back(argument.data());
  raw.push_back(nullptr);
  const int error = ::posix_spawn(&pid_, REEL_CHROMIUM, &actions, nullptr, raw.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  ::close(there[0]);
  ::close(back[1]);
  to_ = there[1];
  from_ = back[0];
  if (error) fail("cannot be started: " + std::string(std::strerror(error)));
  const json target = send("Target.createTarget", {{"url", "about:blank"}});
  session_ = send("Target.attachToTarget",
                  {{"targetId", target["targetId"]}, {"flatten", true}})["sessionId"];
  for (const char* domain : {"Page.enable", "Runtime.enable", "Log.enable", "Network.enable"})
    send(domain);
}

Browser::Work Browser::work() {
  if (!counts_work_) {
    for (const char* domain : {"Profiler.enable", "Performance.enable"}) send(domain);
    send("Profiler.startPreciseCoverage", {{"callCount", true}, {"detailed", true}});
    counts_work_ = true;
  }
  const json ran = send("Profiler.takePreciseCoverage"), counts = send("Performance.getMetrics");
  for (const json& script : ran["result"])  // since the last call
    for (const json& function : script["functions"])
      for (const json& block : function["ranges"]) work_.blocks += block["count"].get<double>();
  work_.layouts = 0;
  for (const json& metric : counts["metrics"])
    if (metric["name"] == "LayoutCount" || metric["name"] == "RecalcStyleCount")
      work_.layouts += metric["value"].get<double>();
  return work_;
}

Browser::~Browser() {
  try {
    session_.clear();
    send("Browser.close");
  } catch (const std::exception&) {  // the process has ended already
  }
  ::close(to_);
  ::close(from_);
  for (int i = 0; i < 100; ++i) {
    if (pid_ < 0 || ::waitpid(pid_, nullptr, WNOHANG) != 0) pid_ = -1;
    if (pid_ < 0) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

json Browser::send(const std::string& method, json params) {
  const int id = ++last_id_;
  json message{{"id", id}, {"method", method}, {"params", std::move(params)}};
  if (!session_.empty()) message["sessionId"] = session_;
  const std::string text = message.dump() + '\0';
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t n = ::write(to_, text.data() + done, text.size() - done);
    if (n <= 0) fail("does not listen");
    done += static_cast<std::size_t>(n);
  }
  for (;;) {
    json answer = read_message();
    if (answer.value("id", 0) == id) {
      if (answer.contains("error")) fail(method + ": " + answer["error"].dump());
      return answer["result"];
    }
    note(answer);
  }
}

json Browser::read_message() {
  for (;;) {
    const std::size_t end = buffer_.find('\0');
    if (end != std::string::npos) {
      json result = json::parse(buffer_.substr(0, end));
      buffer_.erase(0, end + 1);
      return result;
    }
    pollfd waiting{from_, POLLIN, 0};
    if (::poll(&waiting, 1, kMilliseconds) <= 0) fail("says nothing");
    char chunk[1 << 16];
    const ssize_t n = ::read(from_, chunk, sizeof chunk);
    if (n <= 0) fail("has ended");
    buffer_.append(chunk, static_cast<std::size_t>(n));
  }
}

void Browser::note(const json& event) {
  const std::string method = event.value("method", "");
  const json& params = event.contains("params") ? event["params"] : event;
  if (method == "Runtime.exceptionThrown") complaints_.push_back(params.dump());
  if (method == "Log.entryAdded" && params["entry"]["level"] != "info" &&
      params["entry"]["level"] != "verbose")
    complaints_.push_back(params.dump());
  if (method == "Runtime.consoleAPICalled" && params["type"] != "log")
    complaints_.push_back(params.dump());
  if (method == "Network.requestWillBeSent") requests_.push_back(params["request"]["url"]);
}

void Browser::open(const std::string& path) {
  open("file://" + std::filesystem::absolute(path).string(), "Boolean(window.page)");
  evaluate("page.ready.then(() => true)");
}

void Browser::open(const std::string& address, const std::string& is_ready) {
  send("Page.navigate", {{"url", address}});
  for (int i = 0; i < kMilliseconds / 50; ++i) {
    if (evaluate("document.readyState === 'complete' && " + is_ready) == true) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  fail(address + " does not become complete" + (complaints_.empty() ? "" : ": " + complaints_[0]));
}

json Browser::evaluate(const std::string& expression) {
  const json answer =
      send("Runtime.evaluate",
           {{"expression", expression}, {"awaitPromise", true}, {"returnByValue", true}});
  if (answer.contains("exceptionDetails"))
    fail(expression + ": " + answer["exceptionDetails"].dump());
  return answer["result"].value("value", json());
}

void Browser::click(double x, double y, int count) {
  const auto mouse = [&](const char* type, int clicks) {
    send("Input.dispatchMouseEvent",
         {{"type", type}, {"x", x}, {"y", y}, {"button", "left"}, {"clickCount", clicks}});
  };
  mouse("mouseMoved", 0);
  for (int i = 1; i <= count; ++i) {
    mouse("mousePressed", i);
    mouse("mouseReleased", i);
  }
}

void Browser::type(const std::string& text) { send("Input.insertText", {{"text", text}}); }

void Browser::press(const std::string& key) {
  for (const char* type : {"rawKeyDown", "keyUp"})
    send("Input.dispatchKeyEvent", {{"type", type}, {"key", key}, {"code", key}});
}

void Browser::screenshot(const std::string& path) {
  std::ofstream(path, std::ios::binary)
      << decoded(send("Page.captureScreenshot", {{"format", "png"}})["data"]);
}

}  // namespace reel
