// core/ops/elementwise/pointwise_code.h — PointwiseCode, machine code for a chain of element-wise
// ops.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "reel/core/ops/elementwise/element_loop.h"

namespace reel {

/// Element-wise ops on floats of one type, which pass values in registers.
///
/// Values are numbered: first the operands, then the results of the steps.
struct Chain {
  /// nullopt: the step copies its operand, which is then stored at another place.
  using Code = std::optional<std::variant<Unary, Binary>>;
  struct Step {
    Code op;
    int in[2];
  };

  std::int64_t item = 4;      ///< bytes of an element: 4 for f32, 8 for f64
  std::vector<bool> repeats;  ///< by operand: one element a row, for all columns
  std::vector<Step> steps;
  std::vector<int> results;  ///< values that are stored

  std::size_t places() const { return repeats.size() + results.size(); }
  /// Appends a step and returns the number of its value.
  int append(Code op, int a, int b);
  /// Returns the maximum number of values in registers. Operands are loaded at their first use,
  /// results are stored after all steps.
  int registers() const;
  /// Returns a key that is equal for chains with the same code.
  std::string key() const;
};

/// Limit of a chain's places.
inline constexpr int kMaxChainPlaces = 32;
/// Returns the limit of a chain's registers on this processor. Thread-safe.
int chain_registers();

/// True if an op of this loop may be a step of a chain: on f32 or f64, or on f32 only.
bool has_code(const ElementLoop& loop, DType dtype);

/// Arguments of a run. Requires at least one row. The run changes `at`.
struct ChainRun {
  std::int64_t rows, columns;
  char* at[kMaxChainPlaces];  ///< operands, then results
  std::int64_t
      step[kMaxChainPlaces];  ///< bytes from one row to the next; not read for a single row
};

/// Machine code of a chain. Results have the bits of the vector loops (PointwiseTable), called for
/// each step. A result may share its memory with an operand of the same layout. Thread-safe.
class PointwiseCode {
 public:
  virtual ~PointwiseCode() = default;
  void run(ChainRun& on) const { entry_(&on); }
  /// Returns the bytes of memory that the code takes.
  std::size_t bytes() const { return bytes_; }

 protected:
  void (*entry_)(ChainRun*) = nullptr;
  std::size_t bytes_ = 0;
};

/// Returns the code of a chain, shared by all equal chains. Returns null on processors without AVX2
/// and FMA, and if the system provides no executable memory. Requires at most chain_registers().
/// Thread-safe.
std::shared_ptr<const PointwiseCode> code_of(const Chain& chain);

}  // namespace reel
