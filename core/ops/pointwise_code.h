// core/ops/pointwise_code.h — PointwiseCode, machine code for a chain of element-wise ops.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "reel/core/ops/element_loop.h"

namespace reel {

/// Element-wise ops on floats of one type, of which one hands to the next in registers.
///
/// Values are numbered: first the operands, then what each op makes.
struct Chain {
  /// None: what it takes is what it makes, to be stored somewhere else.
  using Code = std::optional<std::variant<Unary, Binary>>;
  struct Step {
    Code op;
    int in[2];
  };

  std::int64_t item = 4;      ///< bytes of an element: 4 for f32, 8 for f64
  std::vector<bool> repeats;  ///< by operand: one element a row, which all columns share
  std::vector<Step> steps;
  std::vector<int> results;  ///< values that are stored

  std::size_t places() const { return repeats.size() + results.size(); }
  /// Appends a step's value; its number.
  int append(Code op, int a, int b);
  /// So many values are in registers at once. Loads are made when they are first read, stores when
  /// all has been computed.
  int registers() const;
  /// Equal for chains that have one code.
  std::string key() const;
};

/// More places and registers than this no chain has.
inline constexpr int kMostChainPlaces = 32, kChainRegisters = 29;

/// Whether an op of this loop, on floats, may be a step of a chain.
bool has_code(const ElementLoop& loop);

/// What a run of a chain walks over: one row at least. It changes `at`.
struct ChainRun {
  std::int64_t rows, columns;
  char* at[kMostChainPlaces];           ///< operands, then results
  std::int64_t step[kMostChainPlaces];  ///< bytes from one row to the next; of one row not read
};

/// The bits are those of the processor's loops (PointwiseTable), called for each step. Results may
/// lie over operands that lie alike. May be run by several threads at once.
class PointwiseCode {
 public:
  virtual ~PointwiseCode() = default;
  void run(ChainRun& on) const { entry_(&on); }

 protected:
  void (*entry_)(ChainRun*) = nullptr;
};

/// Code for a chain, which is made once for all who have a chain like it. Null where there is none:
/// on processors without AVX-512, and where the system gives no memory for code.
std::shared_ptr<const PointwiseCode> code_of(const Chain& chain);

}  // namespace reel
