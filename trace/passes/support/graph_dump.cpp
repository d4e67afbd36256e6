#include "reel/trace/passes/support/graph_dump.h"

#include <atomic>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>

#include "reel/core/base/errors.h"
#include "reel/core/base/str.h"

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
  std::FILE* const file = std::fopen(path.c_str(), "w");
  bool is_written = file && std::fwrite(text.data(), 1, text.size(), file) == text.size();
  is_written = file && std::fclose(file) == 0 && is_written;
  if (!is_written) throw IoError("cannot write " + path);
}

}  // namespace

GraphDump::GraphDump(const Graph& first, const char* pipeline) {
  if (dump_folder().empty()) return;
  static std::atomic<int> next{0};
  const int number = next++;
  folder_ = str(dump_folder(), '/', number < 100 ? "0" : "", two_digits(number), '-',
                as_file_name(first.name), '-', pipeline);
  std::error_code failure;
  std::filesystem::create_directories(folder_, failure);
  if (failure) {
    std::cerr << "REEL_DUMP_GRAPHS: " << folder_ << ": " << failure.message() << '\n';
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
    // A page of the graph itself would show its plans, whose lock is held while a plan is made.
    Ref<Graph>(new Graph(graph))->write_html(path + ".html");
  } catch (const std::exception& error) {
    std::cerr << "REEL_DUMP_GRAPHS: " << error.what() << '\n';
    folder_.clear();
  }
  last_ = std::move(text);
}

}  // namespace reel
