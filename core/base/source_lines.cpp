#include "reel/core/base/source_lines.h"

#include <cxxabi.h>
#include <dlfcn.h>

#ifdef REEL_HAS_BACKTRACE
#include <backtrace.h>
#endif

#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <string_view>

#include "reel/core/base/str.h"
#include "reel/core/base/update_mark.h"

namespace reel {
namespace {

std::string demangled(const char* name) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(
      abi::__cxa_demangle(name, nullptr, nullptr, &status), std::free);
  return status == 0 ? text.get() : name;
}

bool has_prefix_in(std::string_view file, std::string_view root) {
  if (!file.starts_with(root)) return false;
  file.remove_prefix(root.size());
  for (const std::string_view folder :
       {"/core/", "/eager/", "/trace/", "/autodiff/", "/frontend/", "/onnx/", "/distributed/"})
    if (file.starts_with(folder)) return true;
  return false;
}

/// Returns true for lines of the library or the compiler.
bool is_ours(const SourceLine& line) {
  const std::string_view file = line.file;
  if (file.empty()) {
    const std::string_view function = line.function;
    return function.empty() || function.starts_with("reel::") || function.starts_with("std::") ||
           function.starts_with("_") || function.starts_with("gtest::") ||
           function.starts_with("testing::");
  }
  if (has_prefix_in(file, REEL_SOURCE_ROOT) || has_prefix_in(file, REEL_RELATIVE_ROOT) ||
      file.find("/c++/") != std::string_view::npos)
    return true;
  const std::size_t include = file.rfind("/reel/");  // an installed header, or a generated one
  return include != std::string_view::npos && has_prefix_in(file, file.substr(0, include + 5));
}

/// True for the C library's functions that call main() or a thread's: some have debug information.
bool starts_threads(std::string_view function) {
  return function == "_start" || function.starts_with("__libc_start") ||
         function == "start_thread" || function == "clone" || function == "__clone3";
}

/// Returns the name of a function of the library as users write it. Returns "" for operators,
/// lambdas, functions that are not public, and constructors of errors: a program that throws an
/// error itself called no function that failed. An inherited one is called ShapeError::Error.
std::string public_name(std::string_view function) {
  constexpr std::string_view kNamespace = "reel::", kCall = "::operator()";
  if (function.starts_with(kNamespace)) function.remove_prefix(kNamespace.size());
  if (function.ends_with(kCall)) function.remove_suffix(kCall.size());
  const std::size_t last = function.rfind("::");
  if (last != std::string_view::npos) {  // Dim::Dim is a constructor
    const std::string_view type = function.substr(0, last), name = function.substr(last + 2);
    if (type == name || type.ends_with(str("::", name))) function = type;
  }
  const bool is_public = function.find("operator") == std::string_view::npos &&
                         !function.ends_with("Error") && !function.starts_with("detail::") &&
                         !function.starts_with("std::");
  return std::string(is_public ? function : "");
}

using Lines = std::vector<SourceLine>;
struct LookedUp {
  Lines lines;              ///< several if calls were inlined, the innermost first
  bool is_refused = false;  ///< true: the system did not let the program read its own file
};

#ifdef REEL_HAS_BACKTRACE
/// libbacktrace opens the program's file in the first call and remembers a failure. After one, for
/// example without a free file descriptor, the next address gets a new state. States cannot be
/// freed, so a program that fails each time gets kMaxStates.
LookedUp look_up(std::uintptr_t address) {
  constexpr int kMaxStates = 256;  // one for each address of a few errors, a page each
  static int states = 0;
  static backtrace_state* state = nullptr;
  const auto ignore = [](void*, const char*, int) {};
  if (!state && states < kMaxStates) {
    state = backtrace_create_state(nullptr, 1, ignore, nullptr);
    ++states;
  }
  if (!state) return {{}, states < kMaxStates};  // no memory
  LookedUp result;
  const auto add = [](void* to, std::uintptr_t, const char* file, int line, const char* function) {
    if (file || function)
      static_cast<LookedUp*>(to)->lines.push_back(
          {file ? file : "", line, function ? short_name(demangled(function)) : ""});
    return 0;
  };
  const auto fail = [](void* to, const char*, int error) {
    if (error > 0) static_cast<LookedUp*>(to)->is_refused = true;
  };
  backtrace_pcinfo(state, address, add, fail, &result);
  if (result.lines.empty()) {
    const auto name = [](void* to, std::uintptr_t, const char* symbol, std::uintptr_t,
                         std::uintptr_t) {
      if (symbol)
        static_cast<LookedUp*>(to)->lines.push_back({"", 0, short_name(demangled(symbol))});
    };
    backtrace_syminfo(state, address, name, fail, &result);
  }
  result.is_refused &= result.lines.empty() && states < kMaxStates;
  if (result.is_refused) state = nullptr;
  return result;
}
#else
LookedUp look_up(std::uintptr_t address) {
  Dl_info info{};
  if (!dladdr(reinterpret_cast<void*>(address), &info) || !info.dli_sname) return {};
  return {{{"", 0, short_name(demangled(info.dli_sname))}}};
}
#endif

/// Returns the lines of an address. Caches them, because reading debug information is slow and
/// addresses recur.
Lines lines_at(std::uintptr_t address) {
  static auto& known = *new std::map<std::uintptr_t, Lines>;  // never destroyed
  if (const auto found = known.find(address); found != known.end()) return found->second;
  LookedUp made = look_up(address);
  if (!made.is_refused) known.emplace(address, made.lines);
  return std::move(made.lines);
}

std::mutex resolving;

/// Returns the position behind the closing bracket.
std::size_t behind_brackets(const std::string& text, std::size_t at) {
  int open = 0;
  for (; at < text.size(); ++at) {
    if (text[at] == '(') ++open;
    if (text[at] == ')' && --open == 0) return at + 1;
  }
  return at;
}

}  // namespace

std::string short_name(const std::string& name) {
  constexpr std::string_view kOperators = "<>=!+-*/%^&|~,[]";
  int angles = 0, braces = 0;
  std::string result;
  for (std::size_t i = 0; i < name.size();) {
    const char c = name[i];
    if (c == '(' && angles == 0 && braces == 0) {
      const std::string_view inside = std::string_view(name).substr(i);
      if (inside.starts_with("(anonymous namespace)::")) {
        i += std::string_view("(anonymous namespace)::").size();
        continue;
      }
      const std::size_t behind = behind_brackets(name, i);
      const bool is_decltype = result.ends_with("decltype") || result.ends_with("decltype ");
      // A name inside a function is qualified by it, except a lambda's.
      const bool goes_on =
          name.compare(behind, 2, "::") == 0 && name.compare(behind, 3, "::{") != 0;
      if (!is_decltype && !goes_on) break;
      if (is_decltype) result += ' ';
      i = behind;
      continue;
    }
    if (angles == 0 && result.ends_with("operator") &&
        kOperators.find(c) != std::string_view::npos) {
      for (; i < name.size() && kOperators.find(name[i]) != std::string_view::npos; ++i)
        result += name[i];
      continue;
    }
    if (c == '{') ++braces;
    if (c == '}') --braces;
    if (c == '<') ++angles;
    if (angles == 0) result += c;
    if (c == '>' && angles > 0) --angles;
    ++i;
  }
  while (result.ends_with(' ')) result.pop_back();
  const std::size_t blank = result.rfind(' ', result.find("operator "));  // behind the return type
  if (blank != std::string::npos) result.erase(0, blank + 1);
  if (result != "operator" && !result.ends_with("::operator")) return result;
  return result == "operator" || result.find('{') != std::string::npos ? "" : result + "()";
}

std::vector<SourceLine> source_lines(SourceId source) {
  const std::lock_guard lock(resolving);
  Lines result;
  for (const std::uintptr_t address : addresses_of(source))
    for (const SourceLine& line : lines_at(address))
      if (!is_ours(line)) result.push_back(line);
  return result;
}

std::string source_text(SourceId source) {
  std::string result;
  for (const SourceLine& line : source_lines(source)) {
    if (starts_threads(line.function)) break;
    if (!result.empty()) result += '\n';
    const std::size_t folder = line.file.rfind('/');
    if (!line.file.empty())
      result += str(line.file.substr(folder + 1), ':', line.line, line.function.empty() ? "" : " ");
    result += line.function;
  }
  return result;
}

std::string place_text(SourceId source) {
  for (const SourceLine& line : source_lines(source)) {
    if (starts_threads(line.function)) break;
    if (!line.file.empty()) return str(line.file, ':', line.line);
  }
  return {};
}

std::string called_function(SourceId source) {
  // Updates of several optimisers are one function of their base class.
  if (const std::string_view optimiser = update_of(source); !optimiser.empty())
    return str(optimiser, "::update");
  const std::lock_guard lock(resolving);
  std::string function;
  for (const std::uintptr_t address : addresses_of(source))
    for (const SourceLine& line : lines_at(address)) {
      if (!is_ours(line)) return line.file.empty() ? "" : public_name(function);
      function = line.function;
    }
  return {};
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

}  // namespace reel
