// core/op.h — Op, everything that the library knows about one operation, in one place.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "reel/core/attrs.h"
#include "reel/core/errors.h"
#include "reel/core/fwd.h"
#include "reel/core/type_list.h"

namespace reel {

/// An argument of an op. A temporary that nobody else holds may give its buffer to the result.
struct OpInput {
  const Tensor* tensor;
  bool temporary = false;
  OpInput(const Tensor& tensor) : tensor(&tensor) {}
  OpInput(Tensor&& tensor) : tensor(&tensor), temporary(true) {}
};
using OpInputs = std::span<const OpInput>;

/// The tensor of an input that is a temporary of that type and that nobody else holds, to be
/// written to; else a new one, uninitialised.
Tensor take_or_allocate(OpInputs inputs, const TensorType& type);

/// What a type rule sees: attributes and the types that come in; it checks them and lists the types
/// that go out.
struct TypeArgs {
  const Op& op;
  const Attrs* attrs;
  std::span<const TensorType> in;
  TypeList& out;
  template <class T>
  const T& attr() const {
    return get<T>(attrs);
  }
};
using TypeRule = void (*)(TypeArgs&);

/// What a kernel sees. Types are checked already; outputs are made by make(), reuse() or alias(),
/// or are there already: an executor that knows sizes beforehand places them.
struct KernelArgs {
  const Op& op;
  const Attrs* attrs;
  OpInputs in;
  /// Temporaries among the inputs may be used up; false where somebody is told of them when the op
  /// is done.
  bool may_reuse;
  std::span<const TensorType> types;  ///< of the outputs; empty for ops whose kernel decides them
  std::span<Tensor> out;
  Tensors* decided =
      nullptr;        ///< for ops whose kernel decides types: the outputs, as many as there are
  bool adds = false;  ///< to what a placed output holds, of ops that can (Op::can_add)

  template <class T>
  const T& attr() const {
    return get<T>(attrs);
  }
  const Tensor& input(std::size_t i) const { return *in[i].tensor; }
  /// Output i, uninitialised: where a plan has placed it, or in a new block.
  Tensor& make(std::size_t i = 0) const {
    return out[i].is_defined() ? out[i] : out[i] = Tensor(allocate_block(types[i]));
  }
  /// Output i in the buffer of an input of its type that nobody else holds, or in a new one.
  Tensor& reuse(std::size_t i = 0) const {
    return may_reuse ? out[i] = take_or_allocate(in, types[i]) : make(i);
  }
  /// Input i is a temporary, and may be used up if nobody else holds it.
  bool may_take(std::size_t i) const { return may_reuse && in[i].temporary; }
  /// Output i as a view of an input's storage, `offset` bytes in.
  Tensor& alias(std::size_t i, std::size_t of, std::int64_t offset = 0) const;
};
using OpKernel = void (*)(KernelArgs&);

/// Whose memory the outputs of a kernel lie in.
enum class OpStorage : std::uint8_t {
  own,    ///< their own, from make() or reuse()
  input,  ///< their own, or an input's of which alias() makes a view: types and attributes tell
          ///< which
  any,    ///< anybody's: the kernel hands over a tensor that it found, or keeps its inputs
};

/// Which inputs and outputs a vjp reads (bit sets; bit 31 stands for 31 and all above).
struct OpReads {
  std::uint32_t inputs = 0, outputs = 0;
};
inline constexpr std::uint32_t kAll = ~0u;

/// One input of a sample: its type, and the interval that its elements are drawn from.
struct SampleInput {
  TensorType type;
  double low = -2, high = 2;
  /// The op is differentiable in it at generic points; false for indices, masks and the like.
  bool differentiable = true;
};
/// One way to call an op, for the tests that every op must pass.
struct OpSample {
  std::vector<SampleInput> inputs;
  AttrsRef attrs = {};
};
using OpSamples = std::vector<OpSample>;

/// How an op is done for many steps of a loop at once (core/over_time.h).
using OverTimeRule = std::vector<Tensor> (*)(const OverTime&);

/// One operation. Objects of this type are constants, one per op, in the file of the op's family.
struct Op {
  std::string_view name;
  TypeRule type = nullptr;
  OpKernel kernel = nullptr;
  OpStorage storage = OpStorage::own;
  /// Does all of the above where operands are tensors of one type, which is the result's; gives an
  /// empty Tensor where they are not. Optional, for the many small ops of eager mode.
  Tensor (*of_one_type)(OpInputs in, bool may_reuse) = nullptr;
  /// Computes cotangents of inputs from those of outputs, with ops. Null with a reason in no_vjp.
  void (*vjp)(Vjp&) = nullptr;
  const char* no_vjp = nullptr;
  OpReads reads = {};
  /// Instead of `reads`, for ops that tell by the attributes, or by the inputs whose cotangents are
  /// wanted (a bit set), which operands are read.
  OpReads (*reads_by)(const Attrs*, std::uint32_t wanted) = nullptr;
  OpSamples (*samples)() = nullptr;
  /// Output types depend on values: the kernel sets them, the type rule serves traces only.
  bool kernel_decides_types = false;
  /// Result element i depends on operands' elements i only: cheaper to compute again than to save.
  bool pointwise = false;
  /// Gives its input under another identity, for tapes: a graph needs it not.
  bool is_identity = false;
  /// Done over time by this rule; pointwise ops need none of their own.
  OverTimeRule over_time = nullptr;
  /// One application over time is much cheaper than one for each step.
  bool gains_over_time = false;
  /// Its kernel can add the result to what is there (KernelArgs::adds).
  bool can_add = false;
  /// The result is input 0 with few places changed: where it is placed on that, nothing is copied.
  bool updates_input = false;
  /// Has an effect besides its result (print): never dropped, merged or repeated.
  bool has_effect = false;
};

/// What the vjp of one application reads, where cotangents of the inputs `wanted` are wanted.
inline OpReads reads_of(const Op& op, const Attrs* attrs, std::uint32_t wanted) {
  return op.reads_by ? op.reads_by(attrs, wanted) : op.reads;
}
/// For `reads_by` of products: the cotangent of each of two operands reads the other one.
constexpr OpReads reads_the_other(const Attrs*, std::uint32_t wanted) {
  return {.inputs = (wanted & 1) << 1 | (wanted >> 1 & 1)};
}

/// Applies the type rule. Where dims that were asked for make no tensor, the message is the op's.
inline void apply_type_rule(TypeArgs& args) {
  try {
    args.op.type(args);
  } catch (Error& error) {
    if (!error.names_function()) {
      constexpr std::string_view kUnknown = "_unknown";  // the same op, for sizes of a run
      const std::string_view name = args.op.name;
      error.name_function(
          name.substr(0, name.size() - (name.ends_with(kUnknown) ? kUnknown.size() : 0)));
    }
    throw;
  }
}

/// All ops, in the order of their families: for tests and for reading files.
std::span<const Op* const> all_ops();

}  // namespace reel
