// core/ops/kernels/isa.h — selects among kernel tables that were compiled once per instruction set.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <iterator>

#include "reel/core/runtime/instruction_set.h"
#include "reel/core/runtime/processor.h"

namespace reel {

/// Returns the table of a family, REEL_TABLES(name), for instruction_set(). Throws as that does.
template <class Table>
const Table& for_this_processor(std::initializer_list<const Table*> tables) {
  const auto chosen =
      std::find(std::begin(kInstructionSets), std::end(kInstructionSets), instruction_set());
  return *tables.begin()[chosen - std::begin(kInstructionSets)];
}

}  // namespace reel
