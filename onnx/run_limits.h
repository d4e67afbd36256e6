// onnx/run_limits.h — RunLimits, the bytes and axes that a call of a model may have.
#pragma once

#include <cstddef>
#include <cstdint>

#include "reel/onnx/load_options.h"
#include "reel/onnx/value.h"

namespace reel::imported {

struct Node;

/// The limits of this thread's innermost call of a model, during its lifetime.
class RunLimits {
 public:
  explicit RunLimits(const LoadOnnxOptions& options);
  ~RunLimits();
  RunLimits(const RunLimits&) = delete;
  RunLimits& operator=(const RunLimits&) = delete;

  /// Returns the limits of the call, or null on a thread without one.
  static RunLimits* of_this_thread();

  /// Returns the bytes that the values of the call may still take.
  std::int64_t bytes_left() const { return options_.max_bytes - held_; }
  /// Adds bytes that a scope holds; negative if it frees them.
  void hold(std::int64_t bytes) { held_ += bytes; }
  const LoadOnnxOptions& options() const { return options_; }

 private:
  LoadOnnxOptions options_;
  std::int64_t held_ = 0;  ///< bytes of values that scopes hold
  RunLimits* outer_;
};

/// Returns the bytes of data that the values hold and that were made on this thread after the block
/// with the id `begin`. Data that several of them share count once.
std::int64_t bytes_made_since(std::uint64_t begin, const Values& values);

/// Throws OnnxError if a tensor has more axes than the call allows.
void check_rank(const Node& node, std::size_t axes);
/// Throws OnnxError if a value has more axes than the call allows. Throws too if the product of the
/// sizes other than 0 does not fit into 58 bits: rules multiply sizes.
void check_sizes(const Node& node, const Value& value);
/// Throws OnnxError if the values of the call would take too much with `bytes` more. For rules that
/// fill lists.
void check_bytes(const Node& node, double bytes);
/// Throws OnnxError: the values of the call take more than its limit.
[[noreturn]] void refuse_bytes(const Node& node);

}  // namespace reel::imported
