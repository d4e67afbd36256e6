// tests/fuzz/rules/rule.h — Rule, one kind of instruction: drafting, running and printing it.
#pragma once

#include <string>
#include <vector>

#include "reel/tests/fuzz/program/program.h"

namespace reel::fuzz {

class Drafter;  // drafter.h
class Machine;  // machine.h
class Printer;  // printer.h

/// One kind of instruction. Rules are immutable and must outlive the programs that use them.
class Rule {
 public:
  Rule(std::string name, int weight) : name_(std::move(name)), weight_(weight) {}
  virtual ~Rule() = default;

  const std::string& name() const { return name_; }
  /// Returns the frequency of draws, relative to other rules.
  int weight() const { return weight_; }

  /// Fills in an instruction from the values that the draft sees: inputs, attributes, types of its
  /// outputs. Returns false, and leaves the draft unchanged, if no inputs fit.
  virtual bool draft(Drafter& drafter, Instruction& instruction) const = 0;
  virtual void run(const Instruction& instruction, Machine& machine) const = 0;
  /// Prints the instruction as C++ statements.
  virtual void print(const Instruction& instruction, Printer& printer) const = 0;

 private:
  std::string name_;
  int weight_;
};

/// The rules from which programs are drawn.
using Rules = std::vector<const Rule*>;

/// Returns the rules of all families of ops and of control flow.
const Rules& all_rules();

}  // namespace reel::fuzz
