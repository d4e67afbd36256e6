#include "reel/core/random.h"

#include <array>
#include <cmath>

#include "reel/core/bind.h"
#include "reel/core/graph_builder.h"
#include "reel/core/ops.h"
#include "reel/core/ops/registry.h"
#include "reel/core/str.h"

namespace reel {
namespace {

// Philox4x32-10 (Salmon, Moraes, Dror & Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC
// 2011).
std::array<std::uint32_t, 4> philox(std::uint64_t key, std::uint64_t high, std::uint64_t low) {
  std::array<std::uint32_t, 4> c{
      static_cast<std::uint32_t>(low), static_cast<std::uint32_t>(low >> 32),
      static_cast<std::uint32_t>(high), static_cast<std::uint32_t>(high >> 32)};
  std::uint32_t k0 = static_cast<std::uint32_t>(key), k1 = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = std::uint64_t{0xD2511F53} * c[0],
                        p1 = std::uint64_t{0xCD9E8D57} * c[2];
    c = {static_cast<std::uint32_t>(p1 >> 32) ^ c[1] ^ k0, static_cast<std::uint32_t>(p1),
         static_cast<std::uint32_t>(p0 >> 32) ^ c[3] ^ k1, static_cast<std::uint32_t>(p0)};
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  return c;
}

// Draws and folded keys use other counters: the top bit of the high word tells them apart.
constexpr std::uint64_t kFold = std::uint64_t{1} << 63;
std::int64_t fold(std::int64_t key, std::uint64_t number) {
  const auto words = philox(static_cast<std::uint64_t>(key), kFold, number);
  return static_cast<std::int64_t>(std::uint64_t{words[0]} << 32 | words[1]);
}

/// In (0, 1): never 0, so that its logarithm is finite.
double open_unit(std::uint32_t high, std::uint32_t low) {
  return (static_cast<double>(std::uint64_t{high} << 21 ^ low >> 11) + 0.5) * 0x1p-53;
}

struct DrawAttrs {
  TensorType type{f32};
  std::int64_t number = 0;
  double low = 0, high = 1;
  template <class F>
  static void fields(F&& f) {
    f("type", &DrawAttrs::type);
    f("number", &DrawAttrs::number);
    f("low", &DrawAttrs::low);
    f("high", &DrawAttrs::high);
  }
};

void draw_type(TypeArgs& a) { a.out.push_back(a.attr<DrawAttrs>().type); }

template <class Fn>
void draw(KernelArgs& a, Fn&& element) {
  const DrawAttrs& attrs = a.attr<DrawAttrs>();
  const std::int64_t* key = a.input(0).data<std::int64_t>();
  const std::uint64_t number = static_cast<std::uint64_t>(key[1] + attrs.number);
  Tensor& out = a.make();
  const std::int64_t count = out.type().numel();
  visit(out.dtype(), [&](auto zero) {
    using T = decltype(zero);
    T* to = out.data<T>();
    for (std::int64_t i = 0; i < count; ++i)
      to[i] = static_cast<T>(
          element(philox(static_cast<std::uint64_t>(key[0]), number, static_cast<std::uint64_t>(i)),
                  attrs, zero));
  });
}

OpSamples draw_samples() {
  const SampleInput key{TensorType(i64, {2}), 0, 100, false};
  return {{{key}, make_attrs(DrawAttrs{TensorType(f32, {2, 3}), 1, 0, 1})},
          {{key}, make_attrs(DrawAttrs{TensorType(f64, {0, 3}), 0, -1, 1})}};
}

const Op random_uniform_op{
    .name = "random_uniform",
    .type = draw_type,
    .kernel =
        [](KernelArgs& a) {
          draw(a, [](const auto& words, const DrawAttrs& attrs, auto zero) {
            if constexpr (sizeof zero == 4) {
              const float unit = static_cast<float>(words[0] >> 8) * 0x1p-24f;
              const float value =
                  static_cast<float>(attrs.low) + static_cast<float>(attrs.high - attrs.low) * unit;
              return value < static_cast<float>(attrs.high) ? value : static_cast<float>(attrs.low);
            } else {
              const double unit =
                  static_cast<double>(std::uint64_t{words[0]} << 21 ^ words[1] >> 11) * 0x1p-53;
              return attrs.low + (attrs.high - attrs.low) * unit;
            }
          });
        },
    .no_vjp = "random numbers depend on nothing but keys",
    .samples = draw_samples,
};

const Op random_normal_op{
    .name = "random_normal",
    .type = draw_type,
    // Box & Muller (1958), one of the pair.
    .kernel =
        [](KernelArgs& a) {
          draw(a, [](const auto& words, const DrawAttrs&, auto) {
            const double radius = std::sqrt(-2 * std::log(open_unit(words[0], words[1])));
            return radius * std::cos(2 * M_PI * open_unit(words[2], words[3]));
          });
        },
    .no_vjp = "random numbers depend on nothing but keys",
    .samples = draw_samples,
};

const Op fold_key_op{
    .name = "fold_key",
    .type = [](TypeArgs& a) { a.out.push_back(a.in[0]); },
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

void check_drawable(const Dims& dims, DType dtype, const char* op) {
  if (!is_float(dtype)) throw DTypeError(str(op, ": draws f32 or f64, not ", dtype));
  for (const Dim& dim : dims)
    if (dim.is_undefined())
      throw ShapeError(str(op, ": dim ", dim, " is undefined; give it a size or lengths"));
}

Tensor bind_draw(const Op& op, const Dims& dims, DType dtype, double low, double high) {
  const RandomDraw draw = RandomDraw::take();
  return bind(op, {draw.key},
              make_attrs(DrawAttrs{TensorType(dtype, dims), draw.number, low, high}));
}

}  // namespace

RandomScope::RandomScope(const Tensor& stream)
    : outer_(current), builder_(thread_mode.builder), key_(stream) {
  current = this;
}

RandomScope::RandomScope() : outer_(current), builder_(thread_mode.builder) {
  number_ = outer_ ? outer_->taken_++ : stream.taken++;
  current = this;
}

RandomScope::~RandomScope() { current = outer_; }

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
    key_ = result;  // a key made in an inner graph is of no use outside
  return result;
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

Tensor random_normal(const Dims& dims, DType dtype) {
  check_drawable(dims, dtype, "random_normal");
  return bind_draw(random_normal_op, dims, dtype, 0, 1);
}
Tensor random_uniform(const Dims& dims, double low, double high, DType dtype) {
  check_drawable(dims, dtype, "random_uniform");
  if (!(low < high))
    throw ArgumentError(str("random_uniform: low must be below high, got [", low, ", ", high, ")"));
  return bind_draw(random_uniform_op, dims, dtype, low, high);
}

Tensor categorical(const Tensor& logits, const Axis& axis) {
  if (!is_float(logits.dtype()))
    throw DTypeError(str("categorical: logits must be floating, got ", logits.type()));
  const int position = axis.in(logits.type(), "categorical");
  // The largest of logits + Gumbel noise is distributed as softmax(logits) (Gumbel 1954; Maddison
  // et al. 2014).
  const Tensor unit = random_uniform(logits.dims(), 0x1p-24, 1, logits.dtype());
  return argmax(stop_gradient(logits) - log(-log(unit)), position);
}

namespace {
const Op* const kRandomOps[] = {&random_uniform_op, &random_normal_op, &fold_key_op};
}
std::span<const Op* const> random_ops() { return kRandomOps; }

}  // namespace reel
