// Saved functions have their values when onnxruntime runs them. Needs node and npm, and the package
// onnxruntime-node, which is installed into the build folder.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "reel/tests/check.h"
#include "reel/tests/onnx/saved_case.h"
#include "reel/tests/own_folder.h"

namespace reel {
namespace {

constexpr const char* kPackage = "onnxruntime-node@1.20.1";

bool runs(const std::string& command) { return std::system(command.c_str()) == 0; }

/// Returns true if node can load onnxruntime, after installing it if it is missing. The script of
/// the package would download files that are in it already.
bool has_onnxruntime() {
  if (!runs("node --version > /dev/null 2>&1 && npm --version > /dev/null 2>&1")) return false;
  const std::string check = "node -e \"require('onnxruntime-node')\" > /dev/null 2>&1";
  if (runs(check)) return true;
  return runs(str("npm install --ignore-scripts --no-audit --no-fund --prefix . ", kPackage,
                  " > npm.log 2>&1")) &&
         runs(check);
}

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

/// Case names without spaces.
std::string word(std::string name) {
  std::replace(name.begin(), name.end(), ' ', '_');
  return name;
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
  for (std::int64_t i = 0; i < count && in >> value; ++i) values.push_back(std::stod(value));
  return cast(reshape(tensor(values, {Dim(count)}, f64), sizes), dtype_named(type));
}

class OnnxruntimeTest : public InOwnFolder {
 protected:
  OnnxruntimeTest() : InOwnFolder("cases.txt") {}

  /// Writes all cases, runs them, and returns the printed lines.
  std::string run_all() {
    std::ofstream out(path);
    int number = 0;
    for (const SavedCase& saved : all_saved_cases()) {
      if (!saved.failure.empty()) continue;  // SavedFunctionsTest reports it
      const std::string file = (folder_ / str(number++, ".onnx")).string();
      write(file, saved.bytes);
      out << "model " << word(saved.name) << ' ' << file << '\n';
      for (const auto& [name, value] : saved.inputs) {
        out << "input " << name;
        write_tensor(out, value);
        out << '\n';
      }
    }
    out.close();
    const std::string result = (folder_ / "outputs.txt").string();
    // node looks for packages beside the script.
    std::filesystem::copy_file(REEL_ONNXRUNTIME_JS, "onnxruntime.js",
                               std::filesystem::copy_options::overwrite_existing);
    EXPECT_TRUE(runs(str("node onnxruntime.js ", path, " > ", result)));
    return bytes_of(result);
  }
};

TEST_F(OnnxruntimeTest, GivesTheValuesOfSavedFunctions) {
  if (!has_onnxruntime())
    GTEST_SKIP() << "SKIPPED: node, npm or the package " << kPackage << " is missing";
  std::map<std::string, const SavedCase*> cases;
  for (const SavedCase& saved : all_saved_cases()) cases[word(saved.name)] = &saved;
  std::map<std::string, std::map<std::string, Tensor>> outputs;
  std::istringstream lines(run_all());
  std::string line, name;
  while (std::getline(lines, line)) {
    std::istringstream text(line);
    std::string kind, output;
    text >> kind;
    if (kind == "case") {
      text >> name;
      outputs[name];
    } else if (kind == "error") {
      text >> name;
      ADD_FAILURE() << line;
      cases.erase(name);
    } else if (kind == "output") {
      text >> output;
      outputs[name][output] = read_tensor(text);
    }
  }
  for (const auto& [key, saved] : cases)
    if (saved->failure.empty()) expect_outputs(*saved, outputs[key], "by onnxruntime");
}

}  // namespace
}  // namespace reel
