// Draws a whole program: dims, arguments, instructions, and a loss over their results.
#include <algorithm>

#include "reel/tests/fuzz/arguments.h"
#include "reel/tests/fuzz/drafter.h"

namespace reel::fuzz {
namespace {

using Kind = DimInfo::Kind;

int draw_size(Random& random) { return random.chance(8) ? 0 : random.between(1, 4); }

std::vector<int> draw_lengths(Random& random, int count) {
  std::vector<int> lengths;
  for (int i = 0; i < count; ++i) lengths.push_back(random.chance(20) ? 0 : random.between(1, 4));
  return lengths;
}

/// Draws the dims of a program with named axes.
void draw_dims(Drafter& d, Random& random) {
  const auto add = [&](DimInfo info) {
    const int dim = d.new_dim(std::move(info));
    d.show_dim(dim);
    return dim;
  };
  const auto dynamic = [&](const char* name) {
    return add({.kind = Kind::dynamic,
                .name = name,
                .lengths = {random.between(0, 4)},
                .elsewhere = {random.between(0, 4)},
                .is_captured = random.chance(20)});
  };
  const auto fixed = [&](const char* name) {
    return add({.kind = Kind::fixed, .name = name, .size = draw_size(random)});
  };
  const int batch = random.chance(15) ? dynamic("batch") : fixed("batch");
  const auto ragged = [&](const char* name, std::vector<int> over) {
    const auto lengths = [&](const Call& call) {
      int entries = 1;
      for (const int dim : over) entries *= extent(d.program(), dim, call);
      std::vector<int> drawn = draw_lengths(random, entries);
      // Entries in the padding of the lengths have length 0.
      for_each_element(d.program(), over, call, [&](std::uint64_t entry, bool is_valid) {
        if (!is_valid) drawn[entry] = 0;
      });
      return drawn;
    };
    const bool may_be_captured = std::none_of(
        over.begin(), over.end(), [&](int dim) { return d.dim(dim).comes_with_arguments(); });
    return add({.kind = Kind::ragged,
                .name = name,
                .over = over,
                .lengths = lengths({}),
                .elsewhere = lengths({.is_elsewhere = true}),
                .is_captured = may_be_captured && random.chance(20)});
  };
  const int time = random.chance(75) ? ragged("time", {batch}) : -1;
  const int in = random.chance(60) ? fixed("in") : -1;
  if (random.chance(30)) dynamic("n");
  if (random.chance(20)) ragged("other", {batch});
  if (in >= 0 && random.chance(10)) ragged("inner", {batch, in});
  if (time >= 0 && random.chance(20)) ragged("letters", {batch, time});
}

int add_input(Program& program, Drafter& d, Random& random, ValueType type) {
  const int value = d.new_value(type);
  InputInfo info{.salt = random.next()};
  if (type.element != Element::real) {
    info.low = random.chance(20) ? -2 : 0;
    info.high = 4;
  }
  const bool may_be_captured = std::none_of(type.dims.begin(), type.dims.end(), [&](int dim) {
    return d.dim(dim).comes_with_arguments();
  });
  info.is_captured = may_be_captured && random.chance(15);
  program.inputs.push_back(info);
  program.main.params.push_back(value);
  d.show(value);
  return value;
}

void draw_inputs(Program& program, Drafter& d, Random& random) {
  // A dim that comes with arguments needs an argument that has it.
  for (const int dim : std::vector<int>(d.visible_dims())) {
    if (!d.dim(dim).comes_with_arguments()) continue;
    ValueType type{.dims = d.dim(dim).over};
    type.dims.insert(type.dims.begin() + random.below(type.dims.size() + 1), dim);
    add_input(program, d, random, type);
  }
  const int reals = random.between(1, 4);
  for (int i = 0; i < reals; ++i) add_input(program, d, random, {.dims = d.pick_dims(3)});
  add_input(program, d, random, {.element = Element::i32});
  if (random.chance(60))
    add_input(program, d, random, {.element = Element::i32, .dims = d.pick_dims(2)});
  if (random.chance(20))
    add_input(program, d, random, {.element = Element::i64, .dims = d.pick_dims(1)});
  if (random.chance(50)) add_input(program, d, random, {.element = Element::boolean});
  if (random.chance(30))
    add_input(program, d, random, {.element = Element::boolean, .dims = d.pick_dims(2)});
}

/// Chooses the results. The first is the sum of a function of every real value that no instruction
/// reads; the others are the values that no instruction reads.
void finish(Program& program, Drafter& d) {
  std::vector<int> read;
  for_each_block(program.main, [&](const Block& block) {
    for (const Instruction& instruction : block.body)
      read.insert(read.end(), instruction.inputs.begin(), instruction.inputs.end());
    read.insert(read.end(), block.results.begin(), block.results.end());
  });
  const ValueType scalar{};
  std::vector<int> outputs;
  for (const Instruction& instruction : program.main.body)
    for (const int value : instruction.outputs)
      if (!contains(read, value) && !d.type(value).is_array) outputs.push_back(value);
  int loss = -1;
  for (const int value : outputs) {
    if (d.type(value).element != Element::real) continue;
    const int term = d.apply("sum(0.5 * a + sin(a))", {value}, scalar);
    loss = loss < 0 ? term : d.apply("a + b", {loss, term}, scalar);
  }
  if (loss < 0) loss = d.apply("sum(0.5 * a + sin(a))", {program.main.params[0]}, scalar);
  program.main.results = {loss};
  program.main.results.insert(program.main.results.end(), outputs.begin(), outputs.end());
}

}  // namespace

Program generate(std::uint64_t seed, const Rules& rules) {
  Random random(seed);
  Program program{.seed = seed};
  program.is_named = random.chance(70);
  program.real = random.chance(80) ? f64 : f32;
  Drafter d(program, random, rules);
  d.current_ = &program.main;
  d.percent_with_policy_ = random.chance(55) ? 0 : random.chance(65) ? 60 : 100;
  d.draws_truncate_ = random.chance(20);
  if (program.is_named) draw_dims(d, random);
  draw_inputs(program, d, random);
  d.write(random.between(3, 12));
  finish(program, d);
  return program;
}

}  // namespace reel::fuzz
