#include "reel/onnx/run_limits.h"

#include <set>

#include "reel/core/base/str.h"
#include "reel/onnx/onnx_error.h"
#include "reel/onnx/program.h"

namespace reel::imported {
namespace {

constexpr std::int64_t kMaxProduct = std::int64_t{1} << 58;  // of sizes

constinit thread_local RunLimits* limits = nullptr;

/// Adds the blocks that hold data of the value and that were made after `begin`. Views, such as the
/// parts of a split, share one.
void add_blocks(std::uint64_t begin, const Value& value, std::set<const TensorBlock*>& blocks) {
  for (const Value& element : value.elements) add_blocks(begin, element, blocks);
  if (!value.tensor.is_defined()) return;
  const TensorBlock& block = *value.tensor.block();
  const TensorBlock& owner = block.storage ? *block.storage : block;
  if (owner.kind == BlockKind::dense && is_id_since(owner.id, begin)) blocks.insert(&owner);
}

}  // namespace

RunLimits::RunLimits(const LoadOnnxOptions& options) : options_(options), outer_(limits) {
  limits = this;
}
RunLimits::~RunLimits() { limits = outer_; }

RunLimits* RunLimits::of_this_thread() { return limits; }

std::int64_t bytes_made_since(std::uint64_t begin, const Values& values) {
  std::set<const TensorBlock*> blocks;
  for (const Value& value : values) add_blocks(begin, value, blocks);
  std::int64_t bytes = 0;
  for (const TensorBlock* block : blocks) bytes += block->type.bytes();
  return bytes;
}

void check_rank(const Node& node, std::size_t axes) {
  if (!limits || axes <= static_cast<std::size_t>(limits->options().max_rank)) return;
  throw OnnxError(str(node.op, ": a tensor has ", axes,
                      " axes, more than LoadOnnxOptions::max_rank, which is ",
                      limits->options().max_rank));
}

void check_sizes(const Node& node, const Value& value) {
  for (const Value& element : value.elements) check_sizes(node, element);
  if (!value.tensor.is_defined() || value.tensor.type().is_unranked()) return;
  const Dims& dims = value.tensor.dims();
  check_rank(node, dims.size());
  std::int64_t product = 1;
  for (const Dim& dim : dims)
    if (dim.has_size() && dim.size() > 0 &&
        (__builtin_mul_overflow(product, dim.size(), &product) || product > kMaxProduct))
      throw OnnxError(str(node.op, ": the sizes of ", value.tensor.type(), " are out of range"));
}

void check_bytes(const Node& node, double bytes) {
  if (limits && !(bytes <= static_cast<double>(limits->bytes_left()))) refuse_bytes(node);
}

void refuse_bytes(const Node& node) {
  throw OnnxError(str(node.op,
                      ": the values of the call take more bytes than "
                      "LoadOnnxOptions::max_bytes, which is ",
                      limits ? limits->options().max_bytes : 0));
}

}  // namespace reel::imported
