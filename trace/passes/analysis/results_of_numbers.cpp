#include "reel/trace/passes/analysis/results_of_numbers.h"

#include <cmath>
#include <limits>

#include "reel/core/functions/creation.h"
#include "reel/core/functions/elementwise.h"
#include "reel/core/op/bind.h"
#include "reel/core/op/facts.h"
#include "reel/core/runtime/detect_nan.h"
#include "reel/core/runtime/memory.h"
#include "reel/core/types/mode.h"

namespace reel {
namespace {

/// Ops inside of its lifetime compute at once, and may make NaN.
class AtOnce {
 public:
  AtOnce() : plain_(ThreadMode{}), checks_(nullptr) {}

 private:
  const ModeScope plain_;
  const detail::NanCheckScope checks_;
};

}  // namespace

std::optional<double> result_of_numbers(const OpRecord& record, std::span<const TensorType> in,
                                        std::span<const double> numbers) {
  if (!record.op->pointwise || record.op->has_effect || record.op->kernel_decides_types)
    return std::nullopt;
  const AtOnce scope;
  try {
    Tensors operands;
    for (std::size_t i = 0; i < in.size(); ++i)
      operands.push_back(full({}, numbers[i], in[i].dtype()));
    const Tensor made = reel::bind(*record.op, std::as_const(operands), record.attrs);
    if (made.rank() || !is_float(made.dtype())) return std::nullopt;
    return *cast(made, f64).data<double>();
  } catch (const MemoryError&) {
    throw;                  // a graph must not depend on how much memory was free when it was made
  } catch (const Error&) {  // its attributes ask for other types
    return std::nullopt;
  }
}

bool drops_minus_infinity(const OpRecord& record, const TensorType& operand) {
  if (record.op->neutral != Neutral::minus_infinity || record.input_count != 1) return false;
  constexpr double kNothing = -std::numeric_limits<double>::infinity();
  const AtOnce scope;
  try {
    const Tensor x = full(Dims(static_cast<std::size_t>(operand.rank()), Dim(2)), kNothing, f64);
    for (const bool has_element : {false, true}) {
      if (has_element) *x.data<double>() = 0;
      const Tensor made = reel::bind(*record.op, {x}, record.attrs);
      if (made.type() != x.type()) return false;
      for (std::int64_t i = has_element; i < x.type().numel(); ++i)
        if (const double number = made.data<double>()[i]; number != 0 || std::signbit(number))
          return false;
    }
    return true;
  } catch (const MemoryError&) {
    throw;                  // as above
  } catch (const Error&) {  // its attributes ask for other types
    return false;
  }
}

}  // namespace reel
