#include "reel/tests/fuzz/program/printer.h"

#include <cmath>
#include <sstream>

#include "reel/tests/fuzz/arguments.h"
#include "reel/tests/fuzz/policies.h"
#include "reel/tests/fuzz/rules/rule.h"
#include "reel/tests/fuzz/shrinking/simplify.h"
#include "reel/tests/fuzz/shrinking/variants.h"

namespace reel::fuzz {
namespace {

const char* name_of(const Program& program, Element element) {
  return reel::name_of(dtype_of(program, element));
}

std::string joined(const std::vector<std::string>& items) {
  std::string text;
  for (const std::string& item : items) text += (text.empty() ? "" : ", ") + item;
  return "{" + text + "}";
}

}  // namespace

std::string Printer::dim(int dim) const {
  const DimInfo& info = program_.dims[dim];
  return info.is_named() ? info.name : std::to_string(info.size);
}

bool Printer::defines(int dim) {
  if (contains(defined_, dim)) return false;
  defined_.push_back(dim);
  return true;
}

std::string Printer::dims(const std::vector<int>& list) const {
  std::vector<std::string> items;
  for (const int item : list) items.push_back(dim(item));
  return joined(items);
}

std::string Printer::number(double number) {
  if (std::isnan(number)) return "NAN";
  std::ostringstream out;
  out.precision(17);
  out << number;
  const std::string text = out.str();
  return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}

std::string Printer::type(const ValueType& type) const {
  return std::string("TensorType{") + name_of(program_, type.element) + ", " + dims(type.dims) +
         "}";
}

std::string Printer::values(const std::vector<int>& list) const {
  std::vector<std::string> items;
  for (const int item : list) items.push_back(value(item));
  return joined(items);
}

std::string Printer::state(const std::vector<int>& list) const {
  std::vector<int> tensors, arrays;
  for (const int item : list) (program_.values[item].is_array ? arrays : tensors).push_back(item);
  return "{" + values(tensors) + ", " + values(arrays) + "}";
}

void Printer::line(const std::string& text) { text_ += std::string(2 * depth_, ' ') + text + "\n"; }

void Printer::define(int value, const std::string& text) {
  const char* type = program_.values[value].is_array ? "TensorArray" : "Tensor";
  line("const " + std::string(type) + " " + this->value(value) + " = " + text + ";");
}

void Printer::unpack(const std::vector<int>& values, const std::string& name) {
  int tensors = 0, arrays = 0;
  for (const int value : values) {
    const bool is_array = program_.values[value].is_array;
    define(value, name + (is_array ? ".arrays[" : ".tensors[") +
                      std::to_string(is_array ? arrays++ : tensors++) + "]");
  }
}

void Printer::lambda(const std::string& params, const std::string& result, const Block& block,
                     const std::string& state, const std::string& end) {
  line("[&](" + params + ") -> " + result + " {");
  in();
  unpack(block.params, state);
  body(block);
  line("return " +
       (result == "State" ? "State" + this->state(block.results) : value(block.results.at(0))) +
       ";");
  out();
  line("}" + end);
}

void Printer::body(const Block& block) {
  for (const Instruction& instruction : block.body) instruction.rule->print(instruction, *this);
}

namespace {

constexpr const char* kBegin = R"(#include <cmath>
#include <iostream>

#include "reel/core/runtime/random.h"
#include "reel/frontend/transforms/branch_cost.h"
#include "reel/reel.h"

using namespace reel;

struct State {
  Tensors tensors;
  std::vector<TensorArray> arrays;
};
)";

constexpr const char* kMain = R"(
int main() {
)";

constexpr const char* kTakenRows = R"(  const TakenRowsScope rule(TakenRowsRule::always);
)";

constexpr const char* kEnd =
    R"(  const auto show = [](const char* what, const auto& function, const Tensors& arguments) {
    manual_seed(SEED);
    try {
      const auto [results, gradient] = function(arguments);
      std::cout << what << ":\n";
      for (const Tensor& result : results.second) std::cout << "  " << result << '\n';
      for (const Tensor& cotangent : gradient) std::cout << "  gradient " << cotangent << '\n';
    } catch (const std::exception& error) {
      std::cout << what << " throws: " << error.what() << '\n';
    }
  };
  const auto eager = value_and_grad(function);
  const auto traced = jit(eager);
  show("eager", eager, arguments);
  show("traced", traced, arguments);
  show("of traced", value_and_grad(jit(function)), arguments);
  show("eager elsewhere", eager, elsewhere);
  show("traced elsewhere", traced, elsewhere);
)";

constexpr const char* kSecond = R"(  const auto slope = [](const auto& f) {
    return [f](const Tensors& x) {
      Tensor total = scalar(0.0, REAL);
      for (const Tensor& cotangent : grad(f)(x))
        if (is_float(cotangent.dtype())) total = total + sum(sin(cotangent));
      return std::pair{total, Tensors{total}};
    };
  };
  const auto second = value_and_grad(slope(function));
  show("second gradient, eager", second, arguments);
  show("second gradient, traced", jit(second), arguments);
  show("second gradient of traced", value_and_grad(slope(jit(function))), arguments);
)";

constexpr const char* kWithoutPolicies = R"(  has_policies = false;
  show("eager, without policies", eager, arguments);
  show("traced, without policies", jit(eager), arguments);
  show("second gradient, eager, without policies", second, arguments);
)";

std::string with(std::string text, const std::string& name, const std::string& value) {
  const std::size_t at = text.find(name);
  return at == text.npos ? text : text.replace(at, name.size(), value);
}

std::string dim_text(const DimInfo& info, const Call& call, const Printer& p) {
  std::vector<std::string> lengths;
  for (const int length : lengths_of(info, call)) lengths.push_back(std::to_string(length));
  std::string size = std::to_string(info.size);
  if (info.kind == DimInfo::Kind::dynamic) size = "scalar(" + lengths.at(0) + ")";
  if (info.kind == DimInfo::Kind::ragged)
    size = "tensor(std::vector<int>" + joined(lengths) + ", " + p.dims(info.over) + ")";
  return "const Dim " + info.name + "(\"" + info.name + "\", " + size + ");";
}

std::string input_text(const Program& program, std::size_t i, const Call& call, const Printer& p) {
  const ValueType& type = program.values[program.main.params[i]];
  std::vector<std::string> items;
  for (const double value : input_values(program, i, call)) items.push_back(Printer::number(value));
  const std::string dtype = name_of(program, type.element);
  const std::string made = type.dims.empty() ? "scalar(" + items.at(0) + ", f64)"
                                             : "tensor(std::vector<double>" + joined(items) + ", " +
                                                   p.dims(type.dims) + ")";
  return dtype == "f64" ? made : "cast(" + made + ", " + dtype + ")";
}

void print_arguments(const Program& program, const std::string& name, const Call& call,
                     Printer& p) {
  p.line("const Tensors " + name + " = [&] {");
  p.in();
  const std::vector<bool> used = dims_in_use(program);
  for (std::size_t i = 0; i < program.dims.size(); ++i)
    if (used[i] && program.dims[i].comes_with_arguments())
      p.line(dim_text(program.dims[i], call, p));
  p.line("return Tensors{");
  p.in();
  for (std::size_t i = 0; i < program.inputs.size(); ++i)
    if (!program.inputs[i].is_captured) p.line(input_text(program, i, call, p) + ",");
  p.out();
  p.line("};");
  p.out();
  p.line("}();");
}

void print_function(const Program& program, Printer& p) {
  p.line("const auto function = [&](const Tensors& x) {");
  p.in();
  std::vector<int> known;
  int next = 0;
  for (std::size_t i = 0; i < program.inputs.size(); ++i) {
    if (program.inputs[i].is_captured) continue;
    const int value = program.main.params[i];
    p.define(value, "x[" + std::to_string(next++) + "]");
    for (const int dim : program.values[value].dims) {
      const DimInfo& info = program.dims[dim];
      if (!info.comes_with_arguments() || contains(known, dim)) continue;
      known.push_back(dim);
      p.line("const Dim " + info.name + " = " + p.value(value) + ".dim(\"" + info.name + "\");");
    }
  }
  p.body(program.main);
  p.line("return std::pair{" + p.value(program.main.results[0]) + ", Tensors" +
         p.values(program.main.results) + "};");
  p.out();
  p.line("};");
}

}  // namespace

std::string to_source(const Program& program) {
  Printer p(program);
  const std::vector<bool> used = dims_in_use(program);
  for (std::size_t i = 0; i < program.dims.size(); ++i)
    if (used[i] && program.dims[i].kind != DimInfo::Kind::found && program.dims[i].is_named() &&
        !program.dims[i].comes_with_arguments())
      p.line(dim_text(program.dims[i], {}, p));
  for (std::size_t i = 0; i < program.inputs.size(); ++i)
    if (program.inputs[i].is_captured)
      p.define(program.main.params[i], input_text(program, i, {}, p));
  print_arguments(program, "arguments", {}, p);
  print_arguments(program, "elsewhere", {.is_elsewhere = true}, p);
  print_function(program, p);
  const bool uses_policies = has_policies(program) || has_checkpointed(program);
  return kBegin + std::string(uses_policies ? kPolicyHelpers : "") + kMain +
         (program.packs_taken_rows() ? kTakenRows : "") + p.text() +
         with(kEnd, "SEED", std::to_string(program.seed)) +
         with(kSecond, "REAL", program.real == f64 ? "f64" : "f32") +
         (uses_policies ? kWithoutPolicies : "") + "}\n";
}

}  // namespace reel::fuzz
