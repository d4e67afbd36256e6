#include "reel/core/ops/pointwise_isa.cpp"
