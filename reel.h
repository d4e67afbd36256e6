// reel.h — all public headers of Reel.
#pragma once

#include "reel/core/errors.h"
#include "reel/core/graph.h"
#include "reel/core/ops.h"
#include "reel/core/partial_shape.h"
#include "reel/core/tensor.h"
#include "reel/frontend/adam.h"
#include "reel/frontend/clip.h"
#include "reel/frontend/grad.h"
#include "reel/frontend/jit.h"
#include "reel/frontend/losses.h"
#include "reel/frontend/safetensors.h"
#include "reel/frontend/scan.h"
#include "reel/frontend/tape.h"
#include "reel/frontend/tensor_array.h"
#include "reel/frontend/tree.h"
#include "reel/frontend/while_loop.h"
