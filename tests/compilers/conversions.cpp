// Headers that reel.h does not include, if the packages that they need are there.
#include "expect.h"

#if __has_include(<xtensor/xarray.hpp>)
#include <reel/frontend/xtensor.h>
#endif
#if __has_include(<reel/distributed.h>)
#include <reel/distributed.h>
#endif
#if __has_include(<reel/onnx.h>)
#include <reel/onnx.h>
#endif

int main() {
#if __has_include(<xtensor/xarray.hpp>)
  expect_values(reel::tensor(xt::xarray<float>{{1, 2}, {3, 4}}), {1, 2, 3, 4});
#endif
}
