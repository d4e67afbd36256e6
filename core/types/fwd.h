// core/types/fwd.h — forward declarations of types in core.
#pragma once

#include <cstdint>

#include "reel/core/base/visibility.h"

REEL_API_BEGIN
namespace reel {

class Dim;
class Tensor;
struct IterationBatch;
class TensorType;
class DimEnv;
class Graph;
class GraphBuilder;
class Recorder;
class AxisFactors;
class Vjp;
struct Attrs;
struct Op;
struct KernelArgs;
struct OpCall;
struct TypeArgs;
using ValueId = std::uint32_t;

}  // namespace reel
REEL_API_END
