#include "reel/core/runtime/random.h"

#include "reel/core/base/str.h"
#include "reel/core/graph/graph_builder.h"
#include "reel/core/op/bind.h"
#include "reel/core/ops.h"
#include "reel/core/ops/kernels/philox.h"
#include "reel/core/ops/registry.h"
#include "reel/core/ops/shape/iteration_batching.h"
#include "reel/core/ops/shape/new_dims.h"
#include "reel/core/types/sizes.h"

namespace reel {
namespace {

std::int64_t fold(std::int64_t key, std::uint64_t number) {
  const auto words = philox(static_cast<std::uint64_t>(key), kFold, number);
  return static_cast<std::int64_t>(std::uint64_t{words[0]} << 32 | words[1]);
}

/// Folds numbers into keys. The shared axes are the first ones of both.
///
/// key: [shared..., keys..., 2], number: [shared..., numbers...]
///   -> [shared..., keys..., numbers..., 2]
struct FoldAttrs {
  int shared = 0;
  template <class F>
  static void fields(F&& f) {
    f("shared", &FoldAttrs::shared);
  }
};
int shared_axes(const Attrs* attrs) { return attrs ? get<FoldAttrs>(attrs).shared : 0; }

void fold_type(TypeArgs& a) {
  const TensorType &key = a.in[0], &number = a.in[1];
  const int shared = shared_axes(a.attrs);
  if (key.rank() <= 1) check_operand("fold_key", "the key", key, TensorType(i64, {2}));
  if (!number.rank()) check_operand("fold_key", "the number", number, TensorType(i64));
  const auto is_shared = [&](int axis) {
    return axis < number.rank() && dim_at(key, axis) == dim_at(number, axis);
  };
  bool fits = key.dtype() == i64 && number.dtype() == i64 && !key.is_named() &&
              !(number.rank() && number.is_named()) && dim_at(key, key.rank() - 1) == Dim(2) &&
              shared < key.rank();
  for (int axis = 0; fits && axis < shared; ++axis) fits = is_shared(axis);
  if (!fits)
    throw ShapeError(str("fold_key: keys are i64[..., 2], and numbers i64[...], with ", shared,
                         " first axes in common; got ", key, " and ", number));
  Dims dims(key.dims().begin(), key.dims().end() - 1);
  dims.insert(dims.end(), number.dims().begin() + shared, number.dims().end());
  dims.emplace_back(2);
  a.out.push_back(TensorType(i64, dims));
}

void fold_kernel(KernelArgs& a) {
  const TensorType &keys = a.input(0).type(), &numbers = a.input(1).type();
  const auto* const key = a.input(0).data<std::int64_t>();
  const auto* const number = a.input(1).data<std::int64_t>();
  std::int64_t* out = a.make().data<std::int64_t>();
  std::int64_t shared = 1;
  for (int axis = 0; axis < shared_axes(a.attrs); ++axis)
    shared *= keys.sizes()[static_cast<std::size_t>(axis)];
  if (!shared) return;
  const std::int64_t of_each = keys.numel() / 2 / shared, count = numbers.numel() / shared;
  for (std::int64_t k = 0; k < shared * of_each; ++k)
    for (std::int64_t n = 0; n < count; ++n, out += 2) {
      const std::int64_t folded = key[2 * k + 1] + number[k / of_each * count + n];
      out[0] = fold(key[2 * k], static_cast<std::uint64_t>(folded));
      out[1] = 0;
    }
}

/// Folds the numbers of all rows of vmap. Iterations of a loop keep keys of their own.
Tensors fold_across_rows(const IterationBatch& at) {
  if (!at.is_vmap) return {};
  const int shared = shared_axes(at.attrs.get());
  const bool has_one_key = !at.is_many[0] && at.in[0].rank() == 1;
  if (has_one_key || (!at.is_many[1] && !shared))
    return bind_all(at.op, {at.in[0], at.in[1]}, at.attrs);
  return bind_all(at.op, {at.many(0), at.many(1)}, make_attrs(FoldAttrs{shared + 1}));
}

OpSamples fold_samples() {
  const auto sample = [](const Dims& key, const Dims& number, int shared) {
    return OpSample{
        {{TensorType(i64, key), 0, 100, false}, {TensorType(i64, number), 0, 100, false}},
        shared ? make_attrs(FoldAttrs{shared}) : AttrsRef()};
  };
  return {sample({2}, {}, 0), sample({2}, {3}, 0), sample({3, 2}, {4}, 0),
          sample({3, 2}, {3, 2}, 1)};
}

const Op fold_key_op{
    .name = "fold_key",
    .type = fold_type,
    .kernel = fold_kernel,
    .no_vjp = "a key is an integer",
    .samples = fold_samples,
    .iteration_batching = fold_across_rows,
};

Tensor fold_key(const Tensor& key, const Tensor& number) {
  return bind(fold_key_op, {key, number});
}

Tensor make_stream(std::int64_t key, std::int64_t first) {
  ModeScope plain({});
  return tensor(std::vector<std::int64_t>{key, first}, {2});
}

struct Stream {
  std::uint64_t seed = 0;
  std::int64_t taken = 0;
};
thread_local Stream stream;
constinit thread_local RandomScope* current = nullptr;

}  // namespace

RandomScope::RandomScope(const Tensor& stream)
    : outer_(current),
      builder_(thread_mode.builder),
      exceptions_(std::uncaught_exceptions()),
      key_(stream) {
  current = this;
}

RandomScope::RandomScope()
    : outer_(current), builder_(thread_mode.builder), exceptions_(std::uncaught_exceptions()) {
  number_ = outer_ ? outer_->taken_++ : stream.taken++;
  current = this;
}

RandomScope::~RandomScope() {
  current = outer_;
  if (number_ >= 0 && std::uncaught_exceptions() > exceptions_)
    (outer_ ? outer_->taken_ : stream.taken) = number_;
}

void RandomScope::begin(std::int64_t iteration, int part) {
  iteration_ = iteration;
  part_ = part;
  traced_iteration_ = key_ = Tensor();
  taken_ = 0;
  builder_ = thread_mode.builder;
}
void RandomScope::begin(const Tensor& iteration, int part) {
  begin(0, part);
  traced_iteration_ = iteration;
}

Tensor RandomScope::key() {
  if (key_.is_defined()) return key_;
  const Tensor around =
      outer_ ? outer_->key() : make_stream(static_cast<std::int64_t>(stream.seed), 0);
  const Tensor own = fold_key(around, scalar(number_, i64));
  Tensor result =
      fold_key(own, traced_iteration_.is_defined() ? traced_iteration_ : scalar(iteration_, i64));
  if (part_) result = fold_key(result, scalar(part_, i64));
  if (builder_ == thread_mode.builder)
    key_ = result;  // a key made in an inner graph cannot be used outside
  return result;
}

RandomParts::RandomParts() : scope_(current) {
  while (scope_ && scope_->builder_) scope_ = scope_->outer_;
  const ModeScope plain({});
  const auto around =
      scope_ ? scope_->key().data<std::int64_t>()[0] : static_cast<std::int64_t>(stream.seed);
  key_ = fold(around, static_cast<std::uint64_t>(scope_ ? scope_->taken_ : stream.taken));
}

RandomParts::~RandomParts() {
  if (has_drawn_) ++(scope_ ? scope_->taken_ : stream.taken);
}

RandomParts::Part::Part(RandomParts& parts, int index)
    : parts_(parts), scope_(current), seed_(stream.seed), taken_(stream.taken) {
  current = nullptr;
  stream = {static_cast<std::uint64_t>(fold(parts.key_, static_cast<std::uint64_t>(index))), 0};
}

RandomParts::Part::~Part() {
  if (stream.taken > 0) parts_.has_drawn_ = true;
  current = scope_;
  stream = {seed_, taken_};
}

SeededStream::SeededStream(std::uint64_t seed)
    : scope_(current), seed_(stream.seed), taken_(stream.taken) {
  current = nullptr;
  stream = {seed, 0};
}

SeededStream::~SeededStream() {
  current = scope_;
  stream = {seed_, taken_};
}

RandomDraw RandomDraw::take() {
  if (current) return {current->key(), current->taken_++};
  return {make_stream(static_cast<std::int64_t>(stream.seed), 0), stream.taken++};
}

Tensor current_random_stream() {
  if (!current) return make_stream(static_cast<std::int64_t>(stream.seed), stream.taken);
  const Tensor key = current->key();
  return make_stream(key.data<std::int64_t>()[0], key.data<std::int64_t>()[1] + current->taken_);
}
void advance_random_stream(std::int64_t numbers) {
  (current ? current->taken_ : stream.taken) += numbers;
}

void manual_seed(std::uint64_t seed) { stream = {seed, 0}; }

Tensor random_state() {
  if (is_tracing())
    throw TraceError(
        "random_state: a trace has no stream of its own; call it outside of the trace");
  return make_stream(static_cast<std::int64_t>(stream.seed), stream.taken);
}

void set_random_state(const Tensor& state) {
  if (is_tracing() || state.is_traced())
    throw TraceError(
        "set_random_state: a trace has no stream of its own; call it outside of the trace");
  const TensorType& type = state.type();
  // No allocation: load_checkpoint has replaced the tree by now.
  if (type.dtype() != i64 || type.rank() != 1 || type.sizes()[0] != 2)
    throw ArgumentError(
        str("set_random_state: a state is i64[2], as random_state() gives it, not ", type));
  const std::int64_t* numbers = state.data<std::int64_t>();
  if (numbers[1] < 0)
    throw ArgumentError(
        str("set_random_state: ", numbers[1], " numbers cannot have been taken from a stream"));
  stream = {static_cast<std::uint64_t>(numbers[0]), numbers[1]};
}

namespace {
const Op* const kRandomOps[] = {&fold_key_op};
}
std::span<const Op* const> random_ops() { return kRandomOps; }

}  // namespace reel
