// tests/fuzz/finding.h — Finding, a failed check of a program.
#pragma once

#include <string>

namespace reel::fuzz {

/// A failed check. Findings of one kind may have one cause, so shrinking keeps the kind.
struct Finding {
  std::string kind, message;
};

/// Thrown to end the checks of a program.
struct FoundError {
  Finding finding;
};

/// Returns a message without types and numbers, so that a smaller program with this error has an
/// equal gist.
std::string gist(std::string message);

}  // namespace reel::fuzz
