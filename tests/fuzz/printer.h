// tests/fuzz/printer.h — Printer, which writes a program as C++.
#pragma once

#include <string>
#include <vector>

#include "reel/tests/fuzz/program.h"

namespace reel::fuzz {

/// What rules print with.
class Printer {
 public:
  explicit Printer(const Program& program) : program_(program) {}

  const Program& program() const { return program_; }
  std::string value(int value) const { return "v" + std::to_string(value); }
  std::string dim(int dim) const;
  /// True the first time: slices of one dim are defined once.
  bool defines(int dim);
  /// {batch, 3}
  std::string dims(const std::vector<int>& list) const;
  static std::string number(double number);
  /// TensorType{f64, {batch}}
  std::string type(const ValueType& type) const;
  /// {v1, v2}
  std::string values(const std::vector<int>& list) const;
  /// {{v1, v2}, {v3}}: a State.
  std::string state(const std::vector<int>& values) const;

  void line(const std::string& text);
  /// const Tensor v1 = text;
  void define(int value, const std::string& text);
  /// Takes values out of the State of that name.
  void unpack(const std::vector<int>& values, const std::string& name);
  /// A block as a lambda: [&](params) -> result { ... } and what follows it. state: the name of its
  /// parameter, if it has one.
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

/// A program that compiles on its own: it runs the program eagerly and traced, and prints results
/// and gradients.
std::string to_source(const Program& program);

}  // namespace reel::fuzz
