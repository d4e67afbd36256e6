// Functions of the frontend that newer op sets have as one op, as models of each op set.
#include <tuple>
#include <utility>
#include <vector>

#include "reel/tests/onnx/saved/saved_case.h"

namespace reel {
namespace {

struct Sizes {
  Dim batch{"batch", 3}, heads{"heads", 2}, groups{"groups", 2}, feature{"feature", 4},
      value{"value", 3}, time{"time", 5}, keys{"keys", 6};
  Dim uneven{"uneven", tensor({6, 2, 0}, {batch})};  ///< an entry has no element
};

class Cases {
 public:
  /// dynamic: dims that may have any size.
  Cases(std::vector<SavedCase>& cases, std::int64_t op_set, Dims dynamic = {})
      : cases_(cases), op_set_(op_set), dynamic_(std::move(dynamic)) {}

  template <class F, class... Args>
  void add(const char* what, const F& f, const Args&... arguments) {
    SaveOnnxOptions options{.dynamic = dynamic_, .op_set = op_set_};
    cases_.push_back(saved_case(
        str("op set ", op_set_, ": ", what, dynamic_.empty() ? "" : ", for sizes of any number"), f,
        std::tuple{arguments...}, options));
  }

 private:
  std::vector<SavedCase>& cases_;
  std::int64_t op_set_;
  Dims dynamic_;
};

/// Attention with these options, of queries over `time`.
auto attention_with(AttentionOptions options) {
  return [options](const Tensor& q, const Tensor& k, const Tensor& v) {
    return attention(q, k, v, k.dim("keys"), k.dim("feature"), options);
  };
}

void add_attention(Cases cases) {
  const Sizes at;
  manual_seed(71);
  const Tensor q = random_normal({at.batch, at.heads, at.time, at.feature}),
               k = random_normal({at.batch, at.heads, at.keys, at.feature}),
               v = random_normal({at.batch, at.heads, at.keys, at.value});
  cases.add("attention", attention_with({}), q, k, v);
  cases.add("causal attention", attention_with({.causal = at.time, .scale = 0.3}), q, k, v);
  const Tensor mask = random_normal({at.time, at.keys}) > 0.2;
  const Tensor hides_all = logical_and(
      expand(mask, {at.batch, at.time, at.keys}),
      expand(tensor({1., 0., 1.}, {at.batch}, f32) > 0.5, {at.batch, at.time, at.keys}));
  cases.add(
      "attention with a mask that hides all keys of an entry",
      [&](const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask) {
        return attention(q, k, v, k.dim("keys"), k.dim("feature"),
                         {.causal = q.dim("time"), .mask = mask});
      },
      q, k, v, hides_all);
  cases.add(
      "attention with a bias of the heads",
      [&](const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& bias) {
        return attention(q, k, v, k.dim("keys"), k.dim("feature"),
                         {.causal = q.dim("time"), .bias = bias});
      },
      q, k, v, random_normal({at.keys, at.heads}));
  cases.add(
      "attention in a window behind an offset for each entry",
      [](const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& offset) {
        return attention(q, k, v, k.dim("keys"), k.dim("feature"),
                         {.causal = q.dim("time"), .offset = offset, .window = 2});
      },
      q, k, v, tensor({0, 1, 9}, {at.batch}));
  cases.add("attention with shared heads, in another order of dims", attention_with({}),
            random_normal({at.time, at.batch, at.feature, at.heads, at.groups}),
            random_normal({at.keys, at.batch, at.heads, at.feature}),
            random_normal({at.heads, at.keys, at.value, at.batch}));
  cases.add("attention of one query", attention_with({}), random_normal({at.feature}),
            random_normal({at.keys, at.feature}), random_normal({at.keys}));
  cases.add(
      "attention over lengths",
      [](const Tensor& q, const Tensor& k) {
        return attention(q, k, k, k.dim("uneven"), k.dim("feature"));
      },
      q, random_normal({at.batch, at.heads, at.uneven, at.feature}));
  cases.add(
      "causal attention of a sequence to itself",
      [](const Tensor& x, const Tensor& v) {
        const Dim time = x.dim("uneven");
        return attention(x, x * 0.5, v, time, x.dim("feature"), {.causal = time});
      },
      random_normal({at.batch, at.uneven, at.feature}),
      random_normal({at.batch, at.uneven, at.value}));
  cases.add(
      "the gradient of attention",
      [](const Tensor& q, const Tensor& k, const Tensor& v) {
        return grad([&](const std::tuple<Tensor, Tensor, Tensor>& x) {
          const auto& [q, k, v] = x;
          return sum(square(attention(q, k, v, k.dim("keys"), k.dim("feature"))));
        })(std::tuple{q, k, v});
      },
      q, k, v);
  cases.add(
      "attention in a loop with a gradient",
      [](const Tensor& q, const Tensor& k) {
        return value_and_grad([&](const Tensor& q) {
          return sum(square(scan(Scan{.spatial_dim = q.dim("time"),
                                      .initial = zeros_like(sum(q, {q.dim("time")})),
                                      .xs = q,
                                      .body =
                                          [&](const Tensor& x, const Tensor& s) {
                                            const Tensor y = attention(
                                                x + s, k, k * 0.5, k.dim("keys"), k.dim("feature"));
                                            return std::pair{y, s + x};
                                          }})
                                .ys));
        })(q);
      },
      q, k);
}

/// Masks and biases with a dim of queries and some of several dims that are one axis of the node.
void add_merged_axes(Cases cases, const Sizes& at) {
  manual_seed(73);
  const auto biased = [](const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& bias) {
    return attention(q, k, v, k.dim("keys"), k.dim("feature"), {.bias = bias});
  };
  const Tensor shared_q = random_normal({at.batch, at.heads, at.groups, at.time, at.feature}),
               k = random_normal({at.batch, at.heads, at.keys, at.feature}),
               v = random_normal({at.batch, at.heads, at.keys, at.value});
  cases.add("attention with shared heads and a bias of the heads", biased, shared_q, k, v,
            random_normal({at.heads, at.time, at.keys}));
  cases.add("attention with shared heads and a bias of the groups", biased, shared_q, k, v,
            random_normal({at.keys, at.time, at.groups}));
  cases.add("attention with shared heads and a bias of heads and groups", biased, shared_q, k, v,
            random_normal({at.groups, at.time, at.heads, at.keys}));
  const Dim beam("beam", 2);
  const Tensor beam_q = random_normal({at.batch, beam, at.heads, at.time, at.feature}),
               beam_k = random_normal({at.batch, beam, at.heads, at.keys, at.feature});
  cases.add(
      "attention of two batch dims with a bias of one",
      [](const Tensor& q, const Tensor& k, const Tensor& bias) {
        return attention(q, k, k, k.dim("keys"), k.dim("feature"),
                         {.causal = q.dim("time"), .bias = bias});
      },
      beam_q, beam_k * 0.5, random_normal({beam, at.time, at.keys}));
  cases.add(
      "causal attention behind an offset for each entry of two batch dims",
      [](const Tensor& q, const Tensor& k, const Tensor& offset) {
        return attention(q, k, k, k.dim("keys"), k.dim("feature"),
                         {.causal = q.dim("time"), .offset = offset});
      },
      beam_q, beam_k, tensor({0, 1, 4, 2, 3, 0}, {at.batch, beam}));
  cases.add(
      "causal attention of sequences in two batch dims to themselves",
      [](const Tensor& x) {
        const Dim time = x.dim("time");
        return attention(x, x * 0.5, x, time, x.dim("feature"), {.causal = time, .window = 2});
      },
      random_normal({at.batch, beam, at.heads, at.time, at.feature}));
}

/// Lengths and positions of queries in two batch dims.
void add_lengths_of_two_batch_dims(Cases cases) {
  const Sizes at;
  manual_seed(75);
  const Dim beam("beam", 2);
  cases.add(
      "causal attention over lengths in two batch dims",
      [](const Tensor& x) {
        const Dim time = x.dim("uneven");
        return attention(x, x * 0.5, x, time, x.dim("feature"), {.causal = time});
      },
      random_normal({at.batch, beam, at.uneven, at.feature}));
}

/// Positions of queries without `causal`.
void add_windows(Cases cases) {
  const Sizes at;
  manual_seed(74);
  const Tensor q = random_normal({at.batch, at.time, at.feature}),
               k = random_normal({at.batch, at.keys, at.feature});
  cases.add(
      "attention in a window around a position for each query",
      [](const Tensor& q, const Tensor& k, const Tensor& offset) {
        return attention(q, k, k, k.dim("keys"), k.dim("feature"), {.offset = offset, .window = 2});
      },
      q, k, tensor({0, 1, 2, 3, 4, 5, 4, 3, 2, 1, 0, 9, 0, 9, 5}, {at.batch, at.time}));
  cases.add(
      "attention of a sequence to itself in a window",
      [](const Tensor& x) {
        return attention(x, x * 0.5, x, x.dim("time"), x.dim("feature"), {.window = 1});
      },
      q);
}

void add_others(Cases cases) {
  const Sizes at;
  manual_seed(72);
  const auto turned = [](const Tensor& x, const Tensor& positions) {
    return rotary(x, x.dim("feature"), positions);
  };
  cases.add("rotary", turned, random_normal({at.batch, at.heads, at.time, at.feature}),
            range(at.time, i32));
  cases.add("rotary by positions of each entry, features in front", turned,
            random_normal({at.feature, at.time, at.heads, at.batch}),
            tensor({3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9}, {at.batch, at.time}));
  cases.add("rotary of one vector", turned, random_normal({at.feature}), scalar(3, i32));
  cases.add(
      "RmsNorm", [](const RmsNorm& norm, const Tensor& x) { return norm(x); },
      RmsNorm{random_normal({at.feature}), at.feature, 0.01},
      random_normal({at.batch, at.uneven, at.feature}));
  cases.add(
      "RmsNorm of features in front", [](const RmsNorm& norm, const Tensor& x) { return norm(x); },
      RmsNorm{random_normal({at.feature}), at.feature, 1e-6},
      random_normal({at.feature, at.batch}));
}

}  // namespace

std::vector<SavedCase> function_cases() {
  std::vector<SavedCase> cases;
  for (const std::int64_t op_set : {17, 23, 26}) {
    add_attention({cases, op_set});
    const Sizes at;
    add_merged_axes({cases, op_set}, at);
    add_merged_axes({cases, op_set, {at.batch, at.time}}, at);
    add_lengths_of_two_batch_dims({cases, op_set});
    add_windows({cases, op_set});
    add_others({cases, op_set});
  }
  return cases;
}

}  // namespace reel
