#include "onednn.h"

#include <omp.h>

#include <algorithm>
#include <array>
#include <dnnl.hpp>
#include <memory>
#include <unordered_map>
#include <utility>

#include "reel/core/base/errors.h"
#include "reel/core/base/str.h"

namespace reel::bench {
namespace {

using dnnl::memory;
using Tag = memory::format_tag;
using PrimitiveDesc = dnnl::rnn_primitive_desc_base;

/// Sets the number of OpenMP threads while it lives.
class Threads {
 public:
  explicit Threads(int count) : before_(omp_get_max_threads()) { omp_set_num_threads(count); }
  ~Threads() { omp_set_num_threads(before_); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

 private:
  int before_;
};

memory::desc of(const memory::dims& dims, Tag tag) { return {dims, memory::data_type::f32, tag}; }

/// Descriptions for the forward and backward primitives. Weights are {layer, direction, in, gate,
/// out}.
struct Descs {
  memory::desc x, state, hs, input_weights, recurrent_weights, bias;

  Descs(const RnnProblem& p, Tag of_weights) {
    const memory::dim t = p.steps, b = p.batch, i = p.in, h = p.hidden, l = p.layers, g = p.gates();
    // The bias within the reset candidate counts as a fourth gate.
    const memory::dim biases = p.cell == Cell::gru_reset_after ? g + 1 : g;
    x = of({t, b, i}, Tag::tnc);
    state = of({l, 1, b, h}, Tag::ldnc);
    hs = of({t, b, h}, Tag::tnc);
    input_weights = of({l, 1, i, g, h}, of_weights);
    recurrent_weights = of({l, 1, h, g, h}, of_weights);
    bias = of({l, 1, biases, h}, Tag::ldgo);
  }
};

struct BothDescs {
  PrimitiveDesc forward, backward;
};

// An initial state is given although it is zeros: without one, oneDNN 2.6 computes a wrong gradient
// of the LSTM's recurrent weights.

template <class Forward, class Backward>
BothDescs gru_descs(const Descs& d, const dnnl::engine& engine) {
  const memory::desc none;
  constexpr auto left_to_right = dnnl::rnn_direction::unidirectional_left2right;
  const typename Forward::primitive_desc forward(
      typename Forward::desc(dnnl::prop_kind::forward_training, left_to_right, d.x, d.state,
                             d.input_weights, d.recurrent_weights, d.bias, d.hs, none),
      engine);
  const typename Backward::primitive_desc backward(
      typename Backward::desc(dnnl::prop_kind::backward, left_to_right, d.x, d.state,
                              d.input_weights, d.recurrent_weights, d.bias, d.hs, none, d.x,
                              d.state, d.input_weights, d.recurrent_weights, d.bias, d.hs, none),
      engine, forward);
  return {forward, backward};
}

BothDescs lstm_descs(const Descs& d, const dnnl::engine& engine) {
  const memory::desc none;
  constexpr auto left_to_right = dnnl::rnn_direction::unidirectional_left2right;
  const dnnl::lstm_forward::primitive_desc forward(
      dnnl::lstm_forward::desc(dnnl::prop_kind::forward_training, left_to_right, d.x, d.state,
                               d.state, d.input_weights, d.recurrent_weights, d.bias, d.hs, none,
                               none),
      engine);
  const dnnl::lstm_backward::primitive_desc backward(
      dnnl::lstm_backward::desc(dnnl::prop_kind::backward, left_to_right, d.x, d.state, d.state,
                                d.input_weights, d.recurrent_weights, d.bias, d.hs, none, none, d.x,
                                d.state, d.state, d.input_weights, d.recurrent_weights, d.bias,
                                d.hs, none, none),
      engine, forward);
  return {forward, backward};
}

BothDescs descs_of(const RnnProblem& p, const dnnl::engine& engine) {
  const Descs descs(p, Tag::any);
  if (p.cell == Cell::lstm) return lstm_descs(descs, engine);
  if (p.cell == Cell::gru_reset_after)
    return gru_descs<dnnl::lbr_gru_forward, dnnl::lbr_gru_backward>(descs, engine);
  return gru_descs<dnnl::gru_forward, dnnl::gru_backward>(descs, engine);
}

/// Converts the order of gates of a GRU: oneDNN's are z, r, n, ours r, z, n. The first two change
/// places, in both directions. Gates of an LSTM stay unchanged.
Floats with_gates_exchanged(const RnnProblem& p, Floats values) {
  if (p.cell == Cell::lstm) return values;
  const std::ptrdiff_t h = p.hidden, row = p.gates() * h;
  for (auto r = values.begin(); r != values.end(); r += row) std::swap_ranges(r, r + h, r + h);
  return values;
}

class OnednnRnn {
 public:
  OnednnRnn(const RnnProblem& p, int threads)
      : p_(p), threads_(threads), engine_(dnnl::engine::kind::cpu, 0), stream_(engine_) {
    const Threads scope(threads_);
    const Descs plain(p_, Tag::ldigo);
    const BothDescs descs = descs_of(p_, engine_);
    forward_ = dnnl::primitive(descs.forward);
    backward_ = dnnl::primitive(descs.backward);

    const memory x = filled(plain.x, p_.draw("x", count(plain.x)));
    const memory cotangent = filled(plain.hs, p_.draw("cotangent", count(plain.hs)));
    const memory input_weights = filled(plain.input_weights, weights("input_weight", p_.in));
    const memory recurrent_weights =
        filled(plain.recurrent_weights, weights("recurrent_weight", p_.hidden));
    const memory bias = filled(plain.bias, biases());
    const memory hs(plain.hs, engine_), workspace(descs.forward.workspace_desc(), engine_);

    const memory state =
        filled(plain.state, Floats(count(plain.state)));  // for both parts of an LSTM's state

    to_forward_ = {
        {DNNL_ARG_SRC_LAYER, x},
        {DNNL_ARG_SRC_ITER, state},
        {DNNL_ARG_SRC_ITER_C, state},
        {DNNL_ARG_WEIGHTS_LAYER, packed(input_weights, descs.forward.weights_layer_desc())},
        {DNNL_ARG_WEIGHTS_ITER, packed(recurrent_weights, descs.forward.weights_iter_desc())},
        {DNNL_ARG_BIAS, bias},
        {DNNL_ARG_DST_LAYER, hs},
        {DNNL_ARG_WORKSPACE, workspace}};
    to_backward_ = {
        {DNNL_ARG_SRC_LAYER, x},
        {DNNL_ARG_SRC_ITER, state},
        {DNNL_ARG_SRC_ITER_C, state},
        {DNNL_ARG_WEIGHTS_LAYER, packed(input_weights, descs.backward.weights_layer_desc())},
        {DNNL_ARG_WEIGHTS_ITER, packed(recurrent_weights, descs.backward.weights_iter_desc())},
        {DNNL_ARG_BIAS, bias},
        {DNNL_ARG_DST_LAYER, hs},
        {DNNL_ARG_DIFF_DST_LAYER, cotangent},
        {DNNL_ARG_WORKSPACE, workspace},
        {DNNL_ARG_DIFF_SRC_LAYER, memory(plain.x, engine_)},
        {DNNL_ARG_DIFF_SRC_ITER, memory(plain.state, engine_)},
        {DNNL_ARG_DIFF_SRC_ITER_C, memory(plain.state, engine_)},
        {DNNL_ARG_DIFF_WEIGHTS_LAYER, memory(descs.backward.diff_weights_layer_desc(), engine_)},
        {DNNL_ARG_DIFF_WEIGHTS_ITER, memory(descs.backward.diff_weights_iter_desc(), engine_)},
        {DNNL_ARG_DIFF_BIAS, memory(plain.bias, engine_)}};
  }

  void run() {
    const Threads scope(threads_);
    // oneDNN adds to the gradients of parameters.
    for (const int argument :
         {DNNL_ARG_DIFF_WEIGHTS_LAYER, DNNL_ARG_DIFF_WEIGHTS_ITER, DNNL_ARG_DIFF_BIAS}) {
      const memory& gradient = to_backward_.at(argument);
      std::fill_n(static_cast<char*>(gradient.get_data_handle()), gradient.get_desc().get_size(),
                  char{0});
    }
    forward_.execute(stream_, to_forward_);
    backward_.execute(stream_, to_backward_);
    stream_.wait();
  }

  Numbers numbers() {
    const Descs plain(p_, Tag::ldigo);
    Numbers numbers{{"hs", floats(to_forward_.at(DNNL_ARG_DST_LAYER), plain.hs)},
                    {"x", floats(to_backward_.at(DNNL_ARG_DIFF_SRC_LAYER), plain.x)}};
    const auto add = [&](const std::string& name, int argument, const memory::desc& desc) {
      const Floats all = with_gates_exchanged(p_, floats(to_backward_.at(argument), desc));
      const auto size = static_cast<std::ptrdiff_t>(all.size()) / p_.layers;
      for (int l = 0; l < p_.layers; ++l)
        numbers[parameter(l, name)] = Floats(all.begin() + l * size, all.begin() + (l + 1) * size);
    };
    add("input_weight", DNNL_ARG_DIFF_WEIGHTS_LAYER, plain.input_weights);
    add("recurrent_weight", DNNL_ARG_DIFF_WEIGHTS_ITER, plain.recurrent_weights);
    if (p_.cell != Cell::gru_reset_after) {
      add("bias", DNNL_ARG_DIFF_BIAS, plain.bias);
      return numbers;
    }
    const Floats all = floats(to_backward_.at(DNNL_ARG_DIFF_BIAS), plain.bias);
    const std::ptrdiff_t own = p_.gates() * p_.hidden;
    numbers["cell.bias"] = with_gates_exchanged(p_, {all.begin(), all.begin() + own});
    numbers["cell.candidate_bias"] = {all.begin() + own, all.end()};
    return numbers;
  }

 private:
  using Arguments = std::unordered_map<int, memory>;

  static std::size_t count(const memory::desc& desc) { return desc.get_size() / sizeof(float); }
  std::string parameter(int layer, const std::string& name) const {
    return p_.layers == 1 ? "cell." + name : str("cell.cells.", layer, ".", name);
  }
  memory filled(const memory::desc& desc, const Floats& values) {
    memory result(desc, engine_);
    if (values.size() != count(desc)) throw InternalError("the numbers of elements differ");
    std::copy(values.begin(), values.end(), static_cast<float*>(result.get_data_handle()));
    return result;
  }
  memory packed(const memory& source, const memory::desc& desc) {
    memory result(desc, engine_);
    dnnl::reorder(source, result).execute(stream_, const_cast<memory&>(source), result);
    stream_.wait();
    return result;
  }
  Floats floats(const memory& from, const memory::desc& desc) {
    const memory plain = packed(from, desc);
    const auto* first = static_cast<const float*>(plain.get_data_handle());
    return {first, first + count(desc)};
  }
  /// Returns the weights of all layers, concatenated. rows: of one layer.
  Floats weights(const std::string& name, int rows) const {
    Floats all;
    for (int l = 0; l < p_.layers; ++l) {
      const Floats one = p_.draw(parameter(l, name), static_cast<std::size_t>(rows) *
                                                         static_cast<std::size_t>(p_.gates()) *
                                                         static_cast<std::size_t>(p_.hidden));
      all.insert(all.end(), one.begin(), one.end());
    }
    return with_gates_exchanged(p_, all);
  }
  Floats biases() const {
    Floats all = weights("bias", 1);
    if (p_.cell != Cell::gru_reset_after) return all;
    const Floats more = p_.draw("cell.candidate_bias", static_cast<std::size_t>(p_.hidden));
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }

  RnnProblem p_;
  int threads_;
  dnnl::engine engine_;
  dnnl::stream stream_;
  dnnl::primitive forward_, backward_;
  Arguments to_forward_, to_backward_;
};

}  // namespace

bool is_in_onednn(const RnnProblem& p) {
  const bool is_known =
      p.cell == Cell::lstm || p.cell == Cell::gru_reset_after || p.cell == Cell::gru_reset_before;
  // Layers above the first must have equal numbers of input and output features.
  const bool is_even = p.layers == 1 || (p.cell == Cell::lstm && p.in == p.hidden);
  return is_known && is_even && !p.is_ragged;
}

RnnRun onednn_rnn(const RnnProblem& p, int threads) {
  const auto rnn = std::make_shared<OnednnRnn>(p, threads);
  return {[=] { rnn->run(); }, [=] { return rnn->numbers(); }};
}

std::string onednn_kernels(const RnnProblem& p, int threads) {
  const Threads scope(threads);
  const BothDescs descs = descs_of(p, dnnl::engine(dnnl::engine::kind::cpu, 0));
  return str(descs.forward.impl_info_str(), " forward, ", descs.backward.impl_info_str(),
             " backward");
}

Product onednn_product() {
  constexpr dnnl_dim_t kSize = 384;  // three matrices of 576 KiB
  const auto a = std::make_shared<Floats>(kSize * kSize, 0.5f);
  const auto c = std::make_shared<Floats>(kSize * kSize);
  return {[=] {
            const Threads scope(1);
            dnnl_sgemm('N', 'N', kSize, kSize, kSize, 1, a->data(), kSize, a->data(), kSize, 0,
                       c->data(), kSize);
          },
          2.0 * kSize * kSize * kSize};
}

}  // namespace reel::bench
