// onnx/proto.h — the classes of ONNX's protobuf files. They are heavy: only few sources include it.
#pragma once

#ifndef ONNX_NAMESPACE
#define ONNX_NAMESPACE onnx
#endif
#ifndef ONNX_ML
#define ONNX_ML 1
#endif

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wsign-compare"
#include <onnx/onnx_pb.h>
#pragma GCC diagnostic pop
