// core/op/op.h — Op, the complete definition of one operation.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "reel/core/base/errors.h"
#include "reel/core/base/visibility.h"
#include "reel/core/op/attrs.h"
#include "reel/core/types/fwd.h"
#include "reel/core/types/type_list.h"

REEL_API_BEGIN
namespace reel {

/// An argument of an op. A temporary with a reference count of one may give its buffer to the
/// result.
struct OpInput {
  const Tensor* tensor;
  bool temporary = false;
  OpInput(const Tensor& argument) : tensor(&argument) {}
  OpInput(Tensor&& argument) : tensor(&argument), temporary(true) {}
};
using OpInputs = std::span<const OpInput>;

/// Returns the tensor of a temporary input of this type if its reference count is one, to be
/// overwritten; otherwise a new tensor with uninitialised data.
Tensor take_or_allocate(OpInputs inputs, const TensorType& type);

/// Arguments of a type rule. The rule checks attributes and input types, throws if they do not fit,
/// and adds the output types to `out`.
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

/// Arguments of a kernel. Types are already checked. The kernel makes outputs with make(), reuse()
/// or alias(). An executor that knows sizes beforehand may have placed them already.
struct KernelArgs {
  const Op& op;
  const Attrs* attrs;
  OpInputs in;
  /// True if the kernel may overwrite temporary inputs. False if a tape still records them
  /// afterwards.
  bool may_reuse;
  std::span<const TensorType> types;  ///< of the outputs; empty for ops with kernel_decides_types
  std::span<Tensor> out;
  Tensors* decided = nullptr;  ///< for ops with kernel_decides_types: receives all outputs
  bool adds = false;  ///< add to the content of a placed output; only for ops with Op::can_add

  template <class T>
  const T& attr() const {
    return get<T>(attrs);
  }
  const Tensor& input(std::size_t i) const { return *in[i].tensor; }
  /// Returns output i, uninitialised: the placed one, or a new tensor.
  Tensor& make(std::size_t i = 0) const {
    return out[i].is_defined() ? out[i] : out[i] = Tensor(allocate_block(types[i]));
  }
  /// Returns output i in the buffer of a temporary input of its type, or else as make() does.
  Tensor& reuse(std::size_t i = 0) const {
    return may_reuse ? out[i] = take_or_allocate(in, types[i]) : make(i);
  }
  /// Returns true if input i is a temporary that may be overwritten if its reference count is one.
  bool may_take(std::size_t i) const { return may_reuse && in[i].temporary; }
  /// Makes output i a view of an input's storage, at `offset` bytes.
  Tensor& alias(std::size_t i, std::size_t of, std::int64_t offset = 0) const;
};
using OpKernel = void (*)(KernelArgs&);

/// Where the outputs of a kernel are stored.
enum class OpStorage : std::uint8_t {
  own,    ///< in their own storage, from make() or reuse()
  input,  ///< in their own, or an input's as a view by alias(); decided by types and attributes
  any,    ///< anywhere: the kernel returns an existing tensor or retains its inputs
};

/// The inputs and outputs that a vjp reads (bit sets; bit 31 stands for 31 and all above).
struct OpReads {
  std::uint32_t inputs = 0, outputs = 0;
};
inline constexpr std::uint32_t kAll = ~0u;

/// One input of a sample: its type, and the interval from which its elements are drawn.
struct SampleInput {
  TensorType type;
  double low = -2, high = 2;
  /// True if the op is differentiable in it at generic points; false for indices, masks and the
  /// like.
  bool differentiable = true;
};
/// One call of an op, for the tests that every op must pass.
struct OpSample {
  std::vector<SampleInput> inputs;
  AttrsRef attrs = {};
};
using OpSamples = std::vector<OpSample>;

/// Applies an op to many iterations of a loop at once (core/ops/shape/iteration_batching.h).
using IterationBatchingRule = std::vector<Tensor> (*)(const IterationBatch&);

/// The integer that an output is in every run, or nothing if it is unknown or no scalar integer.
using KnownInteger = std::optional<std::int64_t>;

/// The possible causes of failure of a call with correct types.
struct Failures {
  std::uint32_t values = kAll;  ///< operands with values that can (a bit set, as in OpReads)
  bool memory = true;           ///< the kernel allocates, even if its outputs are placed
};
constexpr Failures never_fails(const Attrs*) { return {0, false}; }
constexpr Failures fails_without_memory(const Attrs*) { return {0, true}; }

/// How the results depend on numbers in the padding of operands.
enum class Padding : std::uint8_t {
  shown,     ///< they may show anywhere in the results: the op moves or combines elements
  apart,     ///< they show in the padding of the results alone: every element is on its own
  selected,  ///< as apart; operands 1 and 2, if they lack the dim, are numbers for its padding
  dropped,   ///< those along the axes that the op reduces or normalises are needed no more
  unread,    ///< the results depend on the types of operands alone
};

/// The number that padding must have in a reduced axis so that it adds nothing to the result.
enum class Neutral : std::uint8_t {
  none,            ///< there is none, or the op does not tell it
  zero,            ///< in sums and matrix products
  lowest,          ///< in maxima
  highest,         ///< in minima
  minus_infinity,  ///< in sums of exponentials
};

/// What an op does with lengths of dims.
enum class DimUse : std::uint8_t {
  none,     ///< nothing that other code asks for
  reads,    ///< its results are made of the lengths of the dim in its attributes (dim_read_by())
  defines,  ///< its result is a dim with the lengths of operand 0 (name_of_defined_dim())
};

/// One operation. Ops are constants, one per op, in the file of the op's family.
struct Op {
  std::string_view name;
  TypeRule type = nullptr;
  OpKernel kernel = nullptr;
  OpStorage storage = OpStorage::own;
  /// Optional, for the many small ops of eager mode: type rule and kernel together, if operands and
  /// result have one type. Returns an empty Tensor if operand types differ.
  Tensor (*of_one_type)(OpInputs in, bool may_reuse) = nullptr;
  /// Computes the cotangents of inputs from the cotangents of outputs, by applying ops. If null,
  /// `no_vjp` has the reason.
  void (*vjp)(Vjp&) = nullptr;
  const char* no_vjp = nullptr;
  OpReads reads = {};
  /// Replaces `reads` if the operands that are read depend on the attributes, or on the inputs
  /// with wanted cotangents (a bit set).
  OpReads (*reads_by)(const Attrs*, std::uint32_t wanted) = nullptr;
  OpSamples (*samples)() = nullptr;
  /// Output types depend on values: the kernel sets them, and the type rule serves traces only.
  bool kernel_decides_types = false;
  /// Element i of the result depends only on elements i of operands: cheaper to recompute than to
  /// save.
  bool pointwise = false;
  /// Returns its input with a new identity, for tapes; graphs do not need it.
  bool is_identity = false;
  /// The operands that may be values of TensorArrays (a bit set, as in OpReads). bind refuses lists
  /// as other operands.
  std::uint32_t takes_lists = 0;
  /// Applies the op to many iterations at once. Not needed for pointwise ops.
  IterationBatchingRule iteration_batching = nullptr;
  /// One application to many iterations is much cheaper than one per iteration.
  bool gains_from_batching = false;
  /// The kernel can add its result to the output's content (KernelArgs::adds).
  bool can_add = false;
  /// The result is input 0 with few changed elements: placed on the input's storage, it needs no
  /// copy.
  bool updates_input = false;
  /// The kernel reads each element of input 0 before it writes there (may_lie_on_input()).
  bool works_in_place = false;
  /// Inputs may be values of unknown rank (core/functions/unranked.h). Traces refuse them
  /// elsewhere.
  bool takes_unranked = false;
  /// Has an effect besides its result (print): never dropped, merged or repeated.
  bool has_effect = false;
  /// For integers that are known before a graph runs (core/graph/known_number.h).
  KnownInteger (*known_integer)(const Attrs*, std::span<const std::int64_t> in) = nullptr;
  /// Sets the factors of the op's axes (core/op/axes.h). Not needed for pointwise ops. If null,
  /// results may depend on all elements of all operands.
  void (*axes)(const OpCall&, AxisFactors&) = nullptr;

  // core/op/facts.h has the defaults of the following facts, and most functions that read them.

  /// Returns true if the results are zero whenever these operands are (a bit set, as in OpReads).
  bool (*zero_if)(const Attrs*, std::uint32_t zeros) = nullptr;
  Failures (*fails)(const Attrs*) = nullptr;
  /// Returns true if the kernel reads lengths, or leaves out padding, while operand `in` has rows
  /// at this axis: results may depend on the lengths of several rows.
  bool (*reads_lengths)(const OpCall&, std::size_t in, int axis) = nullptr;
  Padding padding = Padding::shown;
  Neutral neutral = Neutral::none;
  /// The result is operand 0, whatever type it has.
  bool returns_input = false;
  DimUse dim_use = DimUse::none;
  /// For OpStorage::input: returns true if the result is a view of input 0. If null, it always is.
  /// The call need have no other inputs.
  bool (*makes_view)(const OpCall&) = nullptr;
  /// Returns the number of multiplications of a product; 0 if sizes are unknown. The call need
  /// have only the first input.
  std::int64_t (*multiplications)(const OpCall&) = nullptr;
};

/// Returns the operands that the vjp of one application reads, given the inputs `wanted`.
inline OpReads reads_of(const Op& op, const Attrs* attrs, std::uint32_t wanted) {
  return op.reads_by ? op.reads_by(attrs, wanted) : op.reads;
}
/// Implements `reads_by` of products: the cotangent of each of two operands reads the other one.
constexpr OpReads reads_the_other(const Attrs*, std::uint32_t wanted) {
  return {.inputs = (wanted & 1) << 1 | (wanted >> 1 & 1)};
}

/// Implements `reads_by` of ops with a vjp that needs the sizes of operand 0. The vjp reads the
/// operand if only a run determines a plain size (`reads_shape` of the attributes).
template <class T>
OpReads reads_shape(const Attrs* attrs, std::uint32_t) {
  return {.inputs = get<T>(attrs).reads_shape};
}

/// Applies the type rule. Errors about requested dims that form no type get the op's name.
inline void apply_type_rule(TypeArgs& args) {
  try {
    args.op.type(args);
  } catch (Error& error) {
    if (!error.names_function()) error.name_function(args.op.name);
    throw;
  }
}

/// Returns all ops, in the order of their families. For tests, and for reading files.
std::span<const Op* const> all_ops();

}  // namespace reel
REEL_API_END
