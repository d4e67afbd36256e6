// Rule for while_loop.
#include "reel/frontend/loops/while_loop.h"
#include "reel/tests/fuzz/policies.h"
#include "reel/tests/fuzz/program/families.h"
#include "reel/tests/fuzz/program/printer.h"
#include "reel/tests/fuzz/program/typing.h"

namespace reel::fuzz {
namespace {

constexpr int kDeepest = 2;

int scalar_of(Drafter& d, Element element) {
  return d.pick(
      [&](int v) { return !d.type(v).is_array && d.type(v).element == element && d.rank(v) == 0; });
}

/// Draws a trip count: a small integer from visible values, or -1 for a fixed number.
int draw_count(Drafter& d) {
  const int count = d.random().chance(70) ? scalar_of(d, Element::i32) : -1;
  return count < 0 ? -1 : d.apply("mod(a * 3, 4)", {count}, {.element = Element::i32});
}

class WhileRule : public Rule {
 public:
  WhileRule() : Rule("while_loop", 40) {}

  bool draft(Drafter& d, Instruction& in) const override {
    if (d.depth() > kDeepest) return false;
    in.control = Control::while_loop;
    LoopForm& loop = in.loop;
    in.policy = d.policy();
    loop.has_cond = d.random().chance(85);
    loop.has_bound = !loop.has_cond || d.random().chance(40);
    const int counter = d.apply("full(dims, 0, i32)", {}, {.element = Element::i32});
    in.inputs = {counter};
    const int states = d.random().between(1, 3);
    for (int i = 0; i < states; ++i) {
      const int state = d.pick([&](int v) { return !contains(in.inputs, v) && v != counter; });
      if (state >= 0) in.inputs.push_back(state);
    }
    loop.states = static_cast<int>(in.inputs.size());
    std::vector<ValueType> types;
    for (const int state : in.inputs) types.push_back(d.type(state));
    const int limit = loop.has_cond ? draw_count(d) : -1;
    if (loop.has_bound) {
      int bound = draw_count(d);
      if (bound < 0) bound = d.apply("full(dims, 2, i32)", {}, {.element = Element::i32});
      in.inputs.push_back(bound);
    }
    in.blocks.push_back(d.block(types, [&](Block& body) {
      d.write(d.random().between(1, 5));
      for (const int param : body.params)
        body.results.push_back(param == body.params[0]
                                   ? d.apply("a + 1", {param}, {.element = Element::i32})
                                   : d.make_like(param));
    }));
    if (loop.has_cond)
      in.blocks.push_back(d.block(types, [&](Block& cond) { write_cond(d, cond, limit, loop); }));
    for (const ValueType& type : types) in.outputs.push_back(d.new_value(type));
    return true;
  }

  void run(const Instruction& in, Machine& machine) const override {
    const auto cond = [&](const State& state) {
      machine.assign(in.blocks[1].params, state);
      machine.run(in.blocks[1]);
      return machine.tensor(in.blocks[1].results[0]);
    };
    const auto body = [&](const State& state) {
      machine.assign(in.blocks[0].params, state);
      machine.run(in.blocks[0]);
      return machine.gather(in.blocks[0].results);
    };
    const std::vector<int> states(in.inputs.begin(), in.inputs.begin() + in.loop.states);
    WhileOptions options{.checkpoint = checkpoint_of(in.policy),
                         .swap_memory = swap_memory_of(in.policy)};
    if (in.loop.has_bound) options.maximum_iterations = machine.tensor(in.inputs.back());
    const auto run = [&](const State& initial) {
      return in.loop.has_cond
                 ? while_loop(cond, body, initial, options)
                 : while_loop([](const State&) { return true; }, body, initial, options);
    };
    State state = machine.gather(states);
    if (in.loop.parts_at >= 0) {
      const Tensor first = scalar(in.loop.parts_at, i32);
      if (in.loop.has_bound) {
        const Tensor bound = machine.tensor(in.inputs.back());
        options.maximum_iterations = minimum(bound, first);
        state = run(state);
        options.maximum_iterations = maximum(bound - first, 0);
      } else {
        options.maximum_iterations = first;
        state = run(state);
        options.maximum_iterations = {};
      }
    }
    machine.assign(in.outputs, run(state));
  }

  void print(const Instruction& in, Printer& p) const override {
    const std::vector<int> states(in.inputs.begin(), in.inputs.begin() + in.loop.states);
    const std::string name = "s" + std::to_string(in.outputs.at(0));
    p.line("const State " + name + " = while_loop(");
    p.in();
    if (in.loop.has_cond)
      p.lambda("const State& s", "Tensor", in.blocks[1], "s", ",");
    else
      p.line("[](const State&) { return true; },");
    p.lambda("const State& s", "State", in.blocks[0], "s", ",");
    std::string options;
    const auto option = [&](const std::string& name, const std::string& value) {
      if (!value.empty()) options += (options.empty() ? "." : ", .") + name + " = " + value;
    };
    option("checkpoint", checkpoint_text(in.policy));
    option("swap_memory", swap_memory_text(in.policy));
    option("maximum_iterations", in.loop.has_bound ? p.value(in.inputs.back()) : "");
    p.line("State" + p.state(states) + (options.empty() ? "" : ", {" + options + "}") + ");");
    p.out();
    p.unpack(in.outputs, name);
  }

 private:
  /// Writes a condition: a counter is below a limit. In some loops the sum of a real state must be
  /// below a number in addition, or instead.
  static void write_cond(Drafter& d, Block& cond, int limit, const LoopForm& loop) {
    const ValueType truth{.element = Element::boolean};
    if (limit < 0) limit = d.apply("full(dims, 2, i32)", {}, {.element = Element::i32});
    int more = d.apply("less(a, b)", {cond.params[0], limit}, truth);
    if (d.random().chance(30)) {
      const int real = d.pick([&](int v) {
        return contains(cond.params, v) && !d.type(v).is_array &&
               d.type(v).element == Element::real;
      });
      if (real >= 0) {
        const int total = d.apply("sum(a)", {real}, {.element = Element::real});
        Instruction number;
        number.constant = draw_number(d);
        const int low = d.apply("a <= x", {total}, truth, number);
        more =
            loop.has_bound && d.random().chance(30) ? low : d.apply("a && b", {more, low}, truth);
      }
    }
    cond.results = {more};
  }
};

}  // namespace

Rules loop_rules() {
  static const WhileRule while_rule;
  return {&while_rule};
}

}  // namespace reel::fuzz
