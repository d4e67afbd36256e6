// core/functions/others.h — print, and identities.
#pragma once

#include <string>

#include "reel/core/tensor.h"

namespace reel {

/// x, printed on standard output when it is computed: every time, and in program order. By the
/// dataflow executor it is when data reaches it, and only if something reads what it gives:
/// x = print(x). In a scan whose entries end one by one it prints the iteration, and `-` for
/// entries that have ended.
Tensor print(const Tensor& x, const std::string& label = "");
/// x as it is, as a value of its own.
Tensor identity(const Tensor& x);
/// x as it is, under a name by which a policy may choose what a loop saves for its gradient.
Tensor checkpoint_name(const Tensor& x, const std::string& name);
/// x as it is, without gradient.
Tensor stop_gradient(const Tensor& x);

}  // namespace reel
