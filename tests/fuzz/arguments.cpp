#include "reel/tests/fuzz/arguments.h"

#include <algorithm>
#include <functional>
#include <limits>

#include "reel/core/ops.h"
#include "reel/tests/fuzz/random.h"

namespace reel::fuzz {
namespace {

Tensor tensor_of(const Program& program, const ValueType& type, const std::vector<double>& values,
                 const std::vector<Dim>& dims) {
  Dims axes;
  for (const int dim : type.dims)
    axes.push_back(program.dims[dim].is_named() ? dims[dim] : Dim(program.dims[dim].size));
  const Tensor made = axes.empty() ? scalar(values.at(0), f64) : tensor(values, axes, f64);
  return cast(made, dtype_of(program, type.element));
}

}  // namespace

const std::vector<int>& lengths_of(const DimInfo& dim, const Call& call) {
  return call.is_elsewhere && !dim.is_captured ? dim.elsewhere : dim.lengths;
}

int extent(const Program& program, int dim, const Call& call) {
  const DimInfo& info = program.dims[dim];
  if (info.has_size()) return info.size;
  const std::vector<int>& lengths = lengths_of(info, call);
  return lengths.empty() ? 0 : *std::max_element(lengths.begin(), lengths.end());
}

void for_each_element(const Program& program, const std::vector<int>& dims, const Call& call,
                      const std::function<void(std::uint64_t, bool)>& fn) {
  std::vector<int> sizes;
  std::uint64_t count = 1;
  for (const int dim : dims) {
    sizes.push_back(extent(program, dim, call));
    count *= sizes.back();
  }
  std::vector<int> index(dims.size());
  for (std::uint64_t position = 0; position < count; ++position) {
    std::uint64_t rest = position;
    for (std::size_t axis = dims.size(); axis-- > 0;) {
      index[axis] = static_cast<int>(rest % sizes[axis]);
      rest /= sizes[axis];
    }
    bool is_valid = true;
    for (std::size_t axis = 0; axis < dims.size(); ++axis) {
      const DimInfo& dim = program.dims[dims[axis]];
      if (dim.kind != DimInfo::Kind::ragged || !is_subset(dim.over, dims)) continue;
      int entry = 0;
      for (const int over : dim.over) {
        const auto at = std::find(dims.begin(), dims.end(), over) - dims.begin();
        entry = entry * sizes[at] + index[at];
      }
      is_valid = is_valid && index[axis] < lengths_of(dim, call)[entry];
    }
    fn(position, is_valid);
  }
}

std::vector<double> input_values(const Program& program, std::size_t input, const Call& call) {
  const InputInfo& info = program.inputs[input];
  const ValueType& type = program.values[program.main.params[input]];
  std::vector<double> values;
  for_each_element(program, type.dims, call, [&](std::uint64_t position, bool is_valid) {
    Random random(info.salt + position * 0x632be59bd9b4e019);
    const int drawn = random.between(info.low, info.high);
    if (type.element == Element::boolean)
      values.push_back(is_valid ? drawn & 1 : call.has_nan);
    else if (type.element != Element::real)
      values.push_back(is_valid ? drawn : call.padding ? 2e9 : call.has_nan ? 1000003 : 1);
    else
      values.push_back(is_valid       ? drawn / 8.
                       : call.padding ? *call.padding
                       : call.has_nan ? std::numeric_limits<double>::quiet_NaN()
                                      : 0.5);
  });
  return values;
}

std::vector<double> direction_values(const Program& program, std::size_t input, const Call& call,
                                     int which) {
  // With this many steps, two elements are unlikely to get the same direction. Equal elements with
  // equal directions would remain ties.
  constexpr int kSteps = 1 << 20;
  const ValueType& type = program.values[program.main.params[input]];
  std::vector<double> values;
  for_each_element(program, type.dims, call, [&](std::uint64_t position, bool is_valid) {
    Random random(~program.inputs[input].salt + which + position * 0x632be59bd9b4e019);
    values.push_back(is_valid ? random.between(1, kSteps) * (random.chance(50) ? 1. : -1.) / kSteps
                              : 0.);
  });
  return values;
}

Arguments make_arguments(const Program& program, const Call& call, const Arguments* first) {
  Arguments arguments;
  for (std::size_t i = 0; i < program.dims.size(); ++i) {
    const DimInfo& info = program.dims[i];
    Dim dim;
    Dims over;
    for (const int outer : info.over) over.push_back(arguments.dims[outer]);
    const std::vector<int>& lengths = lengths_of(info, call);
    if (first && info.is_named() && !info.comes_with_arguments())
      dim = first->dims[i];
    else if (info.kind == DimInfo::Kind::fixed)
      dim = Dim(info.name, info.size);
    else if (info.kind == DimInfo::Kind::dynamic)
      dim = call.is_static ? Dim(info.name, lengths.at(0)) : Dim(info.name, scalar(lengths.at(0)));
    else if (info.kind == DimInfo::Kind::ragged)
      dim = Dim(info.name, tensor(lengths, over));
    arguments.dims.push_back(dim);
  }
  for (std::size_t i = 0; i < program.inputs.size(); ++i)
    arguments.all.push_back(tensor_of(program, program.values[program.main.params[i]],
                                      input_values(program, i, call), arguments.dims));
  return arguments;
}

Tensors make_directions(const Program& program, const Arguments& arguments, const Call& call,
                        int which) {
  Tensors directions;
  for (std::size_t i = 0; i < program.inputs.size(); ++i) {
    if (program.inputs[i].is_captured) continue;
    const ValueType& type = program.values[program.main.params[i]];
    directions.push_back(
        type.element == Element::real
            ? tensor_of(program, type, direction_values(program, i, call, which), arguments.dims)
            : zeros_like(arguments.all[i]));
  }
  return directions;
}

}  // namespace reel::fuzz
