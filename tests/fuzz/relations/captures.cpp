// Relation: a tensor or a dim that a function captures instead of taking it as an argument changes
// no result, and no gradient of the other arguments.
// Domain: programs with an argument, or a captured tensor, whose dims do not come with arguments;
// or with a dim that does. A gradient needs one more real argument. Tolerance: rounding: a trace
// computes with the values of its captures.
#include "reel/tests/fuzz/relations/trial.h"

namespace reel::fuzz {
namespace {

bool is_real(const Program& program, std::size_t input) {
  return program.values[program.main.params[input]].element == Element::real;
}

/// True if the input may be captured: none of its dims comes with arguments.
bool may_be_captured(const Program& program, std::size_t input) {
  for (const int dim : program.values[program.main.params[input]].dims)
    if (program.dims[dim].comes_with_arguments()) return false;
  return true;
}

/// Captures a dim that comes with arguments if no lengths that come with arguments run over it.
bool capture_dim(Program& program, Random& random) {
  std::vector<int> fitting;
  for (std::size_t i = 0; i < program.dims.size(); ++i) {
    const DimInfo& info = program.dims[i];
    if (!info.comes_with_arguments()) continue;
    bool fits = true;
    for (const int over : info.over) fits = fits && !program.dims[over].comes_with_arguments();
    if (fits) fitting.push_back(static_cast<int>(i));
  }
  if (fitting.empty()) return false;
  program.dims[fitting[static_cast<std::size_t>(random.below(fitting.size()))]].is_captured = true;
  return true;
}

/// Captures an argument, or passes a captured tensor.
bool exchange_input(Program& program, Random& random) {
  std::vector<std::size_t> fitting;
  for (std::size_t i = 0; i < program.inputs.size(); ++i)
    if (may_be_captured(program, i)) fitting.push_back(i);
  if (fitting.empty()) return false;
  InputInfo& input =
      program.inputs[fitting[static_cast<std::size_t>(random.below(fitting.size()))]];
  input.is_captured = !input.is_captured;
  return true;
}

/// The results of one program, and the gradients of real inputs that another one passes too.
class Run {
 public:
  Run(const Trial& trial, const Program& program, const Program& other, const Arguments& arguments)
      : trial_(trial),
        program_(program),
        other_(other),
        f_(with_gradient(Trial::function_of(program, arguments))),
        x_(passed_arguments(program, arguments)) {}

  Tensors at(const Tensors& x, const Mode* mode) const {
    const Tensors all = trial_.call(std::string(mode ? mode->name : "eager") + " gradients",
                                    mode ? mode->run(f_, mode->passes).call : f_, x);
    std::size_t next = program_.main.results.size();
    Tensors both(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(next));
    for (std::size_t i = 0; i < program_.inputs.size(); ++i) {
      if (program_.inputs[i].is_captured) continue;
      if (!other_.inputs[i].is_captured && is_real(program_, i)) both.push_back(all[next]);
      ++next;
    }
    return both;
  }
  const Tensors& x() const { return x_; }

 private:
  const Trial& trial_;
  const Program &program_, &other_;
  const Function f_;
  const Tensors x_;
};

Outcome check(Trial& trial) {
  const Program& program = trial.program();
  Program other = program;
  bool changed = trial.random().chance(50) && capture_dim(other, trial.random());
  for (int i = 0; i < 2; ++i) changed = exchange_input(other, trial.random()) || changed;
  bool has_gradient = false;
  for (std::size_t i = 0; i < program.inputs.size(); ++i)
    has_gradient = has_gradient || (!program.inputs[i].is_captured &&
                                    !other.inputs[i].is_captured && is_real(program, i));
  if (!changed || !has_gradient) return Outcome::does_not_apply;
  const Arguments arguments = make_arguments(program, {});
  const Run before(trial, program, other, arguments), after(trial, other, program, arguments);
  Reference reference = trial.reference(nullptr, before.x(), program, arguments);
  reference.at_moved = [&] { return before.at(trial.moved(before.x()), nullptr); };
  const Mode drawn = trial.draw_mode();
  const Tensors expected = before.at(before.x(), nullptr);
  for (const Mode* mode : {static_cast<const Mode*>(nullptr), &drawn})
    trial.expect_same(mode ? mode->name : "eager", expected, after.at(after.x(), mode),
                      trial.close(), reference);
  return Outcome::holds;
}

}  // namespace

Relation captures_relation() { return {"captures", check, generate}; }

}  // namespace reel::fuzz
