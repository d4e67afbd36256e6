// onnx_info FILE — what is in an ONNX model: inputs, outputs, parameters, ops, and what Reel lacks.
//
// Without a file it describes a model that it saves itself.
#include <reel/onnx.h>
#include <reel/reel.h>

#include <iostream>
#include <string>
#include <tuple>

using namespace reel;

namespace {

constexpr std::size_t kMaxShown = 20;  // parameters

void print(const OnnxDescription& model) {
  std::cout << "IR version " << model.ir_version << "; op sets:";
  for (const auto& [domain, version] : model.op_sets) std::cout << ' ' << domain << ' ' << version;
  std::cout << "\n\ninputs\n";
  for (const auto& [name, type] : model.inputs) std::cout << "  " << name << ": " << type << '\n';
  std::cout << "\noutputs\n";
  for (const auto& [name, type] : model.outputs) std::cout << "  " << name << ": " << type << '\n';

  std::cout << '\n'
            << model.parameters.size() << " parameters, " << model.parameter_count()
            << " elements\n";
  std::size_t shown = 0;
  for (const auto& [name, type] : model.parameters) {
    if (++shown > kMaxShown) {
      std::cout << "  ... and " << model.parameters.size() - kMaxShown << " more\n";
      break;
    }
    std::cout << "  " << name << ": " << type << '\n';
  }

  std::cout << "\nops\n";
  for (const auto& [op, count] : model.ops) std::cout << "  " << op << ": " << count << '\n';
  if (model.without_rule.empty()) return;
  std::cout << "\nReel has no rule for\n";
  for (const std::string& line : model.without_rule) std::cout << "  " << line << '\n';
}

/// Saves a small network, so that the program has something to describe.
void save_network(const std::string& path) {
  const auto network = [](const Tensor& w, const Tensor& x) { return tanh(matmul(x, w)); };
  save_onnx(path, network, std::tuple{ones({3, 2}), ones({1, 3})},
            {.arguments = {"w", "x"}, .parameters = {0}, .any_length = {{1, 0}}});
}

}  // namespace

int main(int argc, char** argv) try {
  std::string path = "onnx_info.onnx";
  if (argc > 1)
    path = argv[1];
  else
    save_network(path);
  print(describe_onnx(path));
} catch (const Error& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
