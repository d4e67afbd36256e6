// tests/fuzz/rule.h — Rule, what an instruction does: how it is drafted, run, and printed.
#pragma once

#include <string>
#include <vector>

#include "reel/tests/fuzz/program.h"

namespace reel::fuzz {

class Drafter;  // drafter.h
class Machine;  // machine.h
class Printer;  // printer.h

/// One kind of instruction. Rules are immutable, and live as long as the programs that use them.
class Rule {
 public:
  Rule(std::string name, int weight) : name_(std::move(name)), weight_(weight) {}
  virtual ~Rule() = default;

  const std::string& name() const { return name_; }
  /// How often it is drawn, compared with others.
  int weight() const { return weight_; }

  /// Makes an instruction of what the draft sees: inputs, attributes, types of its outputs. False
  /// where nothing fits; then the draft is as it was.
  virtual bool draft(Drafter& drafter, Instruction& instruction) const = 0;
  virtual void run(const Instruction& instruction, Machine& machine) const = 0;
  /// As statements of C++.
  virtual void print(const Instruction& instruction, Printer& printer) const = 0;

 private:
  std::string name_;
  int weight_;
};

/// The rules that programs are made of.
using Rules = std::vector<const Rule*>;

/// All of them: every family of ops, and control flow.
const Rules& all_rules();

}  // namespace reel::fuzz
