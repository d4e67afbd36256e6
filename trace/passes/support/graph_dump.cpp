#include "reel/trace/passes/support/graph_dump.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>

#include "reel/core/base/errors.h"
#include "reel/core/base/reason_of.h"
#include "reel/core/base/str.h"
#include "reel/core/base/write_target.h"

namespace reel {
namespace {

const std::string& dump_folder() {
  static const std::string& folder = []() -> const std::string& {
    const char* const value = std::getenv("REEL_DUMP_GRAPHS");
    return *new std::string(value ? value : "");
  }();
  return folder;
}

std::string two_digits(int number) { return str(number < 10 ? "0" : "", number); }

/// Returns a name in which only characters are left that every file system takes.
std::string as_file_name(std::string name) {
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name.empty() ? "graph" : name;
}

void write(const std::string& path, const std::string& text) {
  const WriteTarget target = find_write_target(path, "dump");
  const int opened =
      ::open(target.path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666);
  std::FILE* const file = opened < 0 ? nullptr : ::fdopen(opened, "w");
  if (opened >= 0 && !file) {
    const int error = errno;
    ::close(opened);
    errno = error;
  }
  bool is_written = file && std::fwrite(text.data(), 1, text.size(), file) == text.size();
  is_written = file && std::fclose(file) == 0 && is_written;
  if (!is_written) throw IoError(str("cannot write ", path, ": ", reason_of(errno)));
}

/// Makes the folder and those above it. Throws IoError for a link that another user put into a
/// folder like /tmp.
void make_folder(const std::string& path) {
  for (const std::string& folder : {dump_folder(), path}) {
    find_write_target(folder, "dump");
    std::error_code failure;
    std::filesystem::create_directories(folder, failure);
    if (failure) throw IoError(str(folder, ": ", failure.message()));
  }
}

}  // namespace

GraphDump::GraphDump(const Graph& first, const char* pipeline) {
  if (dump_folder().empty()) return;
  static std::atomic<int> next{0};
  const int number = next++;
  folder_ = str(dump_folder(), '/', number < 100 ? "0" : "", two_digits(number), '-',
                as_file_name(first.name), '-', pipeline);
  try {
    make_folder(folder_);
  } catch (const std::exception& error) {
    std::cerr << "REEL_DUMP_GRAPHS: " << error.what() << '\n';
    folder_.clear();
    return;
  }
  after("before", first);
}

void GraphDump::after(const char* pass, const Graph& graph) {
  if (folder_.empty()) return;
  std::string text = str(graph);
  if (text == last_) return;
  const std::string path = str(folder_, '/', two_digits(count_++), '-', pass);
  try {
    write(path + ".txt", text + '\n');
    // A page of the graph itself would show its plans; their lock is held while a plan is made.
    Ref<Graph>(new Graph(graph))->write_html(path + ".html");
  } catch (const std::exception& error) {
    std::cerr << "REEL_DUMP_GRAPHS: " << error.what() << '\n';
    folder_.clear();
  }
  last_ = std::move(text);
}

}  // namespace reel
