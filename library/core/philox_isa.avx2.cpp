#include "reel/core/ops/philox_isa.cpp"
