// Functions of the frontend that no other case has, as models: each one with a result that shows
// its values, and a gradient if it has one.
#include "reel/tests/onnx/saved/saved_case.h"

namespace reel {
namespace {

/// Adds f(x), and the gradient of a sum of sines of its values.
template <class F>
void add_with_gradient(std::vector<SavedCase>& cases, const std::string& name, const F& f,
                       const Tensor& x, double tolerance = 1e-5) {
  cases.push_back(saved_case(
      name,
      [=](const Tensor& x) {
        return std::pair{f(x), grad([&](const Tensor& x) { return sum(sin(f(x))); })(x)};
      },
      x));
  cases.back().tolerance = tolerance;
}

void add_elementwise(std::vector<SavedCase>& cases) {
  manual_seed(201);
  const Tensor x = random_normal({3, 4});
  add_with_gradient(
      cases, "activations",
      [](const Tensor& x) {
        return elu(x, 0.5) + leaky_relu(x) * silu(x) + log_add_exp(x, 2 * x) +
               glu(x, 1, Dim(2)).at(0, 0);
      },
      x);
  add_with_gradient(
      cases, "roots and quotients",
      [](const Tensor& x) { return rsqrt(square(x) + 1) + reciprocal(square(x) + 0.5); }, x);
  add_with_gradient(
      cases, "a scaled gradient and names",
      [](const Tensor& x) {
        return scale_gradient(square(x), 0.25) + checkpoint_name(identity(x), "x") * ones_like(x);
      },
      x);
  cases.push_back(saved_case(
      "infinity and exclusive or",
      [](const Tensor& x) {
        return std::tuple{logical_xor(isinf(x / (x * 0)), x > 0), isnan(x / 0. * 0),
                          isfinite(1 / x)};
      },
      x));
  cases.push_back(saved_case(
      "checks, which are left out",
      [](const Tensor& x) {
        return where(assert_that(x < 100., "x is small", x), check_numerics(x, "x"), 0.);
      },
      x));
}

void add_arrays(std::vector<SavedCase>& cases) {
  manual_seed(202);
  const Dim batch("batch", 2), line("line", 4), place("place", 3), to("to", 3);
  const Tensor x = random_normal({batch, line});
  const Tensor indices = tensor({0, 2, 0, 2}, {line});
  cases.push_back(saved_case(
      "search_sorted and repeat",
      [=](const Tensor& x, const Tensor& values, const Tensor& counts) {
        const Tensor repeated = repeat(x, counts, line);
        return std::pair{search_sorted(cumsum(abs(x), line), values, line),
                         sum(repeated, {repeated.dims()[1]})};
      },
      std::tuple{x, random_uniform({batch, place}, 0, 3), tensor({2, 0, 1, 3}, {line})}));
  for (const auto by : {ScatterBy::sum, ScatterBy::mean, ScatterBy::logsumexp})
    add_with_gradient(
        cases, str("scatter, reduction ", static_cast<int>(by)),
        [=](const Tensor& x) { return scatter(x, indices, {line}, to, {.by = by, .fill = 0.5}); },
        x);
  cases.push_back(saved_case(
      "the largest of scattered numbers, and scatter_argmax",
      [=](const Tensor& x) {
        return std::pair{scatter(x, indices, {line}, to, {.by = ScatterBy::max, .fill = 0}),
                         scatter_argmax(x, indices, line, to)};
      },
      x));
  cases.push_back(saved_case(
      "scatter_max",
      [=](const Tensor& x) {
        return scatter_max(zeros({batch, to}), indices, square(x) + x, to);
      },
      x));
  cases.push_back(saved_case(
      "coalesced",
      [](const Tensor& values, const Tensor& indices) {
        const IndexedSlices once = coalesced(IndexedSlices{values, indices, {}});
        return std::pair{once.values, once.indices};
      },
      std::tuple{random_normal({5, 2}), tensor({3, 0, 3, -1, 2})}));
  cases.push_back(saved_case(
      "a sum over computed dims",
      [](const Tensor& x, const Tensor& y) {
        const Dim a = x.dim("a"), b = y.dim("b");
        return std::pair{sum(x) + sum(cast(range(a + b - 1), f32)),
                         sum(y) * sum(cast(range(a * b / 2), f32))};
      },
      std::tuple{ones({Dim("a", scalar(3))}), ones({Dim("b", scalar(4))})}));
  cases.push_back(saved_case(
      "an outer sum",
      [](const Tensor& x, const Tensor& y) {
        const auto [a, b] = spread(x, y);
        return a + b * 2;
      },
      std::tuple{random_normal({batch}), random_normal({line})}));
  cases.push_back(saved_case(
      "a SparseTensor of the elements that are not 0",
      [](const Tensor& x) { return to_dense(from_dense(where(x > 0, x, 0.))) * 2; },
      random_normal({3, 4})));
}

void add_windows(std::vector<SavedCase>& cases) {
  manual_seed(203);
  const Dim batch("batch", 2), channel("channel", 2), out("out", 3), taps("taps", 3),
      time("time", 12);
  const Tensor x = random_normal({batch, time, channel});
  const Tensor filter = random_normal({taps, channel, out});
  add_with_gradient(
      cases, "conv and mean_pool",
      [=](const Tensor& x) {
        const Tensor y = conv(x, filter, time, {.taps = {taps}, .in = {channel}});
        return mean_pool(y, y.dims()[1], {.size = 2});
      },
      x);
  cases.push_back(saved_case(
      "max_pool", [=](const Tensor& x) { return max_pool(x, time, {.size = 3}); }, x));
  const StftOptions options{.size = 4, .hop = 2};
  add_with_gradient(
      cases, "stft and istft",
      [=](const Tensor& x) {
        const Complex spectra = stft(x, time, options);
        const Complex changed = conj(spectra) * Complex{cos(squared_abs(spectra)), abs(spectra)};
        return istft(changed, changed.re.dims()[1], time, options);
      },
      x);
  add_with_gradient(
      cases, "frame and overlap_add",
      [=](const Tensor& x) {
        const Tensor frames = frame(x, time, Dim("window", 3), 2);
        return overlap_add(sin(frames), frames.dims()[1], 2, time);
      },
      x);
  add_with_gradient(
      cases, "fft and ifft",
      [=](const Tensor& x) {
        return ifft(fft(Complex{x, x * x}, time) * Complex{x, 1 + x}, time).re;
      },
      x, 1e-4);
  const Dim mel("mel", 3), coefficient("coefficient", 2);
  add_with_gradient(
      cases, "log_mel, mfcc and resample",
      [=](const Tensor& x) {
        const Tensor fine = resample(x, time, 2, 3);
        const Tensor features = log_mel(fine, fine.dims()[1], mel, {.stft = {.size = 8, .hop = 4}});
        return mfcc(features, mel, coefficient);
      },
      sum(x, {channel}), 1e-4);
  cases.push_back(saved_case(
      "mel_filters, and lengths of stft_frames",
      [=](const Tensor& x) {
        const Dim frames = stft_frames(x.dim("time"), options), frequency("frequency", 5);
        return sum(x) * sum(cast(range(frames), f32)) * mel_filters(frequency, mel, {});
      },
      x));
  cases.push_back(saved_case(
      "windows",
      [=](const Tensor& x) {
        return x * hann_window(time) + hamming_window(time) * blackman_window(time);
      },
      x));
}

void add_attention(std::vector<SavedCase>& cases) {
  manual_seed(204);
  const Dim batch("batch", 2), time("time", tensor({3, 2}, {batch})), heads("heads", 2),
      feature("feature", 4), value("value", 3), keys("keys", 3);
  const Tensor q = random_normal({batch, heads, time, feature});
  cases.push_back(saved_case(
      "linear_attention, and one step",
      [=](const Tensor& k, const Tensor& v, const Tensor& state) {
        const auto [y, last] = linear_attention(k, k, v, k.dim("time"), feature, state);
        const Tensor one = sum(k, {k.dim("time")}), next = sum(v, {k.dim("time")});
        return std::tuple{y, last, linear_attention_step(one, one, next, feature, last)};
      },
      std::tuple{random_normal({batch, time, feature}), random_normal({batch, time, value}),
                 zeros({batch, feature, value})}));
  add_with_gradient(
      cases, "positions of time steps and slopes of heads",
      [=](const Tensor& q) {
        return (q + sinusoidal_positions(q.dim("time"), feature)) * alibi_slopes(heads);
      },
      q);
  const Tensor k = random_normal({keys, feature}), rows = random_normal({feature});
  const Dim queries("queries", 3);
  cases.push_back(saved_case(
      "attention with a computed bias",
      [=](const Tensor& q, const Tensor& slope) {
        const auto bias = attention_bias(slope, [=](const Tensor& slope, const AttentionBlock& at) {
          const Dims both{queries, at.block};
          return slope * cast(expand(at.keys, both) - expand(at.queries, both), f32);
        });
        return attention(q, k, k, keys, feature, {.queries = queries, .bias_of = bias});
      },
      std::tuple{random_normal({queries, feature}), scalar(0.5)}));
}

void add_alignments(std::vector<SavedCase>& cases) {
  manual_seed(205);
  const Dim batch("batch", 3), vocab("vocab", 4), time("time", tensor({5, 3, 4}, {batch})),
      letters("letters", tensor({2, 0, 1}, {batch})), prefix = letters + 1, beam("beam", 2);
  const Tensor logits = random_normal({batch, time, vocab});
  const Tensor labels = tensor({1, 2, 0, 0, 3, 0}, {batch, letters});
  cases.push_back(saved_case(
      "ctc_alignment and ctc_log_likelihood",
      [=](const Tensor& logits, const Tensor& labels) {
        const CtcDims dims{logits.dim("time"), labels.dim("letters"), vocab};
        return std::pair{ctc_alignment(logits, labels, dims).symbols,
                         ctc_log_likelihood(logits, labels, dims)};
      },
      std::tuple{logits, labels}));
  cases.push_back(saved_case(
      "ctc_beam_search",
      [=](const Tensor& logits) {
        const CtcBeams found = ctc_beam_search(logits, {logits.dim("time"), vocab, beam});
        return std::pair{found.score, found.log_probability};
      },
      logits));
  cases.push_back(saved_case(
      "edit_distance and label_error_rate",
      [=](const Tensor& found, const Tensor& labels) {
        const EditDims dims{found.dim("time"), labels.dim("letters")};
        return std::pair{edit_distance(found, labels, dims),
                         label_error_rate(found, labels, dims).mean()};
      },
      std::tuple{argmax(logits, vocab), labels}));
  cases.push_back(saved_case(
      "transducer_loss, transducer_log_likelihood and a gradient",
      [=](const Tensor& labels, const Tensor& logits) {
        const Dim letters = labels.dim("letters");
        const TransducerDims dims{logits.dim("time"), letters, letters + 1, vocab};
        return std::pair{transducer_log_likelihood(logits, labels, dims),
                         value_and_grad([&](const Tensor& logits) {
                           return transducer_loss(logits, labels, dims);
                         })(logits)};
      },
      std::tuple{labels, random_normal({batch, time, prefix, vocab})}));
  add_with_gradient(
      cases, "quantile_loss",
      [](const Tensor& x) { return quantile_loss(x, x * x, 0.9, LossReduction::none); },
      random_normal({3, 4}));
}

void add_derivatives(std::vector<SavedCase>& cases) {
  manual_seed(206);
  const Tensor x = random_normal({3});
  const auto f = [](const Tensor& x) { return sin(x) * sum(square(x)); };
  cases.push_back(saved_case(
      "a linearized function, a pullback and a norm",
      [=](const Tensor& x, const Tensor& t) {
        const auto [y, tangent] = linearize(f, x);
        const auto [same, pullback] = vjp(f, x);
        const Tensor g = pullback(t);
        return std::tuple{y, tangent(t), g, global_norm(std::pair{g, y})};
      },
      std::tuple{x, random_normal({3})}));
}

}  // namespace

std::vector<SavedCase> frontend_cases() {
  std::vector<SavedCase> cases;
  add_elementwise(cases);
  add_arrays(cases);
  add_windows(cases);
  add_attention(cases);
  add_alignments(cases);
  add_derivatives(cases);
  return cases;
}

}  // namespace reel
