// Functions of tensors without elements, of table rows and of places, as models.
#include "reel/tests/onnx/saved/saved_case.h"

namespace reel {
namespace {

Tensor vector() { return tensor({0.5, -1., 2.}); }
Tensor table() { return tensor({{1., -2.}, {0., 4.}, {0.5, -0.25}, {3., 1.}}); }

/// A model does not tell a runtime that these sizes are 0.
SaveOnnxOptions any_rows(std::vector<AnyLength> any_length) {
  return {.any_length = std::move(any_length)};
}

void add_empty_tensors(std::vector<SavedCase>& cases) {
  const Tensor none = zeros({0}), no_rows = zeros({0, 3});
  cases.push_back(saved_case(
      "additions of a constant without elements",
      [=](const Tensor& x) {
        const Tensor columns = reshape(x, {3, 1}) + zeros({3, 0});
        return std::pair{sum(tanh(columns)), sum(sin(broadcast_to(sum(x), {0})))};
      },
      vector()));
  cases.push_back(saved_case(
      "an expansion to some unknown sizes and one of 0",
      [](const Tensor& x) {
        const Tensor rows = broadcast_to(reshape(x * 2, {-1, 1}), {x.dims()[0], Dim(0)});
        return std::pair{sum(rows, {1}) + x, gather(rows, zeros({2}, i32), 0)};
      },
      vector(), any_rows({0})));
  cases.push_back(saved_case(
      "the largest of no elements",
      [](const Tensor& x) {
        return std::pair{argmax(x, 0), argmin(x, 0)};
      },
      none));
  cases.push_back(saved_case(
      "the largest of any number of elements",
      [](const Tensor& x) {
        return std::tuple{argmax(x, 0), argmin(x, 0), sum(softmax(x, 0)), sum(log_softmax(x, 0))};
      },
      none, any_rows({0})));
  cases.push_back(saved_case(
      "the largest of some elements", [](const Tensor& x) { return argmax(x, 0); }, vector(),
      any_rows({0})));
  cases.push_back(saved_case(
      "products of matrices without rows",
      [](const Tensor& a, const Tensor& v) {
        return std::tuple{matmul(a, v), sum(matmul(a, v)), matmul(v, transpose(a, {1, 0}))};
      },
      std::tuple{no_rows, vector()}, any_rows({{0, 0}})));
  const Dim some("some", 0), i("i", 2), j("j", 3), k("k", 2), l("l", 2);
  cases.push_back(saved_case(
      "products over several dims",
      [](const Tensor& a, const Tensor& b) {
        const Dim i = a.dim("i"), j = a.dim("j"), k = a.dim("k");
        return std::tuple{matmul(a, b, {j, k}), matmul(a, b, k), matmul(a, a, {i, j, k})};
      },
      std::tuple{random_normal({i, j, k}), random_normal({k, j, l})}));
  cases.push_back(saved_case(
      "products over a dim without elements",
      [](const Tensor& a, const Tensor& b) {
        const Dim some = a.dim("some"), j = a.dim("j");
        return std::tuple{matmul(a, b, {some, j}), matmul(a, b, some), sum(matmul(a, b, j))};
      },
      std::tuple{zeros({i, some, j}), zeros({some, j})}, SaveOnnxOptions{.dynamic = {some}}));
  for (const bool reverse : {false, true})
    for (const Tensor& x : {no_rows, zeros({2, 3})})
      cases.push_back(saved_case(
          str("recurrences of ", x.type().sizes()[0], " rows, reverse: ", reverse),
          [=](const Tensor& x) {
            const auto f = [&](const Tensor& x) {
              return sum(linear_scan(cos(x), x + 1, vector(), 0, {.reverse = reverse})) +
                     sum(linear_scan(cos(x), x + 1, sum(x, {1}), 1, {.reverse = reverse})) +
                     sum(prod(x + 2, {0}));
            };
            return value_and_grad(f)(x);
          },
          x, any_rows({0})));
  cases.push_back(saved_case(
      "the stack of a loop without iterations",
      [](const Tensor& xs, const Tensor& v) {
        auto [ys, state, dim] =
            scan(Scan{.initial = v, .xs = xs, .body = [](const Tensor& x, const Tensor& s) {
                        return std::pair{s * 2, s + x};
                      }});
        return std::pair{sum(ys, {0}) + v, state};
      },
      std::tuple{zeros({0, 2}), tensor({1., 2.})}, any_rows({{0, 0}, {0, 1}, {1, 0}})));
  const Dim batch("batch", 2), time("time", tensor({0, 0}, {batch}));
  cases.push_back(saved_case(
      "elements of entries without elements",
      [](const Tensor& x, const Tensor& at) {
        return gather(x, at, x.dim("time"), {.clip = true});
      },
      std::tuple{ones({batch, time}), tensor({0, 3}, {batch})}));
  cases.push_back(saved_case(
      "the gradient of elements of entries without elements",
      [](const Tensor& x, const Tensor& at) {
        return grad([&](const Tensor& x) {
          return sum(sin(gather(x, at, x.dim("time"), {.clip = true})));
        })(x);
      },
      std::tuple{ones({time, batch}), scalar(3)}));
}

struct Model {
  EmbeddingTable words;
  Tensor w;
};

void add_rows(std::vector<SavedCase>& cases) {
  const Tensor numbers = tensor({1, -1, 1}), rows = tensor({{1., 2.}, {3., 4.}, {5., 6.}});
  cases.push_back(saved_case(
      "rows that are replaced, and gradients",
      [](const Tensor& table, const Tensor& numbers, const Tensor& rows) {
        const auto f = [&](const std::pair<Tensor, Tensor>& in) {
          return sum(square(set_at(in.first, numbers, in.second)));
        };
        return std::tuple{set_at(table, numbers, rows), set_at(table, scalar(2), 7.),
                          grad(f)(std::pair{table, rows})};
      },
      std::tuple{table(), numbers, rows}));
  cases.push_back(saved_case(
      "rows of booleans that are replaced",
      [](const Tensor& x, const Tensor& numbers) {
        return set_at(x > 0, numbers, tensor({true, false, false}));
      },
      std::tuple{vector(), numbers}));
  const auto loss = [](const Model& m, const Tensor& words) {
    return sum(square(gather(m.words, words) * m.w));
  };
  const Model model{EmbeddingTable(table()), tensor({2., -1.})};
  cases.push_back(saved_case(
      "the gradient of an EmbeddingTable",
      [=](const Model& m, const Tensor& words) {
        const Model gradient = grad([&](const Model& m) { return loss(m, words); })(m);
        const IndexedSlices sums = gradient.words.coalesced().slices();
        return std::tuple{with_dense_tables(gradient), sums.values, sums.indices};
      },
      std::tuple{model, numbers}));
  cases.push_back(saved_case(
      "a step of a table that is trained",
      [=](Model m, const Tensor& words) {
        Adam adam(m, {.learning_rate = 0.1});
        adam.update(m, grad([&](const Model& m) { return loss(m, words); })(m));
        return m;
      },
      std::tuple{model, numbers}));
}

void add_sparse_tensors(std::vector<SavedCase>& cases) {
  const Tensor indices = tensor({{0, 1}, {-1, 0}, {2, 1}, {0, 1}}), shape = tensor({3, 2});
  cases.push_back(saved_case(
      "a SparseTensor, its products and gradients",
      [=](const Tensor& values, const Tensor& b) {
        const auto f = [&](const std::pair<Tensor, Tensor>& in) {
          const SparseTensor a{indices, in.first, shape};
          return sum(square(matmul(a, in.second))) + sum(square(to_dense(a)));
        };
        const SparseTensor a{indices, values, shape};
        return std::tuple{to_dense(a), matmul(a, b), grad(f)(std::pair{values, b})};
      },
      std::tuple{tensor({1., 2., 3., 4.}), tensor({{1., 2.}, {-1., 0.5}})}));
}

void add_policies(std::vector<SavedCase>& cases) {
  const auto gradient = [](const Checkpoint& checkpoint, const SwapMemory& swap) {
    return [=](const Tensor& xs) {
      const auto loss = [&](const Tensor& xs) {
        auto [ys, state, dim] = scan(Scan{.initial = vector(),
                                          .xs = xs,
                                          .body =
                                              [](const Tensor& x, const Tensor& s) {
                                                return std::pair{s * x, tanh(s) + x};
                                              },
                                          .checkpoint = checkpoint,
                                          .swap_memory = swap});
        return sum(square(ys)) + sum(state);
      };
      return value_and_grad(loss)(xs);
    };
  };
  const Tensor xs = random_normal({5, 3});
  cases.push_back(saved_case("the gradient of a loop with checkpoints",
                             gradient(Checkpoint::every(2), {}), xs));
  cases.push_back(saved_case("the gradient of a loop with residuals in a file",
                             gradient({}, SwapMemory(Spill{.bytes_in_memory = 1})), xs));
}

void add_branches(std::vector<SavedCase>& cases) {
  cases.push_back(saved_case(
      "a branch that is known, with branches inside",
      [](const Tensor& x, const Tensor& yes) {
        return cond(
            scalar(2) > 1,
            [&] {
              const Tensor a = cond(
                  yes, [&] { return sin(x); }, [&] { return cos(x); });
              return cond(
                  yes, [&] { return a * 2; }, [&] { return a + x; });
            },
            [&] { return x; });
      },
      std::tuple{vector(), scalar(false)}));
}

}  // namespace

std::vector<SavedCase> edge_cases() {
  std::vector<SavedCase> cases;
  add_empty_tensors(cases);
  add_rows(cases);
  add_sparse_tensors(cases);
  add_policies(cases);
  add_branches(cases);
  return cases;
}

}  // namespace reel
