#include "reel/core/ops/products_isa.cpp"
