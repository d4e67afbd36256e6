// A tagger with a conditional random field: the likelihood of all tags is a scan, and so is the
// search for the best ones.
#include <reel/reel.h>

#include <iostream>

using namespace reel;

const Dim symbol("symbol", 3), feature("feature", 8), hidden("hidden", 8), both("both", 16);
const Dim tag("tag", 3), next_tag("next_tag", 3);

struct Tagger {
  Embedding symbols = Embedding::init(symbol, feature);
  GruCell forward = GruCell::init(feature, hidden), backward = GruCell::init(feature, hidden);
  Linear readout = Linear::init(both, tag);
  Tensor transitions = zeros({tag, next_tag});

  /// Returns the scores of tags at each step, without the scores of transitions.
  Tensor scores(const Tensor& text) const {
    return readout(
        bidirectional(forward, backward, symbols(text), text.dim("time"), {.out = both}).outputs);
  }
};

struct Batch {
  Tensor text, tags;  // i32 {batch, time}
};

/// Draws tags that stay, or go on from 0 to 1 to 2 to 0; half of the symbols are the tag, others
/// are noise.
Batch draw(const Dim& batch) {
  const Dim time("time", random_integers({batch}, 20, 40));
  const Tensor moves = cast(bernoulli(0.15, {batch, time}), i32);
  const Tensor tags = mod(cumsum(moves, time), 3);
  const Tensor noise = random_integers({batch, time}, 0, 3);
  return {where(bernoulli(0.5, {batch, time}), tags, noise), tags};
}

/// Returns the scores of the tag before the first one: it is 0.
Tensor before_text(const Dim& batch) {
  return expand(where(range(tag) == 0, 0., zeros({tag}) - 1e6), batch);
}

/// Returns the mean of -log p(tags | text). Source: Lafferty, McCallum & Pereira (2001).
Tensor loss_of(const Tagger& tagger, const Batch& data) {
  const Dim time = data.text.dim("time"), batch = data.text.dim("batch");
  const Tensor scores = tagger.scores(data.text);
  // alpha: log Σ exp(score) over all tags before, for each tag at this step.
  const auto body = [&](const Tensor& score, const Tensor& alpha) {
    const Tensor into = logsumexp(expand(alpha, next_tag) + tagger.transitions, tag);
    return std::pair{None{}, rename(into, next_tag, tag) + score};
  };
  const Tensor alpha =
      scan(Scan{.spatial_dim = time, .initial = before_text(batch), .xs = scores, .body = body})
          .state;
  const Tensor is_tag = one_hot(data.tags, tag);
  const Tensor before = slice(is_tag, time, 0, -1, time - 1);
  const Tensor after = rename(slice(is_tag, time, 1, {}, time - 1), tag, next_tag);
  const Tensor moved = matmul(before, tagger.transitions, tag) * after;
  const Tensor first = rename(tagger.transitions.at(tag, 0), next_tag, tag);
  const Tensor start = sum(is_tag.at(time, 0) * first, tag);
  const Tensor right = sum(is_tag * scores, {time, tag}) + sum(moved, {time - 1, next_tag}) + start;
  return mean(logsumexp(alpha, tag) - right);
}

/// Returns the tags with the highest score. Source: Viterbi (1967).
Tensor best_tags(const Tagger& tagger, const Tensor& text) {
  const Dim time = text.dim("time"), batch = text.dim("batch");
  const auto body = [&](const Tensor& score, const Tensor& best) {
    const Tensor into = expand(best, next_tag) + tagger.transitions;
    const Tensor from = rename(argmax(into, tag), next_tag, tag);
    return std::pair{from, rename(max(into, tag), next_tag, tag) + score};
  };
  const auto [from, best, steps] = scan(Scan{
      .spatial_dim = time, .initial = before_text(batch), .xs = tagger.scores(text), .body = body});
  const auto back = [&](const Tensor& from, const Tensor& now) {
    return std::pair{now, gather(from, now, tag)};
  };
  return scan(Scan{.spatial_dim = time,
                   .initial = argmax(best, tag),
                   .xs = from,
                   .body = back,
                   .reverse = true})
      .ys;
}

int main(int count, char** arguments) {
  const int steps = count > 1 ? std::stoi(arguments[1]) : 600;
  manual_seed(1);
  const auto step = jit([](Tagger tagger, Adam<Tagger> optimiser, const Batch& data) {
    const auto [loss, gradient] = value_and_grad(loss_of)(tagger, data);
    optimiser.update(tagger, gradient);
    return std::tuple{tagger, optimiser, loss};
  });
  const Dim batch("batch", 32);
  Tagger tagger;
  Adam<Tagger> optimiser(tagger, {.learning_rate = 0.02});
  for (int i = 0; i <= steps; ++i) {
    Tensor loss;
    std::tie(tagger, optimiser, loss) = step(std::move(tagger), std::move(optimiser), draw(batch));
    if (i % (steps / 3) == 0) std::cout << "step " << i << ": loss " << loss.item<float>() << '\n';
  }
  const Batch data = draw(batch);
  const auto share = [&](const Tensor& tags) {
    return mean(cast(tags == data.tags, f32)).item<float>();
  };
  std::cout << "right tags: " << share(best_tags(tagger, data.text))
            << "; if each symbol were its tag: " << share(data.text) << '\n';
}
