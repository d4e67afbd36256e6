#include "reel/onnx/op_forms.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <string_view>

namespace reel::imported {
namespace {

// The forms of all ops of ONNX up to op set 27, and of ops with rules in other domains. Source: the
// schemas of ONNX 1.22 (docs/Changelog.md).
//
//   OP VERSIONS INPUTS>OUTPUTS ATTRIBUTE:TYPE...
//
// VERSIONS: the op sets that defined the op anew in this form; it holds until the op's next ones. A
// minus instead of inputs: the op is removed. Inputs and outputs: r required, o optional, v2 any
// number from 2 on. Types: f float, i int, s string, t tensor, g graph, p sparse tensor, y type; a
// capital letter is a list; ! marks a required attribute. A line that begins with a blank goes on
// with the line before.
constexpr std::string_view kTable = R"(
Abs 1 r>r consumed_inputs:I
Abs 6,13 r>r
Acos 7,22 r>r
Acosh 9,22 r>r
Add 1 rr>r axis:i broadcast:i consumed_inputs:I
Add 6 rr>r axis:i broadcast:i
Add 7,13,14 rr>r
AffineGrid 20 rr>r align_corners:i
And 1 rr>r axis:i broadcast:i
And 7 rr>r
ArgMax 1,11 r>r axis:i keepdims:i
ArgMax 12,13 r>r axis:i keepdims:i select_last_index:i
ArgMin 1,11 r>r axis:i keepdims:i
ArgMin 12,13 r>r axis:i keepdims:i select_last_index:i
Asin 7,22 r>r
Asinh 9,22 r>r
Atan 7,22 r>r
Atanh 9,22 r>r
Attention 23 rrrooo>rooo is_causal:i kv_num_heads:i q_num_heads:i qk_matmul_output_mode:i scale:f
  softcap:f softmax_precision:i
Attention 24 rrroooo>rooo is_causal:i kv_num_heads:i q_num_heads:i qk_matmul_output_mode:i scale:f
  softcap:f softmax_precision:i
AveragePool 1 r>r auto_pad:s kernel_shape:I! pads:I strides:I
AveragePool 7 r>r auto_pad:s count_include_pad:i kernel_shape:I! pads:I strides:I
AveragePool 10,11 r>r auto_pad:s ceil_mode:i count_include_pad:i kernel_shape:I! pads:I strides:I
AveragePool 19,22 r>r auto_pad:s ceil_mode:i count_include_pad:i dilations:I kernel_shape:I!
  pads:I strides:I
BatchNormalization 1 rrrrr>roooo consumed_inputs:I! epsilon:f is_test:i momentum:f spatial:i
BatchNormalization 6 rrrrr>roooo epsilon:f is_test:i momentum:f spatial:i
BatchNormalization 7 rrrrr>roooo epsilon:f momentum:f spatial:i
BatchNormalization 9 rrrrr>roooo epsilon:f momentum:f
BatchNormalization 14,15 rrrrr>roo epsilon:f momentum:f training_mode:i
Bernoulli 15,22 r>r dtype:i seed:f
BitCast 26 r>r to:i!
BitShift 11 rr>r direction:s!
BitwiseAnd 18 rr>r
BitwiseNot 18 r>r
BitwiseOr 18 rr>r
BitwiseXor 18 rr>r
BlackmanWindow 17 r>r output_datatype:i periodic:i
Cast 1 r>r to:s!
Cast 6,9,13 r>r to:i!
Cast 19,21,23 r>r saturate:i to:i!
Cast 24,25 r>r round_mode:s saturate:i to:i!
CastLike 15 rr>r
CastLike 19,21,23 rr>r saturate:i
CastLike 24,25 rr>r round_mode:s saturate:i
CausalConvWithState 27 rroo>rr activation:s
Ceil 1 r>r consumed_inputs:I
Ceil 6,13 r>r
Celu 12 r>r alpha:f
CenterCropPad 18 rr>r axes:I
Clip 1 r>r consumed_inputs:I max:f min:f
Clip 6 r>r max:f min:f
Clip 11,12,13 roo>r
Col2Im 18 rrr>r dilations:I pads:I strides:I
Compress 9,11 rr>r axis:i
Concat 1 v1>r axis:i
Concat 4,11,13 v1>r axis:i!
ConcatFromSequence 11 r>r axis:i! new_axis:i
Constant 1,9 >r value:t!
Constant 11 >r sparse_value:p value:t
Constant 12,13,19,21,23,24,25 >r sparse_value:p value:t value_float:f value_floats:F value_int:i
  value_ints:I value_string:s value_strings:S
ConstantOfShape 9,20,21,23,24,25 r>r value:t
Conv 1,11,22 rro>r auto_pad:s dilations:I group:i kernel_shape:I pads:I strides:I
ConvInteger 10 rroo>r auto_pad:s dilations:I group:i kernel_shape:I pads:I strides:I
ConvTranspose 1,11,22 rro>r auto_pad:s dilations:I group:i kernel_shape:I output_padding:I
  output_shape:I pads:I strides:I
Cos 7,22 r>r
Cosh 9,22 r>r
CumProd 26 rr>r exclusive:i reverse:i
CumSum 11,14 rr>r exclusive:i reverse:i
DFT 17 ro>r axis:i inverse:i onesided:i
DFT 20 roo>r inverse:i onesided:i
DeformConv 19,22 rrroo>r dilations:I group:i kernel_shape:I offset_group:i pads:I strides:I
DepthToSpace 1 r>r blocksize:i!
DepthToSpace 11,13 r>r blocksize:i! mode:s
DequantizeLinear 10 rro>r
DequantizeLinear 13,19 rro>r axis:i
DequantizeLinear 21 rro>r axis:i block_size:i
DequantizeLinear 23,24,25 rro>r axis:i block_size:i output_dtype:i
Det 11,22 r>r
Div 1 rr>r axis:i broadcast:i consumed_inputs:I
Div 6 rr>r axis:i broadcast:i
Div 7,13,14 rr>r
Dropout 1 r>ro consumed_inputs:I is_test:i ratio:f
Dropout 6 r>ro is_test:i ratio:f
Dropout 7,10 r>ro ratio:f
Dropout 12,13,22 roo>ro seed:i
DynamicQuantizeLinear 11 r>rrr
Einsum 12 v1>r equation:s!
Elu 1 r>r alpha:f consumed_inputs:I
Elu 6,22 r>r alpha:f
Equal 1 rr>r axis:i broadcast:i
Equal 7,11,13,19 rr>r
Erf 9,13 r>r
Exp 1 r>r consumed_inputs:I
Exp 6,13 r>r
Expand 8,13 rr>r
EyeLike 9,22 r>r dtype:i k:i
Flatten 1,9,11,13,21,23,24,25 r>r axis:i
Floor 1 r>r consumed_inputs:I
Floor 6,13 r>r
GRU 1 rrrooo>or activation_alpha:F activation_beta:F activations:S clip:f direction:s
  hidden_size:i output_sequence:i
GRU 3 rrrooo>oo activation_alpha:F activation_beta:F activations:S clip:f direction:s
  hidden_size:i linear_before_reset:i output_sequence:i
GRU 7 rrrooo>oo activation_alpha:F activation_beta:F activations:S clip:f direction:s
  hidden_size:i linear_before_reset:i
GRU 14,22 rrrooo>oo activation_alpha:F activation_beta:F activations:S clip:f direction:s
  hidden_size:i layout:i linear_before_reset:i
Gather 1,11,13 rr>r axis:i
GatherElements 11,13 rr>r axis:i
GatherND 11 rr>r
GatherND 12,13 rr>r batch_dims:i
Gelu 20 r>r approximate:s
Gemm 1,6 rrr>r alpha:f beta:f broadcast:i transA:i transB:i
Gemm 7,9 rrr>r alpha:f beta:f transA:i transB:i
Gemm 11,13 rro>r alpha:f beta:f transA:i transB:i
GlobalAveragePool 1,22 r>r
GlobalLpPool 1 r>r p:f
GlobalLpPool 2,22 r>r p:i
GlobalMaxPool 1,22 r>r
Greater 1 rr>r axis:i broadcast:i
Greater 7,9,13 rr>r
GreaterOrEqual 12,16 rr>r
GridSample 16,20,22 rr>r align_corners:i mode:s padding_mode:s
GroupNormalization 18 -
GroupNormalization 21 rrr>r epsilon:f num_groups:i! stash_type:i
HammingWindow 17 r>r output_datatype:i periodic:i
HannWindow 17 r>r output_datatype:i periodic:i
HardSigmoid 1 r>r alpha:f beta:f consumed_inputs:I
HardSigmoid 6,22 r>r alpha:f beta:f
HardSwish 14,22 r>r
Hardmax 1,11,13 r>r axis:i
Identity 1,13,14,16,19,21,23,24,25 r>r
If 1,11,13,16,19,21,23,24,25 r>v1 else_branch:g! then_branch:g!
ImageDecoder 20 r>r pixel_format:s
InstanceNormalization 1 rrr>r consumed_inputs:I epsilon:f
InstanceNormalization 6,22 rrr>r epsilon:f
IsInf 10,20 r>r detect_negative:i detect_positive:i
IsNaN 9,13,20 r>r
LRN 1,13 r>r alpha:f beta:f bias:f size:i!
LSTM 1 rrrooooo>ooo activation_alpha:F activation_beta:F activations:S clip:f direction:s
  hidden_size:i input_forget:i output_sequence:i
LSTM 7 rrrooooo>ooo activation_alpha:F activation_beta:F activations:S clip:f direction:s
  hidden_size:i input_forget:i
LSTM 14,22 rrrooooo>ooo activation_alpha:F activation_beta:F activations:S clip:f direction:s
  hidden_size:i input_forget:i layout:i
LayerNormalization 17 rro>roo axis:i epsilon:f stash_type:i
LeakyRelu 1 r>r alpha:f consumed_inputs:I
LeakyRelu 6,16 r>r alpha:f
Less 1 rr>r axis:i broadcast:i
Less 7,9,13 rr>r
LessOrEqual 12,16 rr>r
LinearAttention 27 rrrooo>rr chunk_size:i kv_num_heads:i! q_num_heads:i! scale:f update_rule:s
Log 1 r>r consumed_inputs:I
Log 6,13 r>r
LogSoftmax 1,11,13 r>r axis:i
Loop 1 oov1>v1 body:g!
Loop 11,13,16,19,21,23,24,25 oov0>v1 body:g!
LpNormalization 1,22 r>r axis:i p:i
LpPool 1 r>r auto_pad:s kernel_shape:I p:f pads:I strides:I
LpPool 2,11 r>r auto_pad:s kernel_shape:I! p:i pads:I strides:I
LpPool 18,22 r>r auto_pad:s ceil_mode:i dilations:I kernel_shape:I! p:i pads:I strides:I
MatMul 1,9,13 rr>r
MatMulInteger 10 rroo>r
Max 1 v1>r consumed_inputs:I
Max 6,8,12,13 v1>r
MaxPool 1 r>r auto_pad:s kernel_shape:I! pads:I strides:I
MaxPool 8 r>ro auto_pad:s kernel_shape:I! pads:I storage_order:i strides:I
MaxPool 10,11,12,22 r>ro auto_pad:s ceil_mode:i dilations:I kernel_shape:I! pads:I storage_order:i
  strides:I
MaxRoiPool 1,22 rr>r pooled_shape:I! spatial_scale:f
MaxUnpool 9,11,22 rro>r kernel_shape:I! pads:I strides:I
Mean 1 v1>r consumed_inputs:I
Mean 6,8,13 v1>r
MeanVarianceNormalization 9,13 r>r axes:I
MelWeightMatrix 17 rrrrr>r output_datatype:i
Min 1 v1>r consumed_inputs:I
Min 6,8,12,13 v1>r
Mish 18,22 r>r
Mod 10,13 rr>r fmod:i
Mul 1 rr>r axis:i broadcast:i consumed_inputs:I
Mul 6 rr>r axis:i broadcast:i
Mul 7,13,14 rr>r
Multinomial 7,22 r>r dtype:i sample_size:i seed:f
Neg 1 r>r consumed_inputs:I
Neg 6,13 r>r
NegativeLogLikelihoodLoss 12,13,22 rro>r ignore_index:i reduction:s
NonMaxSuppression 10,11 rrooo>r center_point_box:i
NonZero 9,13 r>r
Not 1 r>r
OneHot 9,11 rrr>r axis:i
Optional 15 o>r type:y
OptionalGetElement 15,18 r>r
OptionalHasElement 15 r>r
OptionalHasElement 18 o>r
Or 1 rr>r axis:i broadcast:i
Or 7 rr>r
PRelu 1 rr>r consumed_inputs:I
PRelu 6,7,9,16 rr>r
Pad 1 r>r mode:s paddings:I! value:f
Pad 2 r>r mode:s pads:I! value:f
Pad 11,13 rro>r mode:s
Pad 18,19,21,23,24,25 rroo>r mode:s
Pow 1 rr>r axis:i broadcast:i
Pow 7,12,13,15 rr>r
QLinearConv 10 rrrrrrrro>r auto_pad:s dilations:I group:i kernel_shape:I pads:I strides:I
QLinearMatMul 10,21 rrrrrrrr>r
QuantizeLinear 10 rro>r
QuantizeLinear 13 rro>r axis:i
QuantizeLinear 19 rro>r axis:i saturate:i
QuantizeLinear 21 rro>r axis:i block_size:i output_dtype:i saturate:i
QuantizeLinear 23,24,25 rro>r axis:i block_size:i output_dtype:i precision:i saturate:i
RMSNormalization 23 rr>r axis:i epsilon:f stash_type:i
RNN 1 rrrooo>oo activation_alpha:F activation_beta:F activations:S clip:f direction:s
  hidden_size:i output_sequence:i
RNN 7 rrrooo>oo activation_alpha:F activation_beta:F activations:S clip:f direction:s hidden_size:i
RNN 14,22 rrrooo>oo activation_alpha:F activation_beta:F activations:S clip:f direction:s
  hidden_size:i layout:i
RandomNormal 1,22 >r dtype:i mean:f scale:f seed:f shape:I!
RandomNormalLike 1,22 r>r dtype:i mean:f scale:f seed:f
RandomUniform 1,22 >r dtype:i high:f low:f seed:f shape:I!
RandomUniformLike 1,22 r>r dtype:i high:f low:f seed:f
Range 11 rrr>r
Range 27 rrr>r stash_type:i
Reciprocal 1 r>r consumed_inputs:I
Reciprocal 6,13 r>r
ReduceL1 1,11,13 r>r axes:I keepdims:i
ReduceL1 18 ro>r keepdims:i noop_with_empty_axes:i
ReduceL2 1,11,13 r>r axes:I keepdims:i
ReduceL2 18 ro>r keepdims:i noop_with_empty_axes:i
ReduceLogSum 1,11,13 r>r axes:I keepdims:i
ReduceLogSum 18 ro>r keepdims:i noop_with_empty_axes:i
ReduceLogSumExp 1,11,13 r>r axes:I keepdims:i
ReduceLogSumExp 18 ro>r keepdims:i noop_with_empty_axes:i
ReduceMax 1,11,12,13 r>r axes:I keepdims:i
ReduceMax 18,20 ro>r keepdims:i noop_with_empty_axes:i
ReduceMean 1,11,13 r>r axes:I keepdims:i
ReduceMean 18 ro>r keepdims:i noop_with_empty_axes:i
ReduceMin 1,11,12,13 r>r axes:I keepdims:i
ReduceMin 18,20 ro>r keepdims:i noop_with_empty_axes:i
ReduceProd 1,11,13 r>r axes:I keepdims:i
ReduceProd 18 ro>r keepdims:i noop_with_empty_axes:i
ReduceSum 1,11 r>r axes:I keepdims:i
ReduceSum 13 ro>r keepdims:i noop_with_empty_axes:i
ReduceSumSquare 1,11,13 r>r axes:I keepdims:i
ReduceSumSquare 18 ro>r keepdims:i noop_with_empty_axes:i
RegexFullMatch 20 r>r pattern:s
Relu 1 r>r consumed_inputs:I
Relu 6,13,14 r>r
Reshape 1 r>r consumed_inputs:I shape:I
Reshape 5,13 rr>r
Reshape 14,19,21,23,24,25 rr>r allowzero:i
Resize 10 rr>r mode:s
Resize 11 rrro>r coordinate_transformation_mode:s cubic_coeff_a:f exclude_outside:i
  extrapolation_value:f mode:s nearest_mode:s
Resize 13 rooo>r coordinate_transformation_mode:s cubic_coeff_a:f exclude_outside:i
  extrapolation_value:f mode:s nearest_mode:s
Resize 18,19 rooo>r antialias:i axes:I coordinate_transformation_mode:s cubic_coeff_a:f
  exclude_outside:i extrapolation_value:f keep_aspect_ratio_policy:s mode:s nearest_mode:s
ReverseSequence 10 rr>r batch_axis:i time_axis:i
RoiAlign 10 rrr>r mode:s output_height:i output_width:i sampling_ratio:i spatial_scale:f
RoiAlign 16,22 rrr>r coordinate_transformation_mode:s mode:s output_height:i output_width:i
  sampling_ratio:i spatial_scale:f
RotaryEmbedding 23 rrro>r interleaved:i num_heads:i rotary_embedding_dim:i
Round 11,22 r>r
STFT 17 rroo>r onesided:i
Scan 8 ov1>v1 body:g! directions:I num_scan_inputs:i!
Scan 9,11,16,19,21,23,24,25 v1>v1 body:g! num_scan_inputs:i! scan_input_axes:I
  scan_input_directions:I scan_output_axes:I scan_output_directions:I
Scatter 9 rrr>r axis:i
Scatter 11 -
ScatterElements 11,13 rrr>r axis:i
ScatterElements 16,18 rrr>r axis:i reduction:s
ScatterND 11,13 rrr>r
ScatterND 16,18 rrr>r reduction:s
Selu 1 r>r alpha:f consumed_inputs:I gamma:f
Selu 6,22 r>r alpha:f gamma:f
SequenceAt 11 rr>r
SequenceConstruct 11 v1>r
SequenceEmpty 11 >r dtype:i
SequenceErase 11 ro>r
SequenceInsert 11 rro>r
SequenceLength 11 r>r
SequenceMap 17 rv0>v1 body:g!
Shape 1,13 r>r
Shape 15,19,21,23,24,25 r>r end:i start:i
Shrink 9 r>r bias:f lambd:f
Sigmoid 1 r>r consumed_inputs:I
Sigmoid 6,13 r>r
Sign 9,13 r>r
Sin 7,22 r>r
Sinh 9,22 r>r
Size 1,13,19,21,23,24,25 r>r
Slice 1 r>r axes:I ends:I! starts:I!
Slice 10,11,13 rrroo>r
Softmax 1,11,13 r>r axis:i
SoftmaxCrossEntropyLoss 12,13 rro>ro ignore_index:i reduction:s
Softplus 1,22 r>r
Softsign 1,22 r>r
SpaceToDepth 1,13 r>r blocksize:i!
Split 1 ro>v1 axis:i split:I
Split 2,11 r>v1 axis:i split:I
Split 13 ro>v1 axis:i
Split 18 ro>v1 axis:i num_outputs:i
SplitToSequence 11,24 ro>r axis:i keepdims:i
Sqrt 1 r>r consumed_inputs:I
Sqrt 6,13 r>r
Squeeze 1,11 r>r axes:I
Squeeze 13,21,23,24,25 ro>r
StringConcat 20 rr>r
StringNormalizer 10 r>r case_change_action:s is_case_sensitive:i locale:s stopwords:S
StringSplit 20 r>rr delimiter:s maxsplit:i
Sub 1 rr>r axis:i broadcast:i consumed_inputs:I
Sub 6 rr>r axis:i broadcast:i
Sub 7,13,14 rr>r
Sum 1 v1>r consumed_inputs:I
Sum 6,8,13 v1>r
Swish 24 r>r alpha:f
Tan 7,22 r>r
Tanh 1 r>r consumed_inputs:I
Tanh 6,13 r>r
TensorScatter 24 rro>r axis:i mode:s
TfIdfVectorizer 9 r>r max_gram_length:i! max_skip_count:i! min_gram_length:i! mode:s!
  ngram_counts:I! ngram_indexes:I! pool_int64s:I pool_strings:S weights:F
ThresholdedRelu 10,22 r>r alpha:f
Tile 1 rrr>r
Tile 6,13 rr>r
TopK 1 r>rr axis:i k:i!
TopK 10 rr>rr axis:i
TopK 11,24 rr>rr axis:i largest:i sorted:i
Transpose 1,13,21,23,24,25 r>r perm:I
Trilu 14 ro>r upper:i
Unique 11 r>rooo axis:i sorted:i
Unsqueeze 1,11 r>r axes:I!
Unsqueeze 13,21,23,24,25 rr>r
Upsample 1 r>r height_scale:f! mode:s width_scale:f!
Upsample 7 r>r mode:s scales:F!
Upsample 9 rr>r mode:s
Upsample 10 -
Where 9,16 rrr>r
Xor 1 rr>r axis:i broadcast:i
Xor 7 rr>r
ai.onnx.ml.ArrayFeatureExtractor 1 rr>r
ai.onnx.ml.Binarizer 1 r>r threshold:f
ai.onnx.ml.TreeEnsemble 5 r>r aggregate_function:i leaf_targetids:I! leaf_weights:t!
  membership_values:t n_targets:i nodes_falseleafs:I! nodes_falsenodeids:I! nodes_featureids:I!
  nodes_hitrates:t nodes_missing_value_tracks_true:I nodes_modes:t! nodes_splits:t!
  nodes_trueleafs:I! nodes_truenodeids:I! post_transform:i tree_roots:I!
ai.onnx.preview.FlexAttention 1 rrr>r prob_mod:g scale:f score_mod:g softmax_precision:i
ai.onnx.preview.training.Adagrad 1 rrv1>v1 decay_factor:f epsilon:f norm_coefficient:f
ai.onnx.preview.training.Adam 1 rrv1>v1 alpha:f beta:f epsilon:f norm_coefficient:f
  norm_coefficient_post:f
ai.onnx.preview.training.Gradient 1 v1>v1 xs:S! y:s! zs:S
ai.onnx.preview.training.Momentum 1 rrv1>v1 alpha:f! beta:f! mode:s! norm_coefficient:f!
)";

/// Splits at a character; without empty parts.
std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(separator), text.size());
    if (end) parts.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

std::int64_t number_in(std::string_view text) {
  std::int64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

ValueForms values_in(std::string_view text) {
  ValueForms forms;
  for (std::size_t i = 0; i < text.size() && text[i] != 'v'; ++i) {
    forms.is_required.push_back(text[i] == 'r');
    if (text[i] == 'r') forms.fewest = i + 1;
  }
  const std::size_t list = text.find('v');
  forms.any_number = list != std::string_view::npos;
  if (forms.any_number)
    forms.fewest =
        forms.is_required.size() + static_cast<std::size_t>(number_in(text.substr(list + 1)));
  return forms;
}

OpForm form_in(const std::vector<std::string_view>& words) {
  OpForm form;
  form.is_removed = words[2] == "-";
  if (form.is_removed) return form;
  const std::size_t arrow = words[2].find('>');
  form.inputs = values_in(words[2].substr(0, arrow));
  form.outputs = values_in(words[2].substr(arrow + 1));
  for (std::size_t i = 3; i < words.size(); ++i) {
    const std::size_t colon = words[i].find(':');
    form.attributes[std::string(words[i].substr(0, colon))] = {words[i][colon + 1],
                                                               words[i].ends_with('!')};
  }
  return form;
}

using Versions = std::map<std::int64_t, OpForm>;  // by the op set that begins them
using Table = std::map<std::pair<std::string, std::string>, Versions>;  // by domain and op

void add_line(Table& table, std::string_view line) {
  const std::vector<std::string_view> words = split(line, ' ');
  std::string_view op = words[0];
  std::string_view domain;
  if (const std::size_t dot = op.rfind('.'); dot != std::string_view::npos) {
    domain = op.substr(0, dot);
    op.remove_prefix(dot + 1);
  }
  Versions& versions = table[{std::string(domain), std::string(op)}];
  for (const std::string_view version : split(words[1], ',')) {
    OpForm form = form_in(words);
    form.since = number_in(version);
    versions[form.since] = std::move(form);
  }
}

Table make_table() {
  Table table;
  std::string line;
  for (const std::string_view next : split(kTable, '\n')) {
    if (next[0] != ' ' && !line.empty()) {
      add_line(table, line);
      line.clear();
    }
    line += next;
  }
  add_line(table, line);
  return table;
}

}  // namespace

const OpForm* find_form(const std::string& domain, const std::string& op, std::int64_t version) {
  static const Table& table = *new Table(make_table());  // never destroyed: models may be global
  const auto found = table.find({domain, op});
  if (found == table.end()) return nullptr;
  auto after = found->second.upper_bound(version);
  return after == found->second.begin() ? nullptr : &std::prev(after)->second;
}

}  // namespace reel::imported
