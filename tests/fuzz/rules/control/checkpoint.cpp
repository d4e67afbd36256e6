// Rule for checkpoint(f): a block of instructions that its gradient recomputes.
#include "reel/core/runtime/random.h"
#include "reel/frontend/transforms/rematerialize.h"
#include "reel/tests/fuzz/policies.h"
#include "reel/tests/fuzz/program/families.h"
#include "reel/tests/fuzz/program/printer.h"
#include "reel/tests/fuzz/program/typing.h"

namespace reel::fuzz {
namespace {

constexpr int kDeepest = 2;

class CheckpointRule : public Rule {
 public:
  CheckpointRule() : Rule("checkpoint", 15) {}

  bool draft(Drafter& d, Instruction& in) const override {
    if (d.depth() > kDeepest) return false;
    in.control = Control::call;
    in.policy.is_checkpointed = true;
    if (d.random().chance(40)) in.policy.letters = d.random().below(4);
    std::vector<ValueType> types;
    const int arguments = d.random().between(0, 2);
    for (int i = 0; i < arguments; ++i) {
      const int argument = d.pick([&](int v) { return !contains(in.inputs, v); });
      if (argument < 0) break;
      in.inputs.push_back(argument);
      types.push_back(d.type(argument));
    }
    in.blocks.push_back(d.block(types, [&](Block& f) {
      d.write(d.random().between(1, 5));
      const int results = d.random().between(1, 2);
      for (int i = 0; i < results; ++i) {
        const int result =
            d.pick([&](int v) { return can_come_out(d, v) && !contains(f.results, v); });
        if (result >= 0) f.results.push_back(result);
      }
    }));
    for (const int result : in.blocks[0].results) in.outputs.push_back(d.new_value(d.type(result)));
    return !in.outputs.empty();
  }

  void run(const Instruction& in, Machine& machine) const override {
    const auto f = [&](const State& arguments) {
      machine.assign(in.blocks[0].params, arguments);
      machine.run(in.blocks[0]);
      return machine.gather(in.blocks[0].results);
    };
    const State arguments = machine.gather(in.inputs);
    if (in.policy.is_checkpointed) {
      machine.assign(in.outputs, checkpoint(f, rule_of(in.policy))(arguments));
      return;
    }
    machine.assign(in.outputs, f(arguments));
  }

  void print(const Instruction& in, Printer& p) const override {
    const std::string name = "s" + std::to_string(in.outputs.at(0));
    const std::string rule = rule_text(in.policy);
    p.line("const State " + name + " = checkpointed(");
    p.in();
    p.lambda("const State& s", "State", in.blocks[0], "s", ",");
    p.line("State" + p.state(in.inputs) + (rule.empty() ? "" : ", " + rule) + ");");
    p.out();
    p.unpack(in.outputs, name);
  }

 private:
  /// Returns false for a value with a named dim that was made inside: the dim must stay there.
  static bool can_come_out(const Drafter& d, int value) {
    for (const int dim : d.type(value).dims)
      if (d.is_named() && d.dim(dim).kind == DimInfo::Kind::found && !contains(d.outer_dims(), dim))
        return false;
    return true;
  }
};

}  // namespace

Rules checkpoint_rules() {
  static const CheckpointRule checkpoint_rule;
  return {&checkpoint_rule};
}

}  // namespace reel::fuzz
