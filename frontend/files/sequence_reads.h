// frontend/files/sequence_reads.h — counts how often a Sequence had read ahead.
#pragma once

#include <cstdint>

namespace reel {

/// Windows of all Sequences since the program began: read before they were requested, or when.
struct SequenceReads {
  std::int64_t ahead = 0, when_asked = 0;
};
SequenceReads sequence_reads();

}  // namespace reel
