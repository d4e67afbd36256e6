#include "reel/core/ops/elementwise/pointwise_code.h"

#include "reel/core/ops/elementwise/chain_registers.h"

namespace reel {

int Chain::append(Code op, int a, int b) {
  steps.push_back({op, {a, b}});
  return static_cast<int>(repeats.size() + steps.size()) - 1;
}

int Chain::registers() const {
  Registers registers(*this);
  go_through(
      *this, registers, [](int) {}, [](const Step&, int, const auto&) {});
  return registers.most();
}

std::string Chain::key() const {
  std::string key;
  const auto put = [&](std::size_t number) {
    const auto part = static_cast<std::uint16_t>(number);  // values and codes are few
    key.append(reinterpret_cast<const char*>(&part), sizeof part);
  };
  key.reserve(2 * (3 + repeats.size() + 3 * steps.size() + results.size()));
  for (const std::size_t number : {static_cast<std::size_t>(item), repeats.size(), steps.size()})
    put(number);
  for (const bool repeat : repeats) put(repeat);
  for (const Step& step : steps) {
    int code = -1;
    if (step.op) {
      const Unary* unary = std::get_if<Unary>(&*step.op);
      code = unary ? static_cast<int>(*unary)
                   : static_cast<int>(Unary::count) + static_cast<int>(std::get<Binary>(*step.op));
    }
    for (const int number : {code, step.in[0], step.in[1]}) put(static_cast<std::size_t>(number));
  }
  for (const int v : results) put(static_cast<std::size_t>(v));
  return key;
}

bool has_code(const ElementLoop& loop, DType dtype) {
  if (!is_float(dtype)) return false;
  if (const Unary* op = std::get_if<Unary>(&loop)) {
    if (*op == Unary::exp || *op == Unary::tanh || *op == Unary::sigmoid) return dtype == f32;
    return *op == Unary::neg || *op == Unary::abs || *op == Unary::square || *op == Unary::sqrt ||
           *op == Unary::relu;
  }
  if (const Binary* op = std::get_if<Binary>(&loop))
    return *op == Binary::add || *op == Binary::sub || *op == Binary::mul || *op == Binary::div ||
           *op == Binary::maximum || *op == Binary::minimum || *op == Binary::tanh_grad ||
           *op == Binary::sigmoid_grad;
  return false;
}

}  // namespace reel
