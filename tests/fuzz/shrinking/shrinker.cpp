#include "reel/tests/fuzz/shrinking/shrinker.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "reel/tests/fuzz/arguments.h"
#include "reel/tests/fuzz/program/slices.h"
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
/// Changes the program at a place, by one variant out of several.
using Step = Attempt (*)(Program& program, int place, int variant);

/// An instruction: its block, its position there, and the values that it may use.
struct Place {
  Block* block = nullptr;
  std::size_t position = 0;
  std::vector<int> visible = {};
  Block* outer = nullptr;  ///< the block of the instruction that runs `block`; null for main
  std::size_t outer_position = 0;
  std::size_t outer_visible = 0;  ///< the number of values that are visible there, the first ones

  Instruction& instruction() const { return block->body[position]; }
};

/// Searches a block and its inner blocks. found: has the values that are visible before the block.
bool find_place(Block& block, int& place, Place& found) {
  found.block = &block;
  found.visible.insert(found.visible.end(), block.params.begin(), block.params.end());
  for (std::size_t i = 0; i < block.body.size(); ++i) {
    found.position = i;
    if (place-- == 0) return true;
    for (Block& inner : block.body[i].blocks) {
      Place inside{.visible = found.visible,
                   .outer = &block,
                   .outer_position = i,
                   .outer_visible = found.visible.size()};
      if (!find_place(inner, place, inside)) continue;
      found = inside;
      return true;
    }
    const std::vector<int>& outputs = block.body[i].outputs;
    found.visible.insert(found.visible.end(), outputs.begin(), outputs.end());
  }
  return false;
}

std::optional<Place> at(Program& program, int place) {
  // The last instruction comes first: its operands can only be removed after it.
  place = count_instructions(program) - 1 - place;
  Place found;
  if (place < 0 || !find_place(program.main, place, found)) return {};
  return found;
}

const Rule* rule_named(const std::string& name) {
  for (const Rule* rule : all_rules())
    if (rule->name() == name) return rule;
  return nullptr;
}

/// Replaces all reads of an output, and removes its instruction if no other output is read: a
/// candidate that keeps it may not be smaller.
void replace_output(Program& program, const Place& place, int output, int by) {
  replace_reads(program, output, by);
  const std::vector<int> reads = count_reads(program);
  const std::vector<int>& outputs = place.instruction().outputs;
  if (std::none_of(outputs.begin(), outputs.end(), [&](int value) { return reads[value] > 0; }))
    place.block->body.erase(place.block->body.begin() +
                            static_cast<std::ptrdiff_t>(place.position));
}

/// Replaces an output of an instruction by an input of it, or by another visible value.
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
  if (way < static_cast<int>(others.size())) replace_output(program, *found, output, others[way]);
  return Attempt::made;
}

/// Makes a term of the loss read an input of the instruction that makes its operand. The operand of
/// a term may have any dims.
Attempt use_input_in_term(Program& program, int place, int variant) {
  const auto found = at(program, place);
  if (!found) return Attempt::no_place;
  Instruction& term = found->instruction();
  if (!is_term(term)) return Attempt::no_variant;
  for (const Instruction& maker : found->block->body) {
    if (!contains(maker.outputs, term.inputs[0])) continue;
    if (variant >= std::ssize(maker.inputs)) return Attempt::no_variant;
    const ValueType& type = program.values[maker.inputs[variant]];
    if (type.element == Element::real && !type.is_array) term.inputs = {maker.inputs[variant]};
    return Attempt::made;
  }
  return Attempt::no_variant;
}

/// Makes a vmap return an input of the instruction that makes its result. Terms of the loss alone
/// may read the rows, which have other dims then.
Attempt shorten_rows(Program& program, int place, int variant) {
  const auto found = at(program, place);
  if (!found) return Attempt::no_place;
  Instruction& in = found->instruction();
  if (in.control != Control::vmap || !feeds_terms_alone(program, in.outputs[0]))
    return Attempt::no_variant;
  Block& rows = in.blocks[0];
  for (const Instruction& maker : rows.body) {
    if (!contains(maker.outputs, rows.results[0])) continue;
    if (variant >= std::ssize(maker.inputs)) return Attempt::no_variant;
    const int input = maker.inputs[variant];
    ValueType type = program.values[input];
    if (type.element != Element::real || type.is_array || contains(rows.params, input))
      return Attempt::made;
    const int dim = program.is_named ? in.axes[0] : program.values[in.inputs[0]].dims[in.axes[0]];
    type.dims = to_wholes(type.dims, in.slices);
    type.dims.insert(type.dims.begin(), dim);
    program.values[in.outputs[0]] = type;
    rows.results = {input};
    return Attempt::made;
  }
  return Attempt::no_variant;
}

/// Makes an instruction that gives a constant of this type. Returns nothing for arrays, and for
/// dims that only a run knows.
std::optional<Instruction> make_constant(Program& program, const ValueType& type) {
  static const char* const names[] = {"full(dims, x, real)", "full(dims, 2, i32)",
                                      "full(dims, 1, i64)", "full(dims, true, boolean)"};
  const bool is_found = std::any_of(type.dims.begin(), type.dims.end(), [&](int dim) {
    return program.dims[dim].kind == DimInfo::Kind::found;
  });
  if (type.is_array || is_found) return {};
  program.values.push_back(type);
  return Instruction{.rule = rule_named(names[static_cast<int>(type.element)]),
                     .outputs = {static_cast<int>(program.values.size()) - 1},
                     .dims = type.dims,
                     .constant = 0.5};
}

/// Replaces an output of an instruction by a constant.
Attempt use_constant(Program& program, int place, int variant) {
  const auto found = at(program, place);
  if (!found) return Attempt::no_place;
  const Instruction& in = found->instruction();
  if (variant >= static_cast<int>(in.outputs.size())) return Attempt::no_variant;
  const int output = in.outputs[variant];
  if (in.inputs.empty()) return Attempt::made;
  const auto constant = make_constant(program, ValueType(program.values[output]));
  if (!constant) return Attempt::made;
  Place after = *found;
  after.block->body.insert(after.block->body.begin() + after.position++, *constant);
  replace_output(program, after, output, constant->outputs[0]);
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

/// Replaces a scan, a vmap or a derivative by its block. Constants take the places of the slices
/// and of the results, or inputs of the same types, if only a run knows a size.
Attempt inline_slice(Program& program, int place, int variant) {
  const auto found = at(program, place);
  if (!found) return Attempt::no_place;
  const Instruction in = found->instruction();
  const bool has_slices = in.control == Control::scan || in.control == Control::vmap ||
                          in.control == Control::derivative;
  if (variant || !has_slices) return Attempt::no_variant;
  std::vector<Instruction> body;
  const std::vector<int> reads = count_reads(program);
  const auto use_constants = [&](const std::vector<int>& values) {
    for (const int value : values) {
      if (!reads[value]) continue;
      ValueType type = program.values[value];
      type.dims = to_wholes(type.dims, in.slices);
      if (const auto constant = make_constant(program, type)) {
        body.push_back(*constant);
        replace_reads(program, value, constant->outputs[0]);
        continue;
      }
      const auto same = std::find_if(in.inputs.begin(), in.inputs.end(), [&](int input) {
        return same_type(program, program.values[input], type);
      });
      if (same == in.inputs.end()) return false;
      replace_reads(program, value, *same);
    }
    return true;
  };
  if (!use_constants(in.blocks[0].params) || !use_constants(in.outputs)) return Attempt::no_variant;
  // The reads of the parameters have changed.
  const Block& inner = found->instruction().blocks[0];
  body.insert(body.end(), inner.body.begin(), inner.body.end());
  auto& outer = found->block->body;
  outer.erase(outer.begin() + static_cast<std::ptrdiff_t>(found->position));
  outer.insert(outer.begin() + static_cast<std::ptrdiff_t>(found->position), body.begin(),
               body.end());
  return Attempt::made;
}

/// Moves an instruction in front of the instruction that runs its block, if its inputs are visible
/// there. The other instructions of the block, and the block itself, may then go.
Attempt move_out(Program& program, int place, int variant) {
  const auto found = at(program, place);
  if (!found) return Attempt::no_place;
  if (variant || !found->outer) return Attempt::no_variant;
  const auto end = found->visible.begin() + static_cast<std::ptrdiff_t>(found->outer_visible);
  Instruction in = found->instruction();
  if (!std::all_of(in.inputs.begin(), in.inputs.end(),
                   [&](int input) { return std::find(found->visible.begin(), end, input) != end; }))
    return Attempt::no_variant;
  found->block->body.erase(found->block->body.begin() +
                           static_cast<std::ptrdiff_t>(found->position));
  found->outer->body.insert(
      found->outer->body.begin() + static_cast<std::ptrdiff_t>(found->outer_position),
      std::move(in));
  return Attempt::made;
}

/// Removes an argument of a vmap that its function does not read.
Attempt drop_rows(Program& program, int place, int variant) {
  const auto found = at(program, place);
  if (!found) return Attempt::no_place;
  Instruction& in = found->instruction();
  if (in.control != Control::vmap || variant >= std::ssize(in.inputs) || in.inputs.size() == 1)
    return Attempt::no_variant;
  std::vector<int>& params = in.blocks[0].params;
  if (count_reads(program)[params[variant]]) return Attempt::made;
  params.erase(params.begin() + variant);
  in.inputs.erase(in.inputs.begin() + variant);
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
  const int param = body.params[variant];
  const auto constant = make_constant(program, ValueType(program.values[param]));
  if (!constant) return Attempt::made;
  body.body.insert(body.body.begin(), *constant);
  replace_reads(program, param, constant->outputs[0]);
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

constexpr Step kSteps[] = {
    drop_dead,          drop_input,  drop_result,  use_another,    use_input_in_term, shorten_rows,
    use_constant,       move_out,    inline_block, inline_slice,   drop_rows,         drop_state,
    use_constant_slice, drop_option, smaller_dim,  simpler_number, simpler_input};

}  // namespace

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
  const bool has_one_order = branches_have_one_order(program);
  const auto accept = [&](Program& smaller) {
    if (cleans) remove_unused(smaller);
    if (sizes(smaller) >= sizes(program) || (has_one_order && !branches_have_one_order(smaller)) ||
        !shows(smaller))
      return false;
    program = std::move(smaller);
    return true;
  };
  const auto try_all_steps = [&] {
    bool progress = false;
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
    return progress;
  };
  for (bool progress = true; progress;) {
    cleans = true;
    Program cleaned = program;
    cleans = accept(cleaned) || size_of(cleaned) == size_of(program);
    progress = try_all_steps();
    if (progress || !cleans) continue;
    // The defect may stay without the code that reads it.
    cleans = false;
    progress = try_all_steps();
  }
  return program;
}

}  // namespace reel::fuzz
