// Rule for derivatives of a block inside a program: gradients, tangents, and pullbacks that are
// called in loops, branches and functions under checkpoint(f).
#include "reel/frontend/loops/fold.h"
#include "reel/frontend/transforms/jvp.h"
#include "reel/frontend/transforms/rematerialize.h"
#include "reel/tests/fuzz/policies.h"
#include "reel/tests/fuzz/program/families.h"
#include "reel/tests/fuzz/program/printer.h"
#include "reel/tests/fuzz/program/typing.h"

namespace reel::fuzz {
namespace {

constexpr int kDeepest = 1;

/// The derivative of the block, f, at x, and the place of a pullback's call.
enum class Form { grad, hvp, jvp, pullback, in_loop, in_branch, in_checkpoint };
constexpr int kForms = 7;

Form form_of(const Instruction& in) { return Form(in.numbers.at(0)); }

class DerivativeRule : public Rule {
 public:
  DerivativeRule() : Rule("derivative", 14) {}

  bool draft(Drafter& d, Instruction& in) const override {
    // Gradients of derivatives are second gradients, too inexact in f32 for a comparison.
    if (d.depth() > kDeepest || d.program().real != f64) return false;
    const int x =
        d.pick([&](int v) { return !d.type(v).is_array && d.type(v).element == Element::real; });
    if (x < 0) return false;
    in.control = Control::derivative;
    in.inputs = {x};
    in.numbers = {d.random().chance(40) ? int(Form::in_loop) : d.random().below(kForms)};
    if (form_of(in) == Form::in_loop) in.policy = d.policy();
    in.blocks.push_back(d.block({d.type(x)}, [&](Block& f) {
      d.write(d.random().between(1, 4));
      const int y = d.pick([&](int v) { return can_come_out(d, v); });
      f.results = {y < 0 ? f.params[0] : y};
    }));
    in.outputs = {d.new_value(d.type(form_of(in) == Form::jvp ? in.blocks[0].results[0] : x))};
    return true;
  }

  void run(const Instruction& in, Machine& machine) const override {
    const Block& block = in.blocks[0];
    const auto f = [&](const Tensor& x) {
      machine[block.params[0]] = x;
      machine.run(block);
      return machine.tensor(block.results[0]);
    };
    const auto total = [&](const Tensor& x) { return sum(f(x)); };
    const Tensor x = machine.batched(machine.tensor(in.inputs[0]));
    machine[in.outputs[0]] = [&]() -> Tensor {
      switch (form_of(in)) {
        case Form::grad:
          return grad(total)(x);
        case Form::hvp:
          return hvp(total, x, x);
        case Form::jvp:
          return jvp(f, x, sin(x)).second;
        default:
          return pulled(in, vjp(f, x));
      }
    }();
  }

  void print(const Instruction& in, Printer& p) const override {
    const std::string name = std::to_string(in.outputs[0]), f = "f" + name,
                      x = p.value(in.inputs[0]);
    p.line("const auto " + f + " = [&](const Tensor& x" + name + ") -> Tensor {");
    p.in();
    p.define(in.blocks[0].params[0], "x" + name);
    p.body(in.blocks[0]);
    p.line("return " + p.value(in.blocks[0].results[0]) + ";");
    p.out();
    p.line("};");
    const std::string total = "[&](const Tensor& t) { return sum(" + f + "(t)); }";
    const Form form = form_of(in);
    if (form == Form::grad) return p.define(in.outputs[0], "grad(" + total + ")(" + x + ")");
    if (form == Form::hvp)
      return p.define(in.outputs[0], "hvp(" + total + ", " + x + ", " + x + ")");
    if (form == Form::jvp)
      return p.define(in.outputs[0], "jvp(" + f + ", " + x + ", sin(" + x + ")).second");
    const std::string both = "pulled" + name, pull = both + ".second", y = both + ".first";
    p.line("const auto " + both + " = vjp(" + f + ", " + x + ");");
    p.define(in.outputs[0], pulled_text(in, pull, y));
  }

 private:
  static bool can_come_out(const Drafter& d, int value) {
    if (d.type(value).is_array || d.type(value).element != Element::real) return false;
    for (const int dim : d.type(value).dims)
      if (d.is_named() && d.dim(dim).kind == DimInfo::Kind::found && !contains(d.outer_dims(), dim))
        return false;
    return true;
  }

  /// Calls a pullback at the place that the form names.
  template <class Pulled>
  static Tensor pulled(const Instruction& in, const Pulled& y_and_pull) {
    const auto& [y, given] = y_and_pull;
    const auto& pull = given;
    switch (form_of(in)) {
      case Form::in_loop:
        return fori_loop(0, 2,
                         [&](const Tensor&, const std::pair<Tensor, Tensor>& s) {
                           return std::pair{tanh(s.first), s.second + pull(s.first)};
                         },
                         std::pair{y, pull(y)},
                         {.checkpoint = checkpoint_of(in.policy),
                          .swap_memory = swap_memory_of(in.policy)})
            .second;
      case Form::in_branch: {
        const Tensor seed = y;
        return cond(
            sum(y) > 0.0, [&] { return pull(seed); }, [&] { return pull(cos(seed)); });
      }
      case Form::in_checkpoint:
        return checkpoint([&](const Tensor& seed) { return pull(tanh(seed)); })(y);
      default:
        return pull(y);
    }
  }

  static std::string pulled_text(const Instruction& in, const std::string& pull,
                                 const std::string& y) {
    const std::string keep = checkpoint_text(in.policy), swap = swap_memory_text(in.policy);
    switch (form_of(in)) {
      case Form::in_loop:
        return "fori_loop(0, 2, [&](const Tensor&, const std::pair<Tensor, Tensor>& s) { return "
               "std::pair{tanh(s.first), s.second + " +
               pull + "(s.first)}; }, std::pair{" + y + ", " + pull + "(" + y +
               ")}, {.checkpoint = " + (keep.empty() ? "Checkpoint()" : keep) +
               ", .swap_memory = " + (swap.empty() ? "SwapMemory()" : swap) + "}).second";
      case Form::in_branch:
        return "cond(sum(" + y + ") > 0.0, [&] { return " + pull + "(" + y + "); }, [&] { return " +
               pull + "(cos(" + y + ")); })";
      case Form::in_checkpoint:
        return "checkpoint([&](const Tensor& t) { return " + pull + "(tanh(t)); })(" + y + ")";
      default:
        return pull + "(" + y + ")";
    }
  }
};

}  // namespace

bool is_pullback_in_branch(const Instruction& in) {
  return in.control == Control::derivative && form_of(in) == Form::in_branch;
}

Rules derivative_rules() {
  static const DerivativeRule derivative_rule;
  return {&derivative_rule};
}

}  // namespace reel::fuzz
