// fuzz_onnx — loads damaged models: every one gives a model or an Error, without a crash.
//
//   fuzz_onnx SECONDS [SEED]   damages models for this long; prints how many were loaded
//   fuzz_onnx FILE             loads one file, such as fuzz_onnx.last after a crash
//
// Half of the damages change bytes, half change the protobuf: ops, names, attributes, sizes, graphs
// in graphs. A crash ends the program; the model is then in the file fuzz_onnx.last.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <limits>
#include <random>
#include <sstream>

#include "reel/onnx.h"
#include "reel/onnx/proto.h"

namespace reel {
namespace {

using ::onnx::GraphProto;
using ::onnx::ModelProto;

constexpr std::size_t kLargestSeed = 1 << 14;  // bytes of a model that is damaged

std::string contents_of(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream bytes;
  bytes << in.rdbuf();
  return bytes.str();
}

/// Returns the small models of ONNX's test data.
std::vector<std::string> seeds(const std::string& data) {
  std::vector<std::string> seeds;
  std::error_code error;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(data, error)) {
    if (entry.path().filename() != "model.onnx" || entry.file_size() > kLargestSeed) continue;
    seeds.push_back(contents_of(entry.path()));
  }
  std::sort(seeds.begin(), seeds.end());
  return seeds;
}

class Damage {
 public:
  Damage(const std::vector<std::string>& seeds, std::uint64_t seed)
      : seeds_(seeds), random_(seed) {}

  std::string next() {
    std::string bytes = any_seed();
    if (below(2)) bytes = changed_model(bytes);
    if (below(2))
      for (std::uint64_t i = below(8) + 1; i > 0; --i) change_bytes(bytes);
    return bytes;
  }

 private:
  std::uint64_t below(std::uint64_t limit) { return random_() % limit; }
  const std::string& any_seed() { return seeds_[below(seeds_.size())]; }

  void change_bytes(std::string& bytes) {
    if (bytes.empty()) return;
    const std::size_t at = below(bytes.size());
    switch (below(5)) {
      case 0:
        bytes[at] = static_cast<char>(random_());
        break;
      case 1:
        bytes.erase(at, below(16) + 1);
        break;
      case 2:
        bytes.insert(at, bytes.substr(below(bytes.size()), below(32) + 1));
        break;
      case 3:
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8)));
        break;
      default:
        bytes[at] = '\xff';
    }
  }

  std::int64_t any_number() {
    constexpr std::int64_t kNumbers[] = {0,
                                         1,
                                         -1,
                                         2,
                                         3,
                                         7,
                                         64,
                                         -2,
                                         1 << 20,
                                         std::int64_t{1} << 40,
                                         std::numeric_limits<std::int64_t>::max(),
                                         std::numeric_limits<std::int64_t>::min()};
    return kNumbers[below(std::size(kNumbers))];
  }

  std::string changed_model(const std::string& bytes) {
    ModelProto model, other;
    if (!model.ParseFromString(bytes)) return bytes;
    other.ParseFromString(any_seed());
    for (std::uint64_t i = below(4) + 1; i > 0; --i) change(model, *model.mutable_graph(), other);
    return model.SerializeAsString();
  }

  void change(ModelProto& model, GraphProto& graph, const ModelProto& other) {
    if (below(8) == 0 && model.opset_import_size()) {
      model.mutable_opset_import(0)->set_version(any_number());
      return;
    }
    if (graph.node_size() == 0) return;
    auto& node =
        *graph.mutable_node(static_cast<int>(below(static_cast<std::uint64_t>(graph.node_size()))));
    const auto any = [&](int count) {
      return static_cast<int>(below(static_cast<std::uint64_t>(count)));
    };
    switch (below(10)) {
      case 0:
        if (other.graph().node_size())
          node.set_op_type(other.graph().node(any(other.graph().node_size())).op_type());
        break;
      case 1:
        if (node.input_size() && node.output_size())
          node.set_input(any(node.input_size()), node.output(0));
        break;
      case 2:
        if (node.input_size()) node.mutable_input()->RemoveLast();
        break;
      case 3:
        *graph.add_node() = node;
        break;
      case 4:
        if (other.graph().node_size())
          *graph.add_node() = other.graph().node(any(other.graph().node_size()));
        break;
      case 5: {  // a graph in itself
        auto& attribute = *node.add_attribute();
        attribute.set_name("body");
        attribute.set_type(::onnx::AttributeProto::GRAPH);
        const GraphProto copy = graph;
        *attribute.mutable_g() = copy;
        break;
      }
      case 6:
        if (node.attribute_size()) {
          auto& attribute = *node.mutable_attribute(any(node.attribute_size()));
          attribute.set_i(any_number());
          if (attribute.ints_size()) attribute.set_ints(any(attribute.ints_size()), any_number());
        }
        break;
      case 7:
        if (graph.initializer_size()) {
          auto& tensor = *graph.mutable_initializer(any(graph.initializer_size()));
          tensor.add_dims(any_number());
          tensor.set_data_type(any(20));
        }
        break;
      case 8: {  // a function that the node calls, and which calls itself
        auto& function = *model.add_functions();
        function.set_name("f");
        function.set_domain("local");
        for (const auto& name : node.input()) function.add_input(name);
        for (const auto& name : node.output()) function.add_output(name);
        *function.add_opset_import() = model.opset_import(0);
        auto& import = *function.add_opset_import();
        import.set_domain("local");
        import.set_version(1);
        *function.add_node() = node;
        node.set_domain("local");
        node.set_op_type("f");
        *function.add_node() = node;
        *model.add_opset_import() = import;
        break;
      }
      default:
        if (node.attribute_size()) node.mutable_attribute()->RemoveLast();
    }
  }

  const std::vector<std::string>& seeds_;
  std::mt19937_64 random_;
};

/// Returns true if the bytes give a model.
bool loads(const std::string& bytes) {
  try {
    load_onnx_bytes(bytes);
    return true;
  } catch (const Error&) {
    return false;
  }
}

int main_of(const std::vector<std::string>& arguments) {
  if (arguments.empty() || arguments.size() > 2) {
    std::cout << "usage: fuzz_onnx SECONDS [SEED] | FILE\n";
    return 2;
  }
  if (std::filesystem::exists(arguments[0])) {
    std::cout << (loads(contents_of(arguments[0])) ? "a model\n" : "an error\n");
    return 0;
  }
  const std::vector<std::string> all = seeds(REEL_ONNX_DATA);
  if (all.empty()) {
    std::cout << "there is no test data of ONNX (Debian: libonnx-testdata)\n";
    return 77;
  }
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(std::stol(arguments[0]));
  Damage damage(all, arguments.size() > 1 ? std::stoull(arguments[1]) : 0);
  std::int64_t count = 0, models = 0;
  for (; std::chrono::steady_clock::now() < end; ++count) {
    const std::string bytes = damage.next();
    std::ofstream("fuzz_onnx.last", std::ios::binary | std::ios::trunc) << bytes;
    models += loads(bytes);
  }
  std::cout << count << " damaged models, of which " << models << " were loaded\n";
  return 0;
}

}  // namespace
}  // namespace reel

int main(int count, char** arguments) { return reel::main_of({arguments + 1, arguments + count}); }
