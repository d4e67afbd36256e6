// tests/fuzz/program/printer.h — Printer, which writes a program as C++.
#pragma once

#include <string>
#include <vector>

#include "reel/tests/fuzz/program/program.h"

namespace reel::fuzz {

/// The output of rules: names of values and dims, and statements.
class Printer {
 public:
  explicit Printer(const Program& program) : program_(program) {}

  const Program& program() const { return program_; }
  std::string value(int value) const { return "v" + std::to_string(value); }
  std::string dim(int dim) const;
  /// True at the first call for a dim: a slice is defined only once.
  bool defines(int dim);
  /// Returns a list of dims, as in {batch, 3}.
  std::string dims(const std::vector<int>& list) const;
  static std::string number(double number);
  /// Returns a type, as in TensorType{f64, {batch}}.
  std::string type(const ValueType& type) const;
  /// Returns a list of values, as in {v1, v2}.
  std::string values(const std::vector<int>& list) const;
  /// Returns a State, as in {{v1, v2}, {v3}}.
  std::string state(const std::vector<int>& values) const;

  void line(const std::string& text);
  /// Prints a definition, as in const Tensor v1 = text;
  void define(int value, const std::string& text);
  /// Defines values from the State of this name.
  void unpack(const std::vector<int>& values, const std::string& name);
  /// Prints a block as a lambda, [&](params) -> result { ... }, followed by `end`. state: the name
  /// of its parameter, if it has one.
  void lambda(const std::string& params, const std::string& result, const Block& block,
              const std::string& state, const std::string& end);
  void body(const Block& block);
  void in() { ++depth_; }
  void out() { --depth_; }
  std::string text() const { return text_; }

 private:
  const Program& program_;
  std::string text_;
  int depth_ = 1;
  std::vector<int> defined_;
};

/// Returns C++ code that compiles by itself. It runs the program eagerly and traced, and prints
/// results and gradients.
std::string to_source(const Program& program);

}  // namespace reel::fuzz
