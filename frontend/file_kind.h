// frontend/file_kind.h — kind_of_file, for messages about a file that is another one than expected.
#pragma once

#include <cstddef>
#include <string_view>

namespace reel {

/// As many bytes as kind_of_file looks at.
inline constexpr std::size_t kFileFrontBytes = 512;

/// Returns the kind of file that begins with these bytes, as a message says it: "a zip archive, as
/// torch.save and numpy.savez write them". Empty for an unknown kind.
std::string_view kind_of_file(std::string_view front);

}  // namespace reel
