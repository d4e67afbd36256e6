// tests/fuzz/program/slices.h — dims of slices: along a dim that lengths run over, each slice has
// its own lengths.
#pragma once

#include <vector>

#include "reel/tests/fuzz/program/program.h"

namespace reel::fuzz {

class Drafter;  // drafter.h
class Printer;  // printer.h

/// Returns the dims in a list that have lengths over `along`, or over a dim that is returned
/// before. A dim is returned if the list has all dims of its lengths. Requires that the list has
/// `along`.
std::vector<int> dims_running_over(const Program& program, const std::vector<int>& dims, int along);

/// Makes a slice of each dim in `wholes`. Its lengths run over `by` in place of `along`.
std::vector<SlicedDim> make_slices(Drafter& d, const std::vector<int>& wholes, int along,
                                   const std::vector<int>& by);

/// Returns the dims with slices in place of wholes, and the other way round.
std::vector<int> to_slices(std::vector<int> dims, const std::vector<SlicedDim>& slices);
std::vector<int> to_wholes(std::vector<int> dims, const std::vector<SlicedDim>& slices);

/// Returns the dim from which slicing has made `dim`, in one step or several; `dim` if it is no
/// slice.
int origin_of(const Program& program, int dim);
/// True if two dims in the list have one origin. Slices of one element may be one Dim in a run:
/// no tensor gets two dims of one origin.
bool have_one_origin(const Program& program, const std::vector<int>& dims);

/// Prints a definition of each slice among the dims of a value.
void print_slices(Printer& p, const std::vector<SlicedDim>& slices, int value);

}  // namespace reel::fuzz
