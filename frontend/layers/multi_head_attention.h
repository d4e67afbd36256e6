// frontend/layers/multi_head_attention.h — MultiHeadAttention, a layer and a cell with a cache.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "reel/core/base/visibility.h"
#include "reel/core/types/dim.h"
#include "reel/core/types/dtype.h"
#include "reel/core/types/tensor.h"
#include "reel/frontend/layers/linear.h"

REEL_API_BEGIN
namespace reel {

/// How MultiHeadAttention tells positions of one sequence apart.
enum class PositionEncoding {
  none,            ///< it does not; positions may be part of x
  rotary,          ///< rotary() of queries and keys: Su et al. (2021)
  alibi,           ///< a bias of -slope · distance for each head: Press et al. (2022)
  relative,        ///< learned keys for distances up to max_distance: Shaw et al. (2018), eq. 4
  transformer_xl,  ///< learned products with sinusoids of distances: Dai et al. (2019), section 3.3
};

/// Options of MultiHeadAttention::init.
struct MultiHeadAttentionOptions {
  bool is_causal = false;       ///< true: a position sees itself and earlier ones; needed by steps
  std::int64_t key_heads = 0;   ///< heads of keys and values, a divisor; default: all heads
  std::optional<Dim> memory{};  ///< the features of another sequence; default: x's features
  PositionEncoding positions = PositionEncoding::none;  ///< of one sequence, not of memories
  std::int64_t max_distance = 16;  ///< of PositionEncoding::relative; longer ones count as this
  double rotary_base = 10000;      ///< of PositionEncoding::rotary
  std::optional<std::int64_t> window{};  ///< positions of one sequence further away are not seen
  std::optional<Dim> capacity{};         ///< positions of initial_state(dims), which recur calls
  bool has_bias = true;                  ///< false: projections without a bias
  DType dtype = f32;                     ///< of the parameters
};

/// Attention with several heads and linear projections: of a sequence to itself, or to a memory. A
/// layer for whole sequences and a cell for steps and chunks, with equal results up to rounding.
///
/// With fewer key heads than heads, consecutive heads share keys and values (Ainslie et al. 2023).
/// Source: Vaswani et al. (2017), section 3.2.2.
struct MultiHeadAttention {
  /// The keys and values of earlier positions.
  struct State {
    Tensor keys;    ///< [..., positions, key_heads, features]; positions: the capacity
    Tensor values;  ///< [..., positions, key_heads, value_features]
    Tensor size;    ///< i32, the number of positions of each entry
  };
  /// The keys and values of another sequence.
  struct Memory {
    Tensor keys, values;  ///< as in the state, along `time`
    Dim time = 0;         ///< their dim
  };
  /// Parameters of PositionEncoding::transformer_xl.
  struct TransformerXl {
    Tensor content, position;  ///< u, v: {key_heads, group, features}
    Tensor weight;             ///< W_R: {sinusoid, key_heads, group, features}
    Dim sinusoid = 0;          ///< features of sinusoidal_positions
  };

  Linear query, key, value, out;         ///< projections
  std::optional<Tensor> relative;        ///< {distance, features}, from -max_distance on
  std::optional<TransformerXl> xl;       ///< present if positions are transformer_xl
  Dim model = 0;                         ///< features of x and of the result
  Dim key_heads = 0, group = 0;          ///< heads of keys; query heads per key head
  Dim features = 0, value_features = 0;  ///< of a head's keys, and of its values
  Dim distance = 0;                      ///< 2 · max_distance + 1
  Dim capacity = 0;                      ///< of initial_state(dims); no named dim: not given
  PositionEncoding positions = PositionEncoding::none;  ///< as for init
  double rotary_base = 10000;                           ///< as for init
  std::optional<std::int64_t> window;                   ///< as for init
  bool is_causal = false;                               ///< as for init

  /// Returns a layer with weights from glorot_uniform, zero biases, and normal relative keys.
  /// Throws ArgumentError if a dim has no name or no known size, if `heads` does not divide model,
  /// or key_heads does not divide heads; DTypeError for a dtype that is not floating.
  static MultiHeadAttention init(const Dim& model, std::int64_t heads,
                                 const MultiHeadAttentionOptions& options = {});

  /// Return the dims of x and of y.
  const Dim& in_dim() const { return model; }
  const Dim& out_dim() const { return model; }
  /// Returns an empty cache for as many positions as the dim has; size is 0, over `dims`. Without
  /// `positions`: options.capacity, or an ArgumentError.
  State initial_state(const Dims& dims, const Dim& positions) const;
  State initial_state(const Dims& dims) const;

  /// Attends from a whole sequence to itself. x: [..., time, model] -> the same dims.
  Tensor operator()(const Tensor& x, const Dim& time) const;
  /// Runs a chunk, which continues the sequences of the state: of different lengths if `time` is
  /// ragged, as prompts are. Returns {y, the next state}. Throws IndexError if the cache is full,
  /// ArgumentError unless the layer is causal.
  std::pair<Tensor, State> operator()(const Tensor& x, const Dim& time, State state) const;
  /// Runs one time step. x: [..., model] -> {y: [..., model], the next state}.
  std::pair<Tensor, State> operator()(const Tensor& x, State state) const;

  /// Returns the keys and values of another sequence, which is projected once. x: [..., time,
  /// options.memory].
  Memory of(const Tensor& x, const Dim& time) const;
  /// Attends to a memory. x: [..., model], with or without time -> the same dims.
  Tensor operator()(const Tensor& x, const Memory& memory) const;

 private:
  Tensor keys_at(const Tensor& x, const Tensor* positions) const;
  Tensor values_of(const Tensor& x) const;
  Tensor attend(const Tensor& x, const Dim& queries, const std::optional<Tensor>& offset,
                const Tensor& keys, const Tensor& values, const Dim& time) const;
  Tensor joined(const Tensor& y) const;
};

}  // namespace reel
REEL_API_END
