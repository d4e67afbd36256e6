// core/ops.h — the functions on tensors that users call. Each works in eager mode, in a trace and
// on a tape.
//
// Shapes: "x: any" means any dims. If operands have named dims, these are matched by identity.
// Missing ones are broadcast if one operand has all dims of the result. Plain dims follow NumPy.
// Errors: ShapeError if dims do not fit, DTypeError if dtypes do not fit. There are no implicit
// conversions between tensors.
#pragma once

#include "reel/core/functions/creation.h"
#include "reel/core/functions/dims.h"
#include "reel/core/functions/elementwise.h"
#include "reel/core/functions/identity.h"
#include "reel/core/functions/indices.h"
#include "reel/core/functions/operands.h"
#include "reel/core/functions/pack.h"
#include "reel/core/functions/products.h"
#include "reel/core/functions/random.h"
#include "reel/core/functions/reductions.h"
#include "reel/core/functions/shape.h"
