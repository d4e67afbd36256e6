// onnx_cases — runs all cases of ONNX's test data, and makes a page such as docs/onnx_cases.md.
//
//   onnx_cases --check PAGE   compares the page with the one made; exit code 1 if they differ
//   onnx_cases --write PAGE   writes the page
//   onnx_cases NAME           runs the cases with NAME in their name, and prints the outcomes
//
// Before these: --data FOLDER reads the data of a folder instead of Debian's. --data-of VARIABLE
// reads the folder that an environment variable names. --run TEXT writes a line about the run on
// the page, with the date and the commit; --check ignores this line.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <optional>
#include <sstream>

#include "reel/core/base/str.h"
#include "reel/tests/onnx/run_cases.h"

namespace reel {
namespace {

constexpr const char* kSets[] = {"node", "simple", "pytorch-converted", "pytorch-operator"};

std::string name_of(const CaseFiles& files) {
  return std::filesystem::path(files.folder).filename().string();
}
const char* text_of(CaseResult result) {
  constexpr const char* kTexts[] = {
      "passed", "passed with fixed integers", "drawn", "refused", "not supported", "failed"};
  return kTexts[static_cast<int>(result)];
}
std::string first_lines(const std::string& text, std::size_t most) {
  std::string line = text.substr(0, std::min(text.find("\n  at "), text.find("\nin load_onnx")));
  std::replace(line.begin(), line.end(), '\n', ' ');
  std::replace(line.begin(), line.end(), '|', '/');
  return line.size() > most ? line.substr(0, most) + "…" : line;
}

/// Cases that fail because their data is wrong.
std::string flaw_of(const std::string& name) {
  if (name == "test_adam_multiple")
    return "the data was made with an epsilon of 0.01, which the model does not state";
  if (name.starts_with("test_castlike_") && name.find("BFLOAT16") != std::string::npos)
    return "the data has one element for an input that the model declares as [3,4]";
  if (name == "test_dft_inverse" || name == "test_dft_inverse_opset19")
    return "the data has rounding errors of f32 up to 1.9e-7 where the result is 0";
  return "";
}

bool has_failed(const CaseOutcome& outcome) {
  return outcome.eager == CaseResult::failed || outcome.traced == CaseResult::failed ||
         outcome.saved == CaseResult::failed;
}

/// Counts of outcomes, in the columns of the table.
struct Row {
  int cases = 0, eager = 0, traced = 0, fixed = 0, saved = 0, drawn = 0, refused = 0, missing = 0,
      failed = 0;
  void add(const CaseOutcome& outcome) {
    ++cases;
    eager += outcome.eager == CaseResult::passed;
    drawn += outcome.eager == CaseResult::drawn;
    missing += outcome.eager == CaseResult::not_supported;
    traced += outcome.traced == CaseResult::passed;
    fixed += outcome.traced == CaseResult::passed_fixed;
    saved += outcome.saved == CaseResult::passed || outcome.saved == CaseResult::passed_fixed;
    refused += outcome.traced == CaseResult::refused;
    failed += has_failed(outcome);
  }
  std::string text(const std::string& name) const {
    const auto cell = [](int count) { return count ? str(count) : std::string(); };
    return str("| ", name, " | ", cases, " | ", cell(eager), " | ", cell(traced), " | ",
               cell(fixed), " | ", cell(saved), " | ", cell(drawn), " | ", cell(refused), " | ",
               cell(missing), " | ", cell(failed), " |\n");
  }
};

/// Returns the op that a case of the set "node" tests: the op of its only node, or of the case that
/// it expands.
std::map<std::string, std::string> ops_of(const std::vector<CaseFiles>& cases) {
  std::map<std::string, std::string> ops;
  for (const CaseFiles& files : cases) ops[name_of(files)] = files.op;
  for (const CaseFiles& files : cases) {
    std::string& op = ops[name_of(files)];
    if (!op.empty()) continue;
    std::string base = name_of(files);
    if (base.ends_with("_expanded")) base.resize(base.size() - std::string("_expanded").size());
    const auto found = ops.find(base);
    if (found != ops.end()) op = found->second;
    if (op.empty()) op = files.ops.empty() ? "none" : files.ops.back();
  }
  return ops;
}

constexpr const char* kTitle = "# Cases of ONNX's test data\n\n";
constexpr const char* kOfDebian =
    R"(Made by `onnx_cases --write docs/onnx_cases.md`; a test compares it with the outcomes. The data is Debian's
`libonnx-testdata` (ONNX 1.12). Tolerance: 1e-3 relative, 1e-7 absolute, as in ONNX's own runner.
)";
constexpr const char* kOfFolder =
    R"(Made by `onnx_cases --data FOLDER --write PAGE`. The data is not part of the project. Tolerance: 1e-3 relative,
1e-7 absolute, as in ONNX's own runner.
)";
constexpr const char* kRun = "Run: ";
constexpr const char* kHead = R"(
| column | meaning |
| --- | --- |
| eager, traced | passed in eager mode; passed under `jit` with all inputs as arguments |
| fixed | passed under `jit` with integers, booleans, single numbers and the scales of Resize captured: an op reads sizes or positions from them |
| saved | passed after `save_onnx` wrote the loaded model and `load_onnx` read it again; integers as in *traced* or *fixed* |
| drawn | random numbers, which differ between implementations: sizes and dtypes are right in both modes, and saved |
| refused | passed in eager mode; under `jit`, the error names the op whose result has a size that only a run knows |
| no rule | the model has an op or type without a rule; load_onnx lists it |
| failed | wrong values or another error in one of the modes, or saved |

| op, or set | cases | eager | traced | fixed | saved | drawn | refused | no rule | failed |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
)";

/// The data, and the words about it on the page.
struct CaseSource {
  std::string folder = REEL_ONNX_DATA, words = kOfDebian;
  std::int64_t op_set = 17;  ///< the newest op set of the data that has a page
};

std::string make_page(const CaseSource& source) {
  std::map<std::string, Row> rows;
  std::map<std::string, Row> sets;
  std::string details, missing;
  Row total;
  for (const char* set : kSets) {
    const std::vector<CaseFiles> cases = case_files(source.folder, set);
    const auto ops = ops_of(cases);
    const bool is_node = std::string(set) == "node";
    for (const CaseFiles& files : cases) {
      const CaseOutcome outcome = run_case(files);
      (is_node ? rows[ops.at(name_of(files))] : sets[str("set ", set)]).add(outcome);
      if (is_node) sets["set node"].add(outcome);
      total.add(outcome);
      const std::string line = str("| ", name_of(files), " | ");
      const std::string flaw = flaw_of(name_of(files));
      if (outcome.eager == CaseResult::not_supported)
        missing +=
            line + first_lines(outcome.reason.substr(outcome.reason.find('\n') + 1), 100) + " |\n";
      else if (has_failed(outcome) || outcome.traced == CaseResult::refused)
        details += str(line, text_of(outcome.eager), ", ", text_of(outcome.traced), ", ",
                       text_of(outcome.saved), " | ",
                       flaw.empty() ? first_lines(outcome.reason, 160) : flaw, " |\n");
    }
  }
  std::string page = str(kTitle, source.words, kHead);
  page += total.text("**all**");
  for (const auto& [name, row] : sets) page += row.text(name);
  for (const auto& [name, row] : rows) page += row.text(name);
  page += str(
      "\n## Refused and failed\n\n| case | eager, traced, saved | reason |\n| --- | --- | --- |\n",
      details);
  page += str("\n## Without a rule\n\n| case | listed by load_onnx |\n| --- | --- |\n", missing);
  return page;
}

std::string contents_of(const std::string& path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

int check(const std::string& page, const std::string& path) {
  std::istringstream made(page), there(contents_of(path));
  std::string a, b;
  int differences = 0;
  const auto next_line = [](std::istream& from, std::string& line) {
    while (std::getline(from, line))
      if (!line.starts_with(kRun)) return true;
    return false;
  };
  while (true) {
    const bool more_made = next_line(made, a), more_there = next_line(there, b);
    if (!more_made && !more_there) break;
    if (more_made != more_there || a != b) {
      std::cout << "made:  " << (more_made ? a : "") << "\nthere: " << (more_there ? b : "")
                << "\n";
      if (++differences == 10) break;
    }
  }
  if (differences)
    std::cout << path << " is not what the cases give; run onnx_cases --write " << path << "\n";
  return differences ? 1 : 0;
}

/// Returns the highest op set of the cases of ops.
std::int64_t newest_op_set(const std::string& data) {
  std::int64_t newest = 0;
  for (const CaseFiles& files : case_files(data, "node")) newest = std::max(newest, files.op_set);
  return newest;
}

/// Removes a leading option and its value from the arguments. Returns the value, or nothing.
std::optional<std::string> take_option(std::vector<std::string>& arguments,
                                       const std::string& name) {
  if (arguments.size() < 2 || arguments[0] != name) return {};
  std::string value = arguments[1];
  arguments.erase(arguments.begin(), arguments.begin() + 2);
  return value;
}

int main_of(std::vector<std::string> arguments) {
  CaseSource source;
  if (const auto folder = take_option(arguments, "--data")) source = {*folder, kOfFolder, 27};
  if (const auto variable = take_option(arguments, "--data-of")) {
    const char* folder = std::getenv(variable->c_str());
    if (!folder) {
      std::cout << *variable << " names no folder: no case was run\n";
      return 77;
    }
    source = {folder, kOfFolder, 27};
  }
  if (const auto run = take_option(arguments, "--run")) source.words += str(kRun, *run, "\n");
  if (!std::filesystem::exists(source.folder)) {
    std::cout << "there is no " << source.folder
              << " (Debian: libonnx-testdata): no case was run\n";
    return 77;
  }
  if (arguments.size() == 2 && arguments[0] == "--check") {
    const std::int64_t newest = newest_op_set(source.folder);
    if (newest != source.op_set) {  // Debian 13 has newer data
      std::cout << "the data has op set " << newest << ", the page is about op set "
                << source.op_set << ": no case was run\n";
      return 77;
    }
    return check(make_page(source), arguments[1]);
  }
  if (arguments.size() == 2 && arguments[0] == "--write") {
    const std::string page = make_page(source);
    std::ofstream(arguments[1]) << page;
    return 0;
  }
  if (arguments.size() != 1) {
    std::cout
        << "usage: onnx_cases [--data FOLDER] [--run TEXT] --check PAGE | --write PAGE | NAME\n";
    return 2;
  }
  for (const char* set : kSets)
    for (const CaseFiles& files : case_files(source.folder, set)) {
      if (name_of(files).find(arguments[0]) == std::string::npos) continue;
      const CaseOutcome outcome = run_case(files);
      std::cout << name_of(files) << ": " << text_of(outcome.eager) << ", traced "
                << text_of(outcome.traced) << ", saved " << text_of(outcome.saved) << " "
                << outcome.reason << std::endl;
    }
  return 0;
}

}  // namespace
}  // namespace reel

int main(int count, char** arguments) { return reel::main_of({arguments + 1, arguments + count}); }
