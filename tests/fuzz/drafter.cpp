#include "reel/tests/fuzz/drafter.h"

#include <algorithm>
#include <stdexcept>

#include "reel/tests/fuzz/policies.h"
#include "reel/tests/fuzz/program/slices.h"

namespace reel::fuzz {

int Drafter::pick(const Accepts& accepts) {
  std::vector<int> fitting;
  for (const int value : visible_)
    if (accepts(value)) fitting.push_back(value);
  if (fitting.empty()) return -1;
  // The larger of two draws makes longer chains than a fair draw.
  const int n = static_cast<int>(fitting.size());
  return fitting[std::max(random_.below(n), random_.below(n))];
}

int Drafter::pick(Element element) {
  return pick([&](int v) { return !type(v).is_array && type(v).element == element; });
}

int Drafter::pick_axis(int value, const std::function<bool(const DimInfo&)>& accepts) {
  std::vector<int> fitting;
  for (int i = 0; i < rank(value); ++i)
    if (accepts(dim(type(value).dims[i]))) fitting.push_back(is_named() ? type(value).dims[i] : i);
  return fitting.empty() ? -1 : fitting[random_.below(fitting.size())];
}

std::vector<int> Drafter::pick_dims(int at_most) {
  std::vector<int> dims;
  const int count = random_.between(0, at_most);
  for (int i = 0; i < count; ++i) {
    if (!is_named()) {
      dims.push_back(plain(random_.between(random_.chance(10) ? 0 : 1, 3)));
      continue;
    }
    if (visible_dims_.empty()) break;
    const int dim = visible_dims_[random_.below(visible_dims_.size())];
    if (contains(dims, dim)) continue;
    dims.push_back(dim);
    if (have_one_origin(program_, dims)) dims.pop_back();
  }
  return dims;
}

PolicyForm Drafter::policy() {
  return random_.chance(percent_with_policy_) ? draw_policy(random_) : PolicyForm{};
}

int Drafter::new_value(const ValueType& type) {
  program_.values.push_back(type);
  return static_cast<int>(program_.values.size()) - 1;
}

int Drafter::new_dim(DimInfo info) {
  const int index = static_cast<int>(program_.dims.size());
  if (info.is_named()) info.name += std::to_string(index);
  program_.dims.push_back(std::move(info));
  return index;
}

int Drafter::plain(int size) {
  for (std::size_t i = 0; i < program_.dims.size(); ++i)
    if (program_.dims[i].kind == DimInfo::Kind::plain && program_.dims[i].size == size)
      return static_cast<int>(i);
  return new_dim({.kind = DimInfo::Kind::plain, .size = size});
}

int Drafter::sized(int size) {
  if (!is_named()) return plain(size);
  return new_dim({.kind = DimInfo::Kind::fixed, .name = "part", .size = size});
}

void Drafter::append(Instruction instruction) {
  for (const int value : instruction.outputs) show(value);
  for (const int dim : instruction.found)
    if (dim >= 0 && program_.dims[dim].is_named()) show_dim(dim);
  for (const SlicedDim& sliced : instruction.sliced) show_dim(sliced.slice);
  current_->body.push_back(std::move(instruction));
}

int Drafter::apply(const std::string& rule, const std::vector<int>& inputs, const ValueType& type,
                   Instruction attributes) {
  const auto found = std::find_if(all_rules().begin(), all_rules().end(),
                                  [&](const Rule* r) { return r->name() == rule; });
  if (found == all_rules().end()) throw std::logic_error("there is no rule " + rule);
  attributes.rule = *found;
  attributes.inputs = inputs;
  attributes.outputs = {new_value(type)};
  const int output = attributes.outputs[0];
  append(std::move(attributes));
  return output;
}

const Rule* Drafter::draw() {
  int total = 0;
  for (const Rule* rule : rules_) total += rule->weight();
  int at = random_.below(total);
  for (const Rule* rule : rules_) {
    at -= rule->weight();
    if (at < 0) return rule;
  }
  return rules_.back();
}

void Drafter::write(int count) {
  const std::size_t enough = current_->body.size() + count;
  // Not every rule fits. If none does, the program ends sooner.
  for (int tries = 0; current_->body.size() < enough && tries < 20 * count; ++tries) {
    Instruction instruction;
    instruction.rule = draw();
    if (instruction.rule->draft(*this, instruction)) append(std::move(instruction));
  }
}

Block Drafter::block(const std::vector<ValueType>& params,
                     const std::function<void(Block&)>& inside) {
  Block block;
  Block* const outer = current_;
  const std::size_t values = visible_.size(), dims = visible_dims_.size(), begin = block_begin_;
  const int outer_dims_begin = dims_begin_;
  current_ = &block;
  block_begin_ = values;
  dims_begin_ = static_cast<int>(dims);
  ++depth_;
  for (const ValueType& type : params) {
    block.params.push_back(new_value(type));
    show(block.params.back());
  }
  inside(block);
  --depth_;
  current_ = outer;
  block_begin_ = begin;
  dims_begin_ = outer_dims_begin;
  visible_.resize(values);
  visible_dims_.resize(dims);
  return block;
}

int Drafter::make_like(int like) {
  const ValueType wanted = type(like);
  if (wanted.is_array) {
    for (std::size_t i = visible_.size(); i-- > block_begin_;)
      if (same_type(program_, type(visible_[i]), wanted) && type(visible_[i]).least >= wanted.least)
        return visible_[i];
    return like;
  }
  const int other = pick([&](int v) {
    if (type(v).is_array || type(v).element != wanted.element || v == like) return false;
    const auto joined = joined_dims(program_, wanted.dims, type(v).dims);
    return joined && same_dims(program_, *joined, wanted.dims);
  });
  if (other < 0) return like;
  if (same_type(program_, type(other), wanted) && random_.chance(30)) return other;
  switch (wanted.element) {
    case Element::real: {
      const int sum = apply(random_.chance(80) ? "a + b" : "a * b", {like, other}, wanted);
      // Without this, states grow without bound.
      return random_.chance(70) ? apply("tanh(a)", {sum}, wanted) : sum;
    }
    case Element::boolean:
      return apply("logical_xor(a, b)", {like, other}, wanted);
    default:
      return apply("mod(a + b, 5)", {like, other}, wanted);
  }
}

}  // namespace reel::fuzz
