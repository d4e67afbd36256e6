// An error names the function that the user called instead of a function inside it.
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "reel/reel.h"
#include "reel/tests/check.h"
#include "reel/tests/own_folder.h"

namespace reel {
namespace {

using Call = std::function<void()>;

/// Returns the message's text before the first ": ".
std::string name_in(const Call& call) {
  const std::string message = message_of<Error>([&] {
    call();
    return 0;
  });
  return message.substr(0, message.find(": "));
}
void expect_names(const std::vector<std::pair<std::string, Call>>& calls) {
  for (const auto& [name, call] : calls) EXPECT_EQ(name_in(call), name);
}

class ErrorNamesTest : public InOwnFolder {
 protected:
  ErrorNamesTest() : InOwnFolder("model") {}

  const Dim batch{"batch", 2}, time{"time", 3}, f{"f", 4}, g{"g", 5}, open{"open"};
  const Tensor x = zeros({batch, time, f}), i = zeros({batch, time}, i32);
  const Tensor p = zeros({2, 3}), b = zeros({2, 3}, boolean);
};

TEST_F(ErrorNamesTest, ErrorsNameFunctionsThatMakeTensors) {
  expect_names({
      {"zeros", [&] { zeros({open}); }},
      {"zeros",
       [&] {
         zeros({2, batch});
       }},
      {"zeros",
       [&] {
         zeros({batch, batch});
       }},
      {"ones", [&] { ones({open}); }},
      {"full", [&] { full({open}, 1); }},
      {"zeros_like", [&] { zeros_like(Tensor()); }},
      {"ones_like", [&] { ones_like(Tensor()); }},
      {"tensor",
       [&] {
         tensor({1, 2, 3, 4, 5, 6}, {batch, 3});
       }},
      {"range", [&] { range(open); }},
      {"one_hot", [&] { one_hot(i, open); }},
      {"one_hot", [&] { one_hot(i, Dim(3)); }},
      {"random_normal",
       [&] {
         random_normal({2, batch});
       }},
      {"random_uniform",
       [&] {
         random_uniform({batch, batch});
       }},
      {"truncated_normal", [&] { truncated_normal({open}); }},
      {"bernoulli",
       [&] {
         bernoulli(0.5, {2, batch});
       }},
      {"bernoulli",
       [&] {
         bernoulli(i, {batch, time});
       }},
      {"permutation", [&] { permutation(open); }},
  });
}

TEST_F(ErrorNamesTest, ErrorsNameFunctionsThatChangeDims) {
  expect_names({
      {"reshape",
       [&] {
         reshape(x, {batch, open});
       }},
      {"reshape",
       [&] {
         reshape(x, Dims{batch, Dim(3), f});
       }},
      {"rename", [&] { rename(x, f, Dim(4)); }},
      {"rename", [&] { rename(p, 0, batch); }},
      {"expand",
       [&] {
         expand(x, {batch, time, f, open});
       }},
      {"expand",
       [&] {
         expand(x, {batch, time, f, f});
       }},
      {"expand",
       [&] {
         expand(x, {batch, time, f, 3});
       }},
      {"broadcast_to",
       [&] {
         broadcast_to(x, {batch, time, f, f});
       }},
      {"slice", [&] { slice(x, f, 0, 2, Dim(2)); }},
      {"slice", [&] { slice(x, f, 0, 4, 2, Dim(2)); }},
      {"slice", [&] { slice(x, f, 0, 3, time); }},
      {"pad", [&] { pad(x, f, 1, 0, 0, Dim(5)); }},
      {"concat",
       [&] {
         concat({x, x}, f, Dim(8));
       }},
      {"split", [&] { split(x, f, 2, Dim(2)); }},
      {"merge_dims",
       [&] {
         merge_dims(x, {time, f}, Dim(12));
       }},
      {"split_dim",
       [&] {
         split_dim(x, f, {2, 2});
       }},
      {"pack", [&] { pack(x, x == 0, batch, f); }},
      {"pack",
       [&] {
         pack(x, i == 0, {batch, time}, Dim(6));
       }},
      {"top_k", [&] { top_k(x, f, batch); }},
      {"TensorArray stack", [&] { TensorArray(TensorType(f32, {batch})).stack(); }},
  });
}

TEST_F(ErrorNamesTest, ErrorsNameElementwiseFunctions) {
  expect_names({
      {"clip", [&] { clip(b, b, b); }},
      {"clip", [&] { clip(x, i, 1); }},
      {"clip", [&] { clip(x, p, 1); }},
      {"clip", [&] { clip(x, ones({g}), 1); }},
      {"mask_padding",
       [&] {
         const Dim ragged("ragged", tensor({3, 1}, {batch}));
         mask_padding(zeros({batch, ragged}, i32), 1.5);
       }},
  });
}

TEST_F(ErrorNamesTest, ErrorsNameUpdatesOfElements) {
  const Tensor row = ones({1, 3});
  const auto at_five = [&](const Tensor& p) { return set_slice(p, scalar(5), row); };
  expect_names({
      {"set_at", [&] { set_at(p, 2, 1.0); }},
      {"set_at", [&] { set_at(p, 0, p); }},
      {"set_slice", [&] { set_slice(p, 5, row); }},
      {"set_slice", [&] { jit(at_five)(p); }},
      {"set_slice", [&] { set_slice(p, 0, cast(row, f64)); }},
      {"set_slice",
       [&] {
         set_slice(p, 0, ones({1, 2}));
       }},
      {"set_slice", [&] { set_slice(p, 0, ones({3})); }},
  });
}

TEST_F(ErrorNamesTest, ErrorsNameFunctionsOfAnEmptyTensor) {
  expect_names({
      {"expand", [] { expand(Tensor(), Dim("batch", 2)); }},
      {"from_dense", [] { from_dense(Tensor()); }},
      {"perplexity", [] { perplexity(Weighted{}); }},
      {"Weighted::mean", [] { Weighted{}.mean(); }},
      {"hessian", [&] { hessian([](const Tensor&) { return Tensor(); })(x); }},
  });
}

TEST_F(ErrorNamesTest, ErrorsNameMetrics) {
  const Tensor rows = zeros({batch, g}, i32);
  const auto wrong = [&](const Tensor& x) { return accuracy(x, i + 9, f).total; };
  expect_names({
      {"accuracy", [&] { accuracy(Tensor(), i, f); }},
      {"accuracy", [&] { accuracy(x, Tensor(), f); }},
      {"accuracy", [&] { accuracy(x, i, g); }},
      {"accuracy", [&] { accuracy(x, rows, f); }},
      {"accuracy", [&] { accuracy(x, i + 9, f); }},
      {"accuracy", [&] { jit(wrong)(x); }},
      {"log_loss", [&] { log_loss(Tensor(), i, f); }},
      {"log_loss", [&] { log_loss(x, Tensor(), f); }},
      {"log_loss", [&] { log_loss(x, i, g); }},
      {"log_loss", [&] { log_loss(x, rows, f); }},
      {"log_loss", [&] { log_loss(x, i + 9, f, 3); }},
  });
}

TEST_F(ErrorNamesTest, ErrorsNameLosses) {
  const Dim labels("labels", 2);
  const Tensor ones_there = ones({batch, labels}, i32);
  const CtcDims dims{.time = time, .label_time = labels, .vocab = f};
  const auto in_graph = [this](const auto& fn) { return [this, fn] { jit(fn)(x); }; };
  const auto wrong_class = [&](const Tensor& x) { return cross_entropy(x, i + 9, f); };
  const auto wrong_label = [&](const Tensor& x) { return ctc_loss(x, ones_there + 9, dims); };
  const auto wrong_too = [&](const Tensor& x) {
    return ctc_log_likelihood(x, ones_there + 9, dims);
  };
  expect_names({
      {"cross_entropy", [&] { wrong_class(x); }},
      {"cross_entropy", in_graph(wrong_class)},
      {"cross_entropy", [&] { cross_entropy(x, i, g); }},
      {"ctc_loss", [&] { wrong_label(x); }},
      {"ctc_loss", in_graph(wrong_label)},
      {"ctc_loss", [&] { ctc_loss(x, cast(ones_there, f32), dims); }},
      {"ctc_log_likelihood", [&] { wrong_too(x); }},
      {"ctc_log_likelihood", in_graph(wrong_too)},
      {"ctc_log_likelihood", [&] { ctc_log_likelihood(x, cast(ones_there, f32), dims); }},
      {"ctc_log_likelihood", [&] { ctc_log_likelihood(x, ones_there, dims, {.blank = 9}); }},
  });
}

TEST_F(ErrorNamesTest, ErrorsNameLayers) {
  const auto linear = Linear::init(f, g);
  const auto embedding = Embedding::init(g, f);
  const auto norm = LayerNorm::init(f);
  const auto lstm = LstmCell::init(f, g);
  const auto gru = GruCell::init(f, g);
  const auto rnn = RnnCell::init(f, g);
  const Tensor frame = zeros({batch, f});
  const auto look_up = [&](const Tensor& symbols) { return embedding(symbols); };
  expect_names({
      {"Linear", [&] { linear(Tensor()); }},
      {"Linear", [&] { linear(cast(x, f64)); }},
      {"Linear", [&] { Linear::init(f, g, {.dtype = i32}); }},
      {"Embedding", [&] { embedding(x); }},
      {"Embedding", [&] { embedding(i + 7); }},
      {"Embedding", [&] { jit(look_up)(i + 7); }},
      {"Embedding", [&] { embedding(zeros({2}, i32)); }},
      {"Embedding", [&] { Embedding::init(g, g); }},
      {"Embedding", [&] { Embedding::init(g, f, {.dtype = i32}); }},
      {"LayerNorm", [&] { norm(cast(x, f64)); }},
      {"LayerNorm", [&] { norm(zeros({f}, i32)); }},
      {"LayerNorm", [&] { LayerNorm::init(f, {.dtype = i32}); }},
      {"LstmCell", [&] { lstm(cast(frame, f64), lstm.initial_state({batch})); }},
      {"LstmCell", [&] { lstm(frame, lstm.initial_state({time})); }},
      {"LstmCell",
       [&] {
         lstm(frame, {zeros({batch, g}), zeros({batch, g}, f64)});
       }},
      {"LstmCell::initial_state", [&] { lstm.initial_state({g}); }},
      {"LstmCell::initial_state", [&] { lstm.initial_state({2}); }},
      {"LstmCell", [&] { LstmCell::init(f, g, {.dtype = i32}); }},
      {"GruCell", [&] { gru(cast(frame, f64), gru.initial_state({batch})); }},
      {"GruCell", [&] { gru(frame, gru.initial_state({time})); }},
      {"RnnCell", [&] { rnn(cast(frame, f64), rnn.initial_state({batch})); }},
      {"RnnCell", [&] { rnn(frame, rnn.initial_state({time})); }},
      {"recur", [&] { recur(lstm, p, time); }},
      {"recur", [&] { recur(lstm, x, g); }},
      {"recur", [&] { recur(lstm, x, f); }},
  });
  EXPECT_EQ(message_of<ShapeError>([&] { linear(p); }),
            "Linear: x f32[2,3] has no dim f=4, which the layer takes; its dims are plain sizes: "
            "name them, as in reshape(x, {dim, ...})");
  const Dim h("h", 4);
  EXPECT_EQ(message_of<ShapeError>([&] {
              linear(ones({batch, h}));
            }),
            "Linear: x f32[batch=2,h=4] has no dim f=4, which the layer takes; if h=4 is meant, "
            "rename it: rename(x, h, f)");
  EXPECT_EQ(message_of<ShapeError>([&] {
              recur(lstm, ones({batch, time}), time);
            }),
            "recur: xs f32[batch=2,time=3] has no dim f=4, which the cell takes; make the cell "
            "with a dim of xs");
  EXPECT_EQ(message_of<DTypeError>([&] { linear(cast(x, f64)); }),
            "Linear: dtypes differ: x f64[batch=2,time=3,f=4], parameters f32; cast x to f32, or "
            "make the layer with dtype f64");
  EXPECT_EQ(message_of<ShapeError>([&] { lstm(frame, lstm.initial_state({time})); }),
            "LstmCell: dims differ: x f32[batch=2,f=4] lacks time=3 of state.h f32[time=3,g=5], "
            "which lacks batch=2; make the state with initial_state, of the dims of x without "
            "f=4");
}

TEST_F(ErrorNamesTest, ErrorsNameGradientFunctionsAndOptimisers) {
  const auto square_of = [](const Tensor& x) { return x * x; };
  const auto whole = [](const Tensor& x) { return cast(x, i32); };
  expect_names({
      {"grad", [&] { grad(square_of)(x); }},
      {"hessian", [&] { hessian(square_of)(x); }},
      {"jacobian", [&] { jacobian(whole)(x); }},
      {"jacfwd", [&] { jacfwd(whole)(x); }},
      {"jacfwd", [&] { jacfwd(whole)(i); }},
      {"value_and_grad", [&] { value_and_grad(square_of)(x); }},
      {"vjp", [&] { vjp(square_of, x).second(zeros({2})); }},
      {"vjp", [&] { vjp(square_of, x).second(zeros(x.dims(), f64)); }},
      {"Adam", [&] { Adam<Tensor>(x, {.beta1 = 2}); }},
      {"AdamW", [&] { AdamW<Tensor>(x, {.weight_decay = -1}); }},
      {"Sgd", [&] { Sgd<Tensor>(x, {.learning_rate = -1}); }},
      {"RmsProp", [&] { RmsProp<Tensor>(x, {.decay = 2}); }},
      {"Adagrad", [&] { Adagrad<Tensor>(x, {.epsilon = 0}); }},
      {"Lion", [&] { Lion<Tensor>(x, {.beta1 = 2}); }},
      {"Plateau", [&] { Plateau{.factor = 2}.initial_state(1); }},
  });
}

TEST_F(ErrorNamesTest, ErrorsNameFunctionsOfFiles) {
  Tensor model = x;
  const std::string missing = path + "/none";
  expect_names({
      {"load_checkpoint", [&] { load_checkpoint(path, model); }},
      {"load_safetensors", [&] { load_safetensors(path, model); }},
      {"read_safetensors_metadata", [&] { read_safetensors_metadata(path); }},
      {"save_checkpoint", [&] { save_checkpoint(missing, model); }},
      {"save_checkpoint", [&] { save_checkpoint(path, Tensor()); }},
      {"save_safetensors", [&] { save_safetensors(missing, model); }},
      {"save_npy", [&] { save_npy(missing, model); }},
      {"load_npy", [&] { load_npy(path); }},
  });
  save_checkpoint(path, model);
  Tensor other = p;
  expect_names({{"load_checkpoint", [&] { load_checkpoint(path, other); }}});
  write(path, "hello");
  expect_names({{"load_checkpoint", [&] { load_checkpoint(path, model); }}});
}

}  // namespace
}  // namespace reel
