// Writers of matrix products.
#include <algorithm>

#include "reel/core/ops/products/products.h"
#include "reel/onnx/writer_registry.h"

namespace reel::exported {
namespace {

bool has(const std::vector<int>& axes, int axis) {
  return std::find(axes.begin(), axes.end(), axis) != axes.end();
}

/// Returns the axes of an operand: batch, then free, then contracted, or contracted before free.
std::vector<int> order_of(int rank, const std::vector<int>& batch, const std::vector<int>& contract,
                          bool contracts_last) {
  std::vector<int> order = batch;
  if (!contracts_last) order.insert(order.end(), contract.begin(), contract.end());
  for (int axis = 0; axis < rank; ++axis)
    if (!has(batch, axis) && !has(contract, axis)) order.push_back(axis);
  if (contracts_last) order.insert(order.end(), contract.begin(), contract.end());
  return order;
}

/// True if MatMul computes the product: one contracted pair, and b is a matrix without batch, or
/// both are matrices for each entry of the batch.
bool is_matmul(const DotAttrs& attrs, int rank_a, int rank_b) {
  if (attrs.a_contract.size() != 1) return false;
  const int batch = static_cast<int>(attrs.a_batch.size());
  if (batch == 0) return rank_a >= 2 && rank_b == 2;
  return rank_a - batch == 2 && rank_b - batch == 2;
}

/// Returns the equation of Einsum: a letter for each axis, the same one for axes that are paired.
std::string equation_of(const DotAttrs& attrs, int rank_a, int rank_b) {
  std::string a(static_cast<std::size_t>(rank_a), ' '), b(static_cast<std::size_t>(rank_b), ' ');
  char next = 'a';
  const auto pair = [&](const std::vector<int>& in_a, const std::vector<int>& in_b) {
    std::string letters;
    for (std::size_t i = 0; i < in_a.size(); ++i) {
      a[static_cast<std::size_t>(in_a[i])] = b[static_cast<std::size_t>(in_b[i])] = next;
      letters += next++;
    }
    return letters;
  };
  std::string result = pair(attrs.a_batch, attrs.b_batch);
  pair(attrs.a_contract, attrs.b_contract);
  for (std::string* letters : {&a, &b})
    for (char& letter : *letters)
      if (letter == ' ') result += letter = next++;
  return a + "," + b + "->" + result;
}

/// The kernel of the op itself skips padding in some products; ONNX reads zeros there.
Name operand(const WriteCall& call, std::size_t i) {
  const DotAttrs& attrs = call.attr<DotAttrs>();
  const TensorType& type = call.type_in(i);
  if (!counts_no_padding(attrs, call.type_in(0), call.type_in(1))) return call.in(i);
  return call.to.mask_padding(call.in(i), type, call.to.model().number(0, type.dtype()));
}

/// Returns the product of a matrix and a vector. The vector stands on the side where the matrix
/// need not be transposed: onnxruntime 1.20 computes wrong products of transposed matrices and
/// vectors.
Name with_vector(const WriteCall& call, const Name& matrix, int contracted, const Name& vector) {
  return contracted == 1 ? call.to.add("MatMul", {matrix, vector})
                         : call.to.add("MatMul", {vector, matrix});
}

Names write_dot(const WriteCall& call) {
  const DotAttrs& attrs = call.attr<DotAttrs>();
  const int rank_a = call.type_in(0).rank(), rank_b = call.type_in(1).rank();
  const Name a = operand(call, 0), b = operand(call, 1);
  const bool is_plain = attrs.a_batch.empty() && attrs.a_contract.size() == 1;
  if (is_plain && rank_a == 2 && rank_b == 1) return {with_vector(call, a, attrs.a_contract[0], b)};
  if (is_plain && rank_a == 1 && rank_b == 2) return {with_vector(call, b, attrs.b_contract[0], a)};
  if (is_plain && rank_a == 1 && rank_b == 1) return {call.to.add("MatMul", {a, b})};
  if (!is_matmul(attrs, rank_a, rank_b))
    return {
        call.to.add("Einsum", {a, b}, {{"equation", text(equation_of(attrs, rank_a, rank_b))}})};
  return {call.to.add(
      "MatMul", {call.to.transpose(a, order_of(rank_a, attrs.a_batch, attrs.a_contract, true)),
                 call.to.transpose(b, order_of(rank_b, attrs.b_batch, attrs.b_contract, false))})};
}

const Writer kWriters[] = {{"dot", write_dot}};

}  // namespace

std::span<const Writer> product_writers() { return kWriters; }

}  // namespace reel::exported
