// frontend/files/audio_chunks.h — how many bytes of samples a WAV or AIFF file lacks.
#pragma once

#include <cstdint>

#include "reel/frontend/files/stored_file.h"

namespace reel {

/// Returns the number of bytes that are missing behind the end of a WAV or AIFF file: its header
/// promises them, and libsndfile reads the file as if it were shorter. Returns 0 for other files,
/// and for headers of 2^31 - 2^16 bytes or more: programs that write to a pipe put such sizes.
/// Source: IBM & Microsoft (1991), "Multimedia Programming Interface and Data Specifications 1.0";
/// Apple (1989), "Audio Interchange File Format 1.3".
std::uint64_t missing_audio_bytes(const StoredFile& file);

}  // namespace reel
