// frontend/sequence_reads.h — how often a Sequence had read what it was asked for.
#pragma once

#include <cstdint>

namespace reel {

/// Pieces of Sequences, since the program began: those that were read before they were asked for,
/// and those that were not.
struct SequenceReads {
  std::int64_t ahead = 0, when_asked = 0;
};
SequenceReads sequence_reads();

}  // namespace reel
