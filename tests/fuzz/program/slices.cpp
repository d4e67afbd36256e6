#include "reel/tests/fuzz/program/slices.h"

#include <algorithm>

#include "reel/tests/fuzz/drafter.h"
#include "reel/tests/fuzz/program/printer.h"

namespace reel::fuzz {
namespace {

/// Adds the dim, behind those that its lengths run over, if these run over `along`.
bool add_running(const Program& program, const std::vector<int>& dims, int along, int dim,
                 std::vector<int>& found) {
  const std::vector<int>& over = program.dims[dim].over;
  if (dim == along || over.empty() || contains(found, dim)) return contains(found, dim);
  if (!is_subset(over, dims)) return false;
  bool runs = false;
  for (const int of : over)
    runs = (of == along || add_running(program, dims, along, of, found)) || runs;
  if (runs) found.push_back(dim);
  return runs;
}

}  // namespace

std::vector<int> dims_running_over(const Program& program, const std::vector<int>& dims,
                                   int along) {
  std::vector<int> found;
  if (!program.is_named) return found;
  for (const int dim : dims) add_running(program, dims, along, dim, found);
  return found;
}

std::vector<SlicedDim> make_slices(Drafter& d, const std::vector<int>& wholes, int along,
                                   const std::vector<int>& by) {
  std::vector<SlicedDim> slices;
  for (const int whole : wholes) {
    std::vector<int> over;
    const auto add = [&](int dim) {
      if (!contains(over, dim)) over.push_back(dim);
    };
    for (const int dim : to_slices(d.dim(whole).over, slices)) {
      if (dim != along)
        add(dim);
      else
        for (const int other : by) add(other);
    }
    const DimInfo info{.kind = DimInfo::Kind::found,
                       .name = d.dim(whole).name + "_",
                       .over = over,
                       .whole = whole};
    slices.push_back({whole, d.new_dim(info)});
  }
  return slices;
}

std::vector<int> to_slices(std::vector<int> dims, const std::vector<SlicedDim>& slices) {
  for (const SlicedDim& sliced : slices)
    std::replace(dims.begin(), dims.end(), sliced.whole, sliced.slice);
  return dims;
}

std::vector<int> to_wholes(std::vector<int> dims, const std::vector<SlicedDim>& slices) {
  for (const SlicedDim& sliced : slices)
    std::replace(dims.begin(), dims.end(), sliced.slice, sliced.whole);
  return dims;
}

int origin_of(const Program& program, int dim) {
  while (program.dims[dim].whole >= 0) dim = program.dims[dim].whole;
  return dim;
}

bool have_one_origin(const Program& program, const std::vector<int>& dims) {
  if (!program.is_named) return false;
  for (std::size_t i = 0; i < dims.size(); ++i)
    for (std::size_t k = 0; k < i; ++k)
      if (dims[i] != dims[k] && origin_of(program, dims[i]) == origin_of(program, dims[k]))
        return true;
  return false;
}

void print_slices(Printer& p, const std::vector<SlicedDim>& slices, int value) {
  for (const SlicedDim& sliced : slices)
    if (contains(p.program().values[value].dims, sliced.slice) && p.defines(sliced.slice))
      p.line("const Dim " + p.dim(sliced.slice) + " = " + p.value(value) + ".dim(" +
             p.dim(sliced.whole) + ".name());");
}

}  // namespace reel::fuzz
