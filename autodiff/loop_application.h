// autodiff/loop_application.h — LoopApplication, a loop that is differentiated, and the part of its
// body that the gradient needs.
#pragma once

#include <optional>
#include <vector>

#include "reel/autodiff/reverse_graph.h"
#include "reel/core/op/vjp.h"
#include "reel/core/ops/loop/loop.h"

namespace reel {

/// One application of a loop while its vjp is built. Borrows `vjp`.
struct LoopApplication {
  explicit LoopApplication(Vjp& vjp);

  Vjp& at;
  const LoopAttrs& attrs;
  const Graph& body;
  Tensors inputs;                         ///< of the op
  std::vector<TensorType> types;          ///< of the inputs
  std::vector<std::uint8_t> is_active;    ///< by carry: its cotangent is needed and can be non-zero
  std::vector<std::uint8_t> is_changing;  ///< by carry: iterations change its dims
  DimEnv env;                             ///< dims of the body as the enclosing graph names them
};

/// Returns the index of the loop's operand that an input of the body reads. Requires an input
/// other than the first, which is the iteration's position.
std::size_t operand_of_input(const LoopAttrs& attrs, std::size_t body_input);

/// Returns true if the loop has a memory policy that chooses residuals.
bool has_policy(const CheckpointPlan& policy);
/// Returns the parts of the body to reverse, and the values available to the reversed body under a
/// policy.
ReversalSpec reversal_spec(const LoopApplication& loop, const CheckpointPlan& policy);

/// Returns the Dim that the loop runs along; nullopt if there is none.
std::optional<Dim> iterated_dim(const LoopApplication& loop);

}  // namespace reel
