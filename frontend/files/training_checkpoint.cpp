#include "reel/frontend/files/training_checkpoint.h"

#include <charconv>

#include "reel/core/functions/creation.h"
#include "reel/core/functions/random.h"

namespace reel::detail {
namespace {

constexpr const char* kKey = "random_state";

}  // namespace

Metadata with_random_state(Metadata metadata) {
  const Tensor state = random_state();
  const std::int64_t* numbers = state.data<std::int64_t>();
  if (!metadata.emplace(kKey, str(numbers[0], ' ', numbers[1])).second)
    throw ArgumentError(str("save_checkpoint: metadata called \"", kKey,
                            "\" are the stream of random numbers; use another name"));
  return metadata;
}

Tensor random_state_of(const Metadata& metadata, const std::string& path) {
  const auto found = metadata.find(kKey);
  if (found == metadata.end())
    throw IoError(str("load_checkpoint: ", path,
                      " was not written by save_checkpoint: its metadata have no \"", kKey,
                      "\"; use load_safetensors"));
  const std::string& text = found->second;
  const char* const end = text.data() + text.size();
  std::int64_t seed = 0, taken = 0;
  const auto first = std::from_chars(text.data(), end, seed);
  const bool has_two = first.ec == std::errc() && first.ptr != end && *first.ptr == ' ';
  const auto second = has_two ? std::from_chars(first.ptr + 1, end, taken) : first;
  if (!has_two || second.ec != std::errc() || second.ptr != end || taken < 0)
    throw IoError(str("load_checkpoint: ", path, " is damaged: its \"", kKey, "\" is \"",
                      text.substr(0, 100), "\", not a seed and a count"));
  return tensor(std::vector<std::int64_t>{seed, taken});
}

}  // namespace reel::detail
