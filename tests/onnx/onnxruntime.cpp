#include "reel/tests/onnx/onnxruntime.h"

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>

#include "reel/core/base/str.h"
#include "reel/tests/check.h"

namespace reel {
namespace {

bool runs(const std::string& command) { return std::system(command.c_str()) == 0; }

const char* type_name(DType dtype) {
  constexpr const char* kNames[] = {"float32", "float64", "int32", "int64", "bool"};
  constexpr DType kTypes[] = {f32, f64, i32, i64, boolean};
  return kNames[std::find(kTypes, kTypes + 5, dtype) - kTypes];
}
DType dtype_named(const std::string& name) {
  for (const DType dtype : {f32, f64, i32, i64, boolean})
    if (name == type_name(dtype)) return dtype;
  throw std::runtime_error("onnxruntime returned a tensor of type " + name);
}

void write_tensor(std::ostream& out, const Tensor& x) {
  out << ' ' << type_name(x.dtype()) << ' ' << x.rank();
  for (const std::int64_t size : x.type().sizes()) out << ' ' << size;
  out.precision(17);
  if (x.dtype() == i64) {
    for (const std::int64_t value : x.to_vector<std::int64_t>()) out << ' ' << value;
  } else {
    for (const double value : values_of(x)) out << ' ' << value;
  }
}

Tensor read_tensor(std::istream& in) {
  std::string type, value;
  std::size_t rank = 0;
  in >> type >> rank;
  std::vector<std::int64_t> sizes(rank);
  std::int64_t count = 1;
  for (std::int64_t& size : sizes) {
    in >> size;
    count *= size;
  }
  std::vector<double> values;
  for (std::int64_t i = 0; i < count && in >> value; ++i)
    values.push_back(std::strtod(value.c_str(), nullptr));  // stod refuses denormals
  return cast(reshape(tensor(values, {Dim(count)}, f64), sizes), dtype_named(type));
}

}  // namespace

// The script of the package would download files that are in it already.
bool has_onnxruntime() {
  if (!runs("node --version > /dev/null 2>&1 && npm --version > /dev/null 2>&1")) return false;
  const std::string check = "node -e \"require('onnxruntime-node')\" > /dev/null 2>&1";
  if (runs(check)) return true;
  return runs(str("npm install --ignore-scripts --no-audit --no-fund --prefix . ", kOnnxruntime,
                  " > npm.log 2>&1")) &&
         runs(check);
}

namespace {

/// Runs the cases from `first` to `end`. Returns the number of the first case that did not run:
/// node ends if onnxruntime crashes. level: of onnxruntime's optimiser.
std::size_t run_some(std::size_t first, std::size_t end, const char* level,
                     const std::vector<SavedCase>& cases, const std::filesystem::path& folder,
                     std::vector<OnnxruntimeResult>& results) {
  const std::filesystem::path list = folder / "cases.txt", printed = folder / "outputs.txt";
  std::ofstream out(list);
  for (std::size_t i = first; i < end; ++i) {
    if (!cases[i].failure.empty()) continue;
    const std::filesystem::path file = folder / str(i, ".onnx");
    std::ofstream(file, std::ios::binary) << cases[i].bytes;
    out << "model " << i << ' ' << file.string() << '\n';
    for (const auto& [name, value] : cases[i].inputs) {
      out << "input " << name;
      write_tensor(out, value);
      out << '\n';
    }
  }
  out.close();
  const bool has_finished = runs(str("node onnxruntime.js ", list.string(), ' ', level, " > ",
                                     printed.string(), " 2> ", (folder / "errors.txt").string()));
  std::ifstream in(printed);
  std::string line;
  std::size_t next = first;
  for (OnnxruntimeResult* result = nullptr; std::getline(in, line);) {
    std::istringstream text(line);
    std::string kind, name;
    text >> kind >> name;
    if (kind == "case" || kind == "error") {
      next = std::stoul(name) + 1;
      result = &results.at(next - 1);
    }
    if (kind == "error") result->error = line;
    if (kind == "output") result->outputs[name] = read_tensor(text);
  }
  return has_finished ? end : next;
}

}  // namespace

std::vector<OnnxruntimeResult> run_onnxruntime(const std::vector<SavedCase>& cases,
                                               const std::filesystem::path& folder) {
  // node looks for packages beside the script.
  std::filesystem::copy_file(REEL_ONNXRUNTIME_JS, "onnxruntime.js",
                             std::filesystem::copy_options::overwrite_existing);
  std::vector<OnnxruntimeResult> results(cases.size());
  for (std::size_t next = 0; next < cases.size(); ++next) {
    next = run_some(next, cases.size(), "all", cases, folder, results);
    while (next < cases.size() && !cases[next].failure.empty()) ++next;
    if (next == cases.size()) break;
    results[next].optimiser_fails = true;
    if (run_some(next, next + 1, "disabled", cases, folder, results) == next)
      results[next].error = "onnxruntime crashed";
  }
  // The optimiser moves nodes of inner graphs to where they have no inputs, without a crash.
  for (std::size_t i = 0; i < cases.size(); ++i) {
    if (results[i].error.empty() || results[i].optimiser_fails) continue;
    std::vector<OnnxruntimeResult> again(cases.size());
    run_some(i, i + 1, "disabled", cases, folder, again);
    if (again[i].error.empty() && !again[i].outputs.empty())
      results[i] = {.outputs = again[i].outputs, .optimiser_fails = true};
  }
  return results;
}

}  // namespace reel
