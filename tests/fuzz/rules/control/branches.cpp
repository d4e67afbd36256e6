// Rules for cond and switch_case.
#include "reel/frontend/loops/switch_case.h"
#include "reel/frontend/loops/while_loop.h"
#include "reel/tests/fuzz/program/families.h"
#include "reel/tests/fuzz/program/printer.h"
#include "reel/tests/fuzz/program/typing.h"

namespace reel::fuzz {
namespace {

constexpr int kDeepest = 2;

/// Blocks without parameters; a scalar selects a block.
class BranchRule : public Rule {
 public:
  BranchRule(const char* name, int weight, Element selector, int branches)
      : Rule(name, weight), selector_(selector), branches_(branches) {}

  bool draft(Drafter& d, Instruction& in) const override {
    if (d.depth() > kDeepest) return false;
    const int selector = d.pick([&](int v) {
      return !d.type(v).is_array && d.type(v).element == selector_ && d.rank(v) == 0;
    });
    if (selector < 0) return false;
    in.control = Control::cond;
    in.inputs = {selector};
    std::vector<int> like;
    const int results = d.random().between(1, 2);
    for (int i = 0; i < results; ++i) {
      const int value = d.pick([&](int v) { return !d.type(v).is_array; });
      if (value >= 0) like.push_back(value);
    }
    for (int branch = 0; branch < branches_; ++branch)
      in.blocks.push_back(d.block({}, [&](Block& block) {
        d.write(d.random().between(0, 3));
        for (const int value : like) block.results.push_back(ordered(d, d.make_like(value)));
      }));
    for (const int value : like) in.outputs.push_back(d.new_value(d.type(value)));
    return true;
  }

  void print(const Instruction& in, Printer& p) const override {
    const std::string result = "s" + std::to_string(in.outputs.at(0));
    p.line("const State " + result + " = " + name() + "(" + p.value(in.inputs[0]) + ",");
    p.in();
    for (const Block& block : in.blocks)
      p.lambda("", "State", block, "", &block == &in.blocks.back() ? ");" : ",");
    p.out();
    p.unpack(in.outputs, result);
  }

 protected:
  static auto branch(const Instruction& in, Machine& machine, int which) {
    return [&in, &machine, which] {
      machine.run(in.blocks[which]);
      return machine.gather(in.blocks[which].results);
    };
  }

 private:
  /// Gives the value one order of dims. In eager mode the branch taken decides the order of a
  /// result's dims, in a trace the first branch, and sums are added up in that order.
  static int ordered(Drafter& d, int value) {
    if (!d.is_named() || d.rank(value) < 2) return value;
    Instruction order;
    order.axes = d.type(value).dims;
    std::sort(order.axes.begin(), order.axes.end());
    ValueType type = d.type(value);
    type.dims = order.axes;
    return type.element == Element::real ? d.apply("transpose(a, axes)", {value}, type, order)
                                         : value;
  }

  Element selector_;
  int branches_;
};

class CondRule : public BranchRule {
 public:
  CondRule() : BranchRule("cond", 25, Element::boolean, 2) {}

  void run(const Instruction& in, Machine& machine) const override {
    machine.assign(in.outputs, reel::cond(machine.tensor(in.inputs[0]), branch(in, machine, 0),
                                          branch(in, machine, 1)));
  }
};

class SwitchRule : public BranchRule {
 public:
  SwitchRule() : BranchRule("switch_case", 12, Element::i32, 3) {}

  void run(const Instruction& in, Machine& machine) const override {
    machine.assign(in.outputs, switch_case(machine.tensor(in.inputs[0]), branch(in, machine, 0),
                                           branch(in, machine, 1), branch(in, machine, 2)));
  }
};

}  // namespace

Rules branch_rules() {
  static const CondRule cond_rule;
  static const SwitchRule switch_rule;
  return {&cond_rule, &switch_rule};
}

}  // namespace reel::fuzz
