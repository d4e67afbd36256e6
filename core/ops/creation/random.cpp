#include "reel/core/runtime/random.h"

#include "reel/core/base/str.h"
#include "reel/core/graph/graph_builder.h"
#include "reel/core/op/bind.h"
#include "reel/core/ops.h"
#include "reel/core/ops/kernels/philox.h"
#include "reel/core/ops/registry.h"
#include "reel/core/types/sizes.h"

namespace reel {
namespace {

std::int64_t fold(std::int64_t key, std::uint64_t number) {
  const auto words = philox(static_cast<std::uint64_t>(key), kFold, number);
  return static_cast<std::int64_t>(std::uint64_t{words[0]} << 32 | words[1]);
}

const Op fold_key_op{
    .name = "fold_key",
    .type =
        [](TypeArgs& a) {
          check_operand("fold_key", "the key", a.in[0], TensorType(i64, {2}));
          check_operand("fold_key", "the number", a.in[1], TensorType(i64));
          a.out.push_back(a.in[0]);
        },
    .kernel =
        [](KernelArgs& a) {
          const std::int64_t* key = a.input(0).data<std::int64_t>();
          const std::int64_t number = *a.input(1).data<std::int64_t>();
          std::int64_t* out = a.make().data<std::int64_t>();
          out[0] = fold(key[0], static_cast<std::uint64_t>(key[1] + number));
          out[1] = 0;
        },
    .no_vjp = "a key is an integer",
    .samples =
        [] {
          return OpSamples{
              {{{TensorType(i64, {2}), 0, 100, false}, {TensorType(i64), 0, 100, false}}}};
        },
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
