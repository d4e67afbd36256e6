#include "reel/tests/fuzz/program/expression.h"

#include <cctype>

#include "reel/tests/fuzz/policies.h"
#include "reel/tests/fuzz/program/printer.h"
#include "reel/tests/fuzz/program/slices.h"

namespace reel::fuzz {
namespace {

bool has_plain_axes(const Program& program, const Instruction& instruction) {
  return !program.is_named || instruction.inputs.empty();
}

std::vector<Axis> axes_of(const Machine& machine, const Instruction& instruction) {
  std::vector<Axis> axes;
  for (const int axis : instruction.axes) {
    if (has_plain_axes(machine.program(), instruction))
      axes.emplace_back(axis);
    else
      axes.emplace_back(machine.dim(axis));
  }
  return axes;
}

/// Returns the text that replaces a name in an expression; empty for other names.
std::string meaning(const std::string& name, const Instruction& in, const Printer& printer) {
  const auto input = [&](std::size_t i) { return printer.value(in.inputs.at(i)); };
  const auto axis = [&](int axis) {
    return has_plain_axes(printer.program(), in) ? std::to_string(axis) : printer.dim(axis);
  };
  if (name == "a" || name == "list") return input(0);
  if (name == "b") return input(1);
  if (name == "c") return input(2);
  if (name == "axis") return axis(in.axes.at(0));
  if (name == "axes") {
    std::string text;
    for (const int item : in.axes) text += (text.empty() ? "" : ", ") + axis(item);
    return "{" + text + "}";
  }
  if (name == "dims") return printer.dims(in.dims);
  if (name == "to") return printer.dim(in.dims.at(0));
  if (name == "n") return std::to_string(in.numbers.at(0));
  if (name == "m") return std::to_string(in.numbers.at(1));
  if (name == "x") return printer.number(in.constant);
  const auto or_else = [](const std::string& text, const char* other) {
    return text.empty() ? other : text;
  };
  if (name == "keep") return or_else(checkpoint_text(in.policy), "Checkpoint()");
  if (name == "swap") return or_else(swap_memory_text(in.policy), "SwapMemory()");
  if (name == "real") return printer.program().real == f64 ? "f64" : "f32";
  return "";
}

}  // namespace

Operands ExpressionRule::operands_of(const Instruction& instruction, Machine& machine) {
  const auto input = [&](std::size_t i) {
    return i < instruction.inputs.size() ? machine[instruction.inputs[i]] : Slot();
  };
  const std::vector<Axis> axes = axes_of(machine, instruction);
  const Dims dims = machine.dims(instruction.dims);
  const auto number = [&](std::size_t i) {
    return i < instruction.numbers.size() ? instruction.numbers[i] : 0;
  };
  return {input(0).tensor,
          input(1).tensor,
          input(2).tensor,
          input(0).array,
          Axes(axes),
          axes.empty() ? Axis(0) : axes[0],
          dims,
          dims.empty() ? Dim() : dims[0],
          number(0),
          number(1),
          instruction.constant,
          machine.program().real,
          checkpoint_of(instruction.policy),
          swap_memory_of(instruction.policy)};
}

void ExpressionRule::run(const Instruction& instruction, Machine& machine) const {
  machine[instruction.outputs[0]] = compute(operands_of(instruction, machine));
  // Without operands a tensor does not depend on the row, but it meets others that do.
  if (Slot& made = machine[instruction.outputs[0]];
      instruction.inputs.empty() && made.tensor.is_defined())
    made.tensor = machine.batched(made.tensor);
  machine.found(instruction.sliced, instruction.outputs);
  if (instruction.found.empty() || !machine.program().dims[instruction.found[0]].is_named()) return;
  machine.found(instruction.found[0], machine.tensor(instruction.outputs[0]).dim(0));
}

void ExpressionRule::print(const Instruction& instruction, Printer& printer) const {
  const std::string text = expression_.text;
  std::string result;
  for (std::size_t i = 0; i < text.size();) {
    std::size_t end = i;
    while (end < text.size() && (std::isalnum(text[end]) || text[end] == '_')) ++end;
    if (end == i) {
      result += text[i++];
      continue;
    }
    const std::string word = text.substr(i, end - i);
    const bool is_member = i > 0 && (text[i - 1] == '.' || text[i - 1] == ':');
    const std::string stands_for = is_member ? "" : meaning(word, instruction, printer);
    result += stands_for.empty() ? word : stands_for;
    i = end;
  }
  printer.define(instruction.outputs[0], result);
  print_slices(printer, instruction.sliced, instruction.outputs[0]);
  if (!instruction.found.empty() && printer.program().dims[instruction.found[0]].is_named())
    printer.line("const Dim " + printer.dim(instruction.found[0]) + " = " +
                 printer.value(instruction.outputs[0]) + ".dim(0);");
}

}  // namespace reel::fuzz
