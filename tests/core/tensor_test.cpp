// Tensor: its members for a value and for a promise in a trace, and how both print.
#include "reel/core/graph/graph_builder.h"
#include "reel/tests/check.h"

namespace reel {
namespace {

/// Calls fn with a promise with these dims, inside a trace.
template <class Fn>
void while_tracing(const Dims& dims, Fn&& fn) {
  GraphBuilder builder("test");
  ModeScope scope(builder.scope());
  fn(builder.add_input(TensorType(f32, dims)));
}

TEST(TensorTest, FindsDimsByNameAndPosition) {
  const Dim batch("batch", 2), time("time", 3);
  const Tensor x = zeros({batch, time});
  EXPECT_EQ(x.dim("time"), time);
  EXPECT_EQ(x.dim(0), batch);
  EXPECT_EQ(x.dim(-1), time);
  EXPECT_EQ(message_of<ShapeError>([&] { x.dim("width"); }),
            "dim(\"width\"): f32[batch=2,time=3] has no dim of that name");
  const Tensor square = zeros({batch, Dim("batch", 2)});
  EXPECT_EQ(
      message_of<ShapeError>([&] { square.dim("batch"); }),
      "dim(\"batch\"): f32[batch=2,batch=2] has two dims of that name; take one by its position");
  EXPECT_EQ(message_of<IndexError>([&] { x.dim(2); }), "dim(2): f32[batch=2,time=3] has 2 axes");
}

TEST(TensorTest, HandsOutItsElements) {
  const Tensor x = tensor({{1., 2.}, {3., 4.}});
  EXPECT_EQ(x.shape(), (std::vector<std::int64_t>{2, 2}));
  EXPECT_EQ(x.numel(), 4);
  EXPECT_EQ(x.to_vector<float>(), (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(scalar(7).item<int>(), 7);
  EXPECT_TRUE(scalar(true).item<bool>());
  EXPECT_EQ(tensor({{{5}}}, {}, i64).item<std::int64_t>(), 5);
}

TEST(TensorTest, RefusesElementsOfAnotherTypeOrCount) {
  const Tensor x = tensor({1., 2.});
  EXPECT_EQ(message_of<DTypeError>([&] { x.to_vector<double>(); }),
            "to_vector: asked for elements of type f64 of a tensor of type f32[2]; cast it to f64, "
            "or ask for f32");
  EXPECT_EQ(message_of<ShapeError>([&] { x.item<float>(); }),
            "item: a tensor of type f32[2] has 2 elements, not one");
  EXPECT_EQ(message_of<ArgumentError>([] { Tensor().type(); }),
            "an empty Tensor has no type and no value; assign a tensor to it first, and do not use "
            "one that was moved");
}

TEST(TensorTest, HasNoMoreElementsThanCanBeCounted) {
  const std::int64_t many = std::int64_t{1} << 40;
  EXPECT_EQ(message_of<ShapeError>([&] {
              zeros({many, many});
            }),
            "zeros: f32[1099511627776,1099511627776]: too many elements; their bytes are more than "
            "64 bits can count");
  EXPECT_THROW(TensorType(f64, {many, many >> 20}), ShapeError);  // 2^60 elements, 2^63 bytes
  EXPECT_EQ(TensorType(boolean, {many, many >> 20}).numel(), std::int64_t{1} << 60);
  EXPECT_EQ(zeros({many, 0, many >> 20}).numel(), 0);
  // Steps of axes multiply sizes of empty tensors too.
  EXPECT_THROW(zeros({many, 0, many}), ShapeError);
  EXPECT_EQ(message_of<ShapeError>([&] {
              zeros({0, many, many});
            }),
            "zeros: f32[0,1099511627776,1099511627776]: the product of its sizes other than 0, in "
            "bytes, is more than 64 bits can count");
}

TEST(TensorTest, APromiseHasATypeButNoValue) {
  while_tracing({2, 3}, [](const Tensor& x) {
    EXPECT_TRUE(x.is_traced());
    EXPECT_EQ(x.numel(), 6);
    EXPECT_EQ(str(x), "f32[2,3]");
    EXPECT_EQ(message_of<TraceError>([&] { x.item<float>(); }),
              "item: the value of a tensor of type f32[2,3] is not known while tracing, so it "
              "cannot steer C++; use cond, "
              "while_loop, scan or where, or return it from the traced function");
  });
}

TEST(TensorTest, APromiseMayNotKnowItsSizes) {
  GraphBuilder builder("test");
  ModeScope scope(builder.scope());
  const Tensor x = builder.add_input(TensorType(f32, {Dim::unknown(), 3}));
  EXPECT_EQ(str(x), "f32[?,3]");
  EXPECT_EQ(message_of<TraceError>([&] { x.shape(); }),
            "shape: the size of dim ? of f32[?,3] is not known while tracing; use dim.lengths(), "
            "or range(dim)");
  EXPECT_EQ(message_of<TraceError>([&] { x.numel(); }),
            "numel: not all sizes of f32[?,3] are known while tracing; use dim.lengths()");
}

}  // namespace
}  // namespace reel
