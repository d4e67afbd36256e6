#include "crf.h"

#include "libtorch_models.h"

namespace reel::bench {
namespace {

struct Crf {
  GruCell cell;
  Linear emission;
  Tensor transitions;  // {tag before, tag}
};

struct Tagged {
  Tensor words, tags;  // {batch, time, in} and {batch, time}
};

/// Returns the logarithm of the sum over all paths: [batch]. emissions: [time, batch, tag].
Tensor log_partition(const Crf& model, const Tensor& emissions, const Dim& time) {
  const Dim tag = model.emission.out, before = model.transitions.dims()[0];
  const Dim batch = emissions.dim("batch");
  const auto step = [&](const Tensor& emission, const Tensor& alpha) {
    const Dims dims{batch, before, tag};
    const Tensor paths = expand(rename(alpha, tag, before), dims) + expand(model.transitions, dims);
    return std::pair{None{}, logsumexp(paths, before) + emission};
  };
  // The state before the first word lets every tag follow alike.
  const Tensor start = zeros({batch, tag});
  return logsumexp(
      scan(Scan{.spatial_dim = time, .initial = start, .xs = emissions, .body = step}).state, tag);
}

/// Returns the sum of the scores of the given paths.
Tensor path_score(const Crf& model, const Tensor& emissions, const Tensor& tags, const Dim& time) {
  const Dim tag = model.emission.out, before = model.transitions.dims()[0];
  const Tensor here = one_hot(tags, tag);
  const auto step = [&](const std::pair<Tensor, Tensor>& x, const Tensor& last) {
    const Tensor score =
        sum(x.first * x.second, tag) + sum(matmul(last, model.transitions, before) * x.second, tag);
    return std::pair{score, rename(x.second, tag, before)};
  };
  const Tensor start = full({emissions.dim("batch"), before}, 1.0 / tag.size());
  return sum(scan(Scan{.spatial_dim = time,
                       .initial = start,
                       .xs = std::pair{emissions, here},
                       .body = step})
                 .ys);
}

Tensor loss_of(const Crf& model, const Tagged& data) {
  const Dim time = data.words.dim("time");
  const Tensor emissions = model.emission(recur(model.cell, data.words, time).outputs);
  const Tensor all = sum(log_partition(model, emissions, time));
  return (all - path_score(model, emissions, data.tags, time)) / data.tags.dims()[0].size();
}

}  // namespace

Model crf(const CrfSizes& s) {
  manual_seed(1);
  const Dim in("in", s.in), hidden("hidden", s.hidden), tag("tag", s.tags);
  const Crf model{GruCell::init(in, hidden), Linear::init(hidden, tag),
                  random_normal({Dim("before", s.tags), tag})};
  const Dim batch("batch", s.batch), time = sequences("time", batch, s.steps, s.least);
  const Tagged data{random_normal({batch, time, in}), random_symbols({batch, time}, s.tags)};
  const std::string name =
      str("crf B=", s.batch, " T=", s.steps, " H=", s.hidden, " tags=", s.tags);
  Model result{name, training(name, model, data, loss_of)};
  const int rows = s.batch * s.steps, gates = 3 * s.hidden;
  result.products = joined({{{rows, gates, s.in}, {s.in, gates, rows}},  // x needs no gradient
                            recurrent(s.steps, s.batch, s.hidden, gates),
                            with_gradients({rows, s.tags, s.hidden})});
  if (libtorch_models())
    result.libtorch = [=] {
      return libtorch_models()->crf(s, numbers_of_tree(model), numbers_of_tree(data));
    };
  return result;
}

}  // namespace reel::bench
