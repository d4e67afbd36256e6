#include "reel/tests/fuzz/shrinking/shrinker.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "reel/tests/fuzz/arguments.h"
#include "reel/tests/fuzz/rules/rule.h"
#include "reel/tests/fuzz/shrinking/simplify.h"

namespace reel::fuzz {
namespace {

/// The outcome of an attempt.
enum class Attempt {
  made,        ///< the program was changed; it need not be smaller
  no_variant,  ///< the place has no variant with this number
  no_place,
};
/// Changes the program at a place, by one of several variants.
using Step = Attempt (*)(Program& program, int place, int variant);

/// An instruction: its block, its position there, and the values that it may use.
struct Place {
  Block* block = nullptr;
  std::size_t position = 0;
  std::vector<int> visible = {};

  Instruction& instruction() const { return block->body[position]; }
};

bool find_place(Block& block, int& place, std::vector<int> visible, Place& found) {
  visible.insert(visible.end(), block.params.begin(), block.params.end());
  for (std::size_t i = 0; i < block.body.size(); ++i) {
    if (place-- == 0) {
      found = {&block, i, visible};
      return true;
    }
    for (Block& inner : block.body[i].blocks)
      if (find_place(inner, place, visible, found)) return true;
    visible.insert(visible.end(), block.body[i].outputs.begin(), block.body[i].outputs.end());
  }
  return false;
}

std::optional<Place> at(Program& program, int place) {
  // The last instruction comes first: its operands can only be removed after it.
  place = count_instructions(program) - 1 - place;
  Place found;
  if (place < 0 || !find_place(program.main, place, {}, found)) return {};
  return found;
}

const Rule* rule_named(const std::string& name) {
  for (const Rule* rule : all_rules())
    if (rule->name() == name) return rule;
  return nullptr;
}

/// Replaces an output of an instruction by one of its inputs or another visible value.
Attempt use_another(Program& program, int place, int variant) {
  constexpr int kWays = 6;
  const auto found = at(program, place);
  if (!found) return Attempt::no_place;
  const Instruction& in = found->instruction();
  const int which = variant / kWays, way = variant % kWays;
  if (which >= static_cast<int>(in.outputs.size())) return Attempt::no_variant;
  const int output = in.outputs[which];
  std::vector<int> others = in.inputs;
  others.insert(others.end(), found->visible.begin(), found->visible.end());
  std::erase_if(others, [&](int value) {
    return !same_type(program, program.values[value], program.values[output]);
  });
  if (way < static_cast<int>(others.size())) replace_reads(program, output, others[way]);
  return Attempt::made;
}

/// Replaces an output of an instruction by a constant.
Attempt use_constant(Program& program, int place, int variant) {
  const auto found = at(program, place);
  if (!found) return Attempt::no_place;
  const Instruction& in = found->instruction();
  if (variant >= static_cast<int>(in.outputs.size())) return Attempt::no_variant;
  const int output = in.outputs[variant];
  const ValueType type = program.values[output];
  static const char* const names[] = {"full(dims, x, real)", "full(dims, 2, i32)",
                                      "full(dims, 1, i64)", "full(dims, true, boolean)"};
  const bool is_found = std::any_of(type.dims.begin(), type.dims.end(), [&](int dim) {
    return program.dims[dim].kind == DimInfo::Kind::found;
  });
  if (type.is_array || is_found || in.inputs.empty()) return Attempt::made;
  Instruction constant{.rule = rule_named(names[static_cast<int>(type.element)]),
                       .dims = type.dims,
                       .constant = 0.5};
  program.values.push_back(type);
  constant.outputs = {static_cast<int>(program.values.size()) - 1};
  const int made = constant.outputs[0];
  found->block->body.insert(found->block->body.begin() + found->position, std::move(constant));
  replace_reads(program, output, made);
  return Attempt::made;
}

/// Replaces an instruction by a block that it runs: a cond by either branch, a while_loop by one
/// iteration.
Attempt inline_block(Program& program, int place, int variant) {
  const auto found = at(program, place);
  if (!found) return Attempt::no_place;
  const Instruction in = found->instruction();
  const int ways = in.control == Control::cond ? static_cast<int>(in.blocks.size())
                   : in.control == Control::while_loop || in.control == Control::call ? 1
                                                                                      : 0;
  if (variant >= ways) return Attempt::no_variant;
  const Block& inner = in.blocks[variant];
  auto& body = found->block->body;
  body.erase(body.begin() + found->position);
  body.insert(body.begin() + found->position, inner.body.begin(), inner.body.end());
  for (std::size_t i = 0; i < in.outputs.size(); ++i)
    replace_reads(program, in.outputs[i], inner.results[i]);
  for (std::size_t i = 0; i < inner.params.size(); ++i)
    replace_reads(program, inner.params[i], in.inputs[i]);
  return Attempt::made;
}

/// Replaces a state of a loop by a capture of its initial value.
Attempt drop_state(Program& program, int place, int variant) {
  const auto found = at(program, place);
  if (!found) return Attempt::no_place;
  Instruction& in = found->instruction();
  const int states = in.loop.states;
  if (variant >= states || in.outputs.size() == 1) return Attempt::no_variant;
  const int initial = in.inputs[in.loop.xs + variant];
  const int output = in.outputs[in.outputs.size() - states + variant];
  std::vector<int> inside{in.blocks[0].params[in.loop.xs + variant]};
  if (in.blocks.size() > 1) inside.push_back(in.blocks[1].params[variant]);
  remove_state(in, variant);
  replace_reads(program, output, initial);
  for (const int param : inside) replace_reads(program, param, initial);
  return Attempt::made;
}

/// Replaces a slice of a scan by a constant in the body.
Attempt use_constant_slice(Program& program, int place, int variant) {
  const auto found = at(program, place);
  if (!found) return Attempt::no_place;
  Instruction& in = found->instruction();
  if (variant >= in.loop.xs) return Attempt::no_variant;
  Block& body = in.blocks[0];
  const ValueType type = program.values[body.params[variant]];
  if (type.element != Element::real) return Attempt::made;
  Instruction constant{
      .rule = rule_named("full(dims, x, real)"), .dims = type.dims, .constant = 0.5};
  program.values.push_back(type);
  constant.outputs = {static_cast<int>(program.values.size()) - 1};
  const int param = body.params[variant], made = constant.outputs[0];
  body.body.insert(body.body.begin(), std::move(constant));
  replace_reads(program, param, made);
  return Attempt::made;
}

/// Removes one option of a loop.
Attempt drop_option(Program& program, int place, int variant) {
  const auto found = at(program, place);
  if (!found) return Attempt::no_place;
  Instruction& in = found->instruction();
  LoopForm& loop = in.loop;
  switch (variant) {
    case 0:
      loop.reverse = false;
      return Attempt::made;
    case 1:
      loop.cond_before_body = true;
      return Attempt::made;
    case 2:
      if (loop.has_bound && loop.has_cond) {
        loop.has_bound = false;
        in.inputs.pop_back();
      }
      return Attempt::made;
    case 3:
      if (loop.has_bound && loop.has_cond) {
        loop.has_cond = false;
        in.blocks.pop_back();
      }
      return Attempt::made;
    case 4:
      loop.truncate = 0;
      return Attempt::made;
    case 5:
      in.policy.steps = in.policy.bytes = 0;
      return Attempt::made;
    case 6:
      in.policy.letters = -1;
      return Attempt::made;
    case 7:
      in.policy.swaps = false;
      return Attempt::made;
    default:
      return Attempt::no_variant;
  }
}

Attempt simpler_number(Program& program, int place, int variant) {
  const auto found = at(program, place);
  if (!found) return Attempt::no_place;
  if (variant) return Attempt::no_variant;
  Instruction& in = found->instruction();
  for (std::int64_t& number : in.numbers)
    if (number) {
      number -= number > 0 ? 1 : -1;
      break;
    }
  if (in.constant != 1 && in.constant != 0.5) in.constant = 1;
  return Attempt::made;
}

Attempt drop_result(Program& program, int place, int variant) {
  auto& results = program.main.results;
  if (place + 1 >= static_cast<int>(results.size())) return Attempt::no_place;
  if (variant) return Attempt::no_variant;
  results.erase(results.end() - 1 - place);
  return Attempt::made;
}

/// Makes the number of lengths equal to the number of entries. Entries in padding get length 0.
void fit_lengths(Program& program) {
  for (DimInfo& dim : program.dims) {
    if (dim.kind != DimInfo::Kind::ragged) continue;
    const auto fit = [&](std::vector<int>& lengths, const Call& call) {
      int count = 1;
      for (const int over : dim.over) count *= extent(program, over, call);
      lengths.resize(static_cast<std::size_t>(count));
      for_each_element(program, dim.over, call, [&](std::uint64_t entry, bool is_valid) {
        if (!is_valid) lengths[entry] = 0;
      });
    };
    fit(dim.lengths, {});
    fit(dim.elsewhere, {.is_elsewhere = true});
  }
}

/// Reduces one size or length: to zero, to half, or by one.
Attempt smaller_dim(Program& program, int place, int variant) {
  if (variant > 2) return Attempt::no_variant;
  const auto make_smaller = [&](int& size) {
    size = std::max(0, variant == 0 ? 0 : variant == 1 ? size / 2 : size - 1);
    fit_lengths(program);
    return Attempt::made;
  };
  for (DimInfo& dim : program.dims) {
    if (dim.has_size() && place-- == 0) return make_smaller(dim.size);
    for (auto* lengths : {&dim.lengths, &dim.elsewhere})
      for (int& length : *lengths)
        if (place-- == 0) return make_smaller(length);
  }
  return Attempt::no_place;
}

/// Makes all elements of an input equal, to 0, 1 or 2; or makes a captured input an argument.
Attempt simpler_input(Program& program, int place, int variant) {
  if (place >= static_cast<int>(program.inputs.size())) return Attempt::no_place;
  if (variant > 3) return Attempt::no_variant;
  InputInfo& input = program.inputs[place];
  if (variant == 3) {
    input.is_captured = false;
    return Attempt::made;
  }
  const bool is_real = program.values[program.main.params[place]].element == Element::real;
  input.low = input.high = is_real ? 8 * variant : variant;
  return Attempt::made;
}

/// Removes an instruction without readers.
Attempt drop_dead(Program& program, int place, int variant) {
  const auto found = at(program, place);
  if (!found) return Attempt::no_place;
  if (variant) return Attempt::no_variant;
  const std::vector<int> reads = count_reads(program);
  const auto is_read = [&](int value) { return reads[value] > 0; };
  const std::vector<int>& outputs = found->instruction().outputs;
  if (std::none_of(outputs.begin(), outputs.end(), is_read))
    found->block->body.erase(found->block->body.begin() + found->position);
  return Attempt::made;
}

/// Removes an input without readers.
Attempt drop_input(Program& program, int place, int variant) {
  return place == 0 && variant == 0 && remove_unused_input(program) ? Attempt::made
                                                                    : Attempt::no_place;
}

constexpr Step kSteps[] = {drop_dead,    drop_input,   drop_result,    use_another,
                           use_constant, inline_block, drop_state,     use_constant_slice,
                           drop_option,  smaller_dim,  simpler_number, simpler_input};

}  // namespace

std::int64_t size_of(const Program& program) {
  std::int64_t size = 0;
  for_each_block(program.main, [&](const Block& block) {
    size += 100 * static_cast<int>(block.params.size() + block.results.size());
    for (const Instruction& in : block.body) {
      size += 1000 + 10 * in.inputs.size() + (in.constant != 1 && in.constant != 0.5);
      // A constant is smaller than any computed value.
      size -= in.inputs.empty() ? 100 : 0;
      size += in.blocks.empty() ? 0 : 500;
      for (const std::int64_t number : in.numbers) size += std::abs(number);
      size += 20 * (in.loop.reverse + in.loop.has_bound + in.loop.has_cond) +
              20 * !in.loop.cond_before_body + 20 * (in.loop.truncate > 0) +
              20 * (in.policy.keeps_checkpoints() + (in.policy.letters >= 0) + in.policy.swaps);
    }
  });
  const std::vector<bool> used = dims_in_use(program);
  for (std::size_t i = 0; i < used.size(); ++i) {
    const DimInfo& dim = program.dims[i];
    if (!used[i]) continue;
    size += 10 + std::max(dim.size, 0);
    for (const int length : dim.lengths) size += length + 1;
    for (const int length : dim.elsewhere) size += length;
  }
  for (const InputInfo& input : program.inputs)
    size += input.is_captured + (input.low == input.high ? std::abs(input.low) : 50);
  return size;
}

Program shrink(Program program, const Shows& shows) {
  // True: each candidate is cleaned of dead code. False while the defect needs dead code, which is
  // then reduced in parts.
  bool cleans = false;
  // Compares the live part first, then the whole: live code is reduced before dead code.
  const auto sizes = [](const Program& of) {
    Program live = of;
    remove_unused(live);
    return std::pair{size_of(live), size_of(of)};
  };
  const auto accept = [&](Program& smaller) {
    if (cleans) remove_unused(smaller);
    if (sizes(smaller) >= sizes(program) || !shows(smaller)) return false;
    program = std::move(smaller);
    return true;
  };
  for (bool progress = true; progress;) {
    progress = false;
    cleans = true;
    Program cleaned = program;
    cleans = accept(cleaned) || size_of(cleaned) == size_of(program);
    for (const Step step : kSteps)
      for (int place = 0, variant = 0;;) {
        Program smaller = program;
        const Attempt attempt = step(smaller, place, variant);
        if (attempt == Attempt::no_place) break;
        if (attempt == Attempt::no_variant) {
          ++place;
          variant = 0;
        } else if (accept(smaller)) {
          progress = true;
          variant = 0;
        } else {
          ++variant;
        }
      }
  }
  return program;
}

}  // namespace reel::fuzz
