// onnx.h — includes the public header of reel::onnx: models in the format of ONNX.
#pragma once

#include "reel/onnx/describe.h"
#include "reel/onnx/model.h"
#include "reel/onnx/save_onnx.h"
