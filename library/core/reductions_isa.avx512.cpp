#include "reel/core/ops/reductions_isa.cpp"
