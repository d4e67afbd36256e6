// distributed/call.h — Call, one call of a collective as all ranks must make it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "reel/core/base/source.h"
#include "reel/core/base/visibility.h"
#include "reel/core/types/tensor_type.h"

REEL_API_BEGIN
namespace reel {

/// A call of a collective on one rank. All ranks must make calls with equal hashes in one order.
struct Call {
  std::string name;                       ///< "all_reduce (sum)", with all that ranks must agree on
  std::vector<const TensorType*> types;   ///< of the operands
  const std::vector<std::string>* paths;  ///< of the operands, in the caller's tree; may be null
  SourceId source = kNoSource;

  /// Returns a number that depends on the name, and on paths, dtypes, sizes, dim names and lengths
  /// of the operands. It is equal in all processes of one program. Requires types of a run.
  std::uint64_t hash() const;
  /// Returns the operands as text, each as "path: type". Lengths of ragged dims are listed.
  std::vector<std::string> operands() const;
};

/// Returns "name" or "name at file:line". Without debug information: with the name of the calling
/// function.
std::string text_of(std::string_view name, SourceId source);

/// Serialises a call for other ranks, as lines: name and place, then the operands.
std::string pack(const Call& call);

/// Returns one line for each rank. Operands are listed only if they differ between ranks with calls
/// of one name. texts: by rank, from pack().
std::string compare(const std::vector<std::string>& texts);

}  // namespace reel
REEL_API_END
