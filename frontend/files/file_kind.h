// frontend/files/file_kind.h — kind_of_file, for error messages about a file of an unexpected kind.
#pragma once

#include <cstddef>
#include <string_view>

#include "reel/core/base/visibility.h"

namespace reel {

/// The number of bytes that kind_of_file looks at.
inline constexpr std::size_t kFileFrontBytes = 512;

/// Returns the kind of a file that begins with these bytes, in words for a message: "a zip archive,
/// as torch.save and numpy.savez write them". Empty for an unknown kind.
REEL_API std::string_view kind_of_file(std::string_view front);

/// Returns the encoding of a text that begins with these bytes, as iconv calls it, if it is UTF-16
/// or UTF-32: "UTF-16LE". Recognises it by the byte order mark, UTF-16 also by the zeros in every
/// other byte. Empty otherwise.
std::string_view wide_encoding_of(std::string_view front);

}  // namespace reel
