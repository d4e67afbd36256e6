// A decoder's state in a loop, pattern P10: a position, and a cache of keys and values for each
// layer.
#include "reel/tests/cases/returnn/returnn.h"

namespace reel {
namespace {

struct DecoderLayer {
  Tensor q, k, v, out;  // [in, key], three times; [key, out]
};
struct Decoder {
  Tensor places;  // [place, in]: an embedding of each position
  std::vector<DecoderLayer> layers;
};
struct Cache {
  Tensor k, v;  // [batch, hist, key]
  Dim hist;
};
struct DecoderState {
  Tensor position;
  std::vector<Cache> caches;  // one per layer
};

/// Layers of self-attention to all earlier frames and the present one.
class ReturnnDecoder : public ReturnnCase {
 protected:
  const Dim in{"in", 2}, key{"key", 3}, out{"in", 2}, place{"place", 4};

  Decoder decoder() const {
    manual_seed(5);
    const auto draw = [](const Dims& dims) { return random_normal(dims, f64); };
    Decoder made{draw({place, in}), {}};
    for (int i = 0; i < 2; ++i)
      made.layers.push_back({draw({in, key}), draw({in, key}), draw({in, key}), draw({key, out})});
    return made;
  }
  Tensor frames() const {
    manual_seed(6);
    return mask_padding(random_normal({batch, time, in}, f64));
  }
  /// Returns a layer's output for its input and the result of its attention.
  Tensor add_and_bend(const Tensor& x, const Tensor& seen, const DecoderLayer& layer) const {
    return tanh(x + rename(matmul(seen, layer.out, key), out, in));
  }

  /// Computes one frame, and advances the state's position and caches.
  Tensor step(const Decoder& decoder, Tensor x, DecoderState& s) const {
    x = x + gather(decoder.places, s.position, place);
    s.position = s.position + 1;
    for (std::size_t i = 0; i < decoder.layers.size(); ++i) {
      const DecoderLayer& layer = decoder.layers[i];
      Cache& cache = s.caches[i];
      const auto [k, hist] = cum_concat(matmul(x, layer.k, in), cache.k, cache.hist);
      const auto [v, same] = cum_concat(matmul(x, layer.v, in), cache.v, cache.hist);
      cache = {k, v, hist};
      const Tensor weights = softmax(matmul(matmul(x, layer.q, in), k, key), hist);
      x = add_and_bend(x, matmul(weights, v, hist), layer);
    }
    return x;
  }
  template <class MakeHist>
  auto step_by_step(const Decoder& decoder, const Tensor& x, const MakeHist& make_hist) const {
    DecoderState start{scalar(0), {}};
    for (std::size_t i = 0; i < decoder.layers.size(); ++i) {
      const Dim hist = make_hist();  // each layer has its own
      const Tensor none = zeros({batch, hist, key}, f64);
      start.caches.push_back({none, none, hist});
    }
    const auto [ys, state, dim] = scan(Scan{.spatial_dim = x.dim("time"),
                                            .initial = start,
                                            .xs = x,
                                            .body = [&](const Tensor& x, DecoderState s) {
                                              const Tensor y = step(decoder, x, s);
                                              return std::pair{y, s};
                                            }});
    return std::pair{transpose(ys, {batch, dim, in}), state};
  }
  /// Computes all frames at once: each sees itself and the frames before it.
  Tensor at_once(const Decoder& decoder, Tensor x) const {
    const Dim time = x.dim("time");
    x = x + gather(decoder.places, range(time), place);
    for (const DecoderLayer& layer : decoder.layers) {
      const Dim keys("keys", time.lengths());
      const Tensor k = rename(matmul(x, layer.k, in), time, keys),
                   v = rename(matmul(x, layer.v, in), time, keys);
      const Tensor scores = matmul(matmul(x, layer.q, in), k, key);
      const Tensor causal = expand(range(keys), {time, keys}) <= expand(range(time), {time, keys});
      x = add_and_bend(x, matmul(softmax(where(causal, scores, -1e9), keys), v, keys), layer);
    }
    return x;
  }
};
REEL_IN_EVERY_MODE(ReturnnDecoder);

TEST_P(ReturnnDecoder, P10_APositionAndACacheOfEachLayerStepByStepAndAllAtOnce) {
  const auto loss_at_once = [&](const std::pair<Decoder, Tensor>& at) {
    return sum(square(mask_padding(at_once(at.first, at.second))));
  };
  const std::pair at{decoder(), frames()};
  const Tensor expected = mask_padding(at_once(at.first, at.second));
  const auto tensors_of = [](const std::pair<Decoder, Tensor>& gradient) {
    Tensors result;
    for (const TreeLeaf& leaf : flatten(gradient))
      if (leaf.kind == TreeLeaf::Kind::tensor) result.push_back(mask_padding(leaf.tensor));
    return result;
  };
  const Tensors slopes = tensors_of(grad(loss_at_once)(at));
  ASSERT_EQ(slopes.size(), 1u + 2 * 4 + 1);
  const auto check = [&](const auto& make_hist) {
    const auto loss = [&](const std::pair<Decoder, Tensor>& at) {
      return sum(square(step_by_step(at.first, at.second, make_hist).first));
    };
    for (const double padding : kPaddings) {
      const std::pair padded{at.first, mask_padding(at.second, padding)};
      const auto [ys, state] = run([&](const Decoder& decoder, const Tensor& x) {
        return step_by_step(decoder, x, make_hist);
      })(padded.first, padded.second);
      expect_all_close(mask_padding(ys), expected, 1e-12);
      expect_values(state.position, {3});  // shared: the longest entry's
      for (const Cache& cache : state.caches) {
        EXPECT_EQ(cache.hist.size(), 3);
        EXPECT_EQ(cache.k.dims(), (Dims{batch, cache.hist, key}));
        EXPECT_EQ(cache.v.dims(), (Dims{batch, cache.hist, key}));
      }
      const Tensors actual = tensors_of(run(grad(loss))(padded));
      ASSERT_EQ(actual.size(), slopes.size());
      for (std::size_t i = 0; i < slopes.size(); ++i) expect_all_close(actual[i], slopes[i], 1e-9);
    }
  };
  check([] { return Dim("hist", 0); });
  check([&] { return Dim("hist", zeros({batch}, i32)); });
}

}  // namespace
}  // namespace reel
