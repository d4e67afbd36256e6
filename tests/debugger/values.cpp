// Values at a breakpoint. check_debugger.py stops in each call of stop() and compares the printed
// text of a variable with the comment that follows it: `//= NAME text`, further lines `//| text`.
#include <reel/reel.h>

#include <cstring>
#include <new>
#include <utility>

using namespace reel;

namespace {

// Keeps variables in memory, with optimisation too.
template <class... Values>
[[gnu::noinline]] void stop(const Values&... values) {
  (..., [](const void* at) { asm volatile("" : : "r"(at) : "memory"); }(&values));
}

void tensors() {
  const Tensor scalar_value = scalar(2.5), row = tensor({1., -0.5, 3e10}),
               flags = tensor({true, false});
  const Tensor table = reshape(range(6), {2, 3}), nothing = zeros({0, 3}),
               precise = cast(scalar(1.), f64) / 3.0;
  const Tensor many = range(201), view = table[1];
  const Tensor odd = tensor({0., 1.}) / tensor({0., 0.});
  //= scalar_value f32[] 2.5
  //= row f32[3] [   1.  -0.5 3e+10]
  //= flags boolean[2] [ True False]
  //= table i32[2,3]
  //| [[0 1 2]
  //|  [3 4 5]]
  //= nothing f32[0,3]
  //| []
  //= precise f64[] 0.3333333333333333
  //= many i32[201] [  0   1   2 ... 198 199 200]
  //= view i32[3] [3 4 5]
  //= odd f32[2] [nan inf]
  stop(scalar_value, row, flags, table, nothing, precise, many, view, odd);
}

void named() {
  const Dim batch("batch", 3), time("time", tensor({3, 1, 2}, {batch})), later("later");
  const Dim longer = time + 1, half = ceildiv((time + 1) * 2, 3), plain = 4, none;
  const Dims both{batch, time};
  const TensorType type(f32, both);
  const Tensor padded = cast(expand(range(time), both), f32) * 0.5, &reference = padded;
  const Tensor bare = expand(range(time), Dims{time, batch});
  //= batch batch=3
  //= time time[batch=3], lengths i32[batch=3] [3 1 2]
  //= later later
  //= plain 4
  //= none (empty Dim)
  //= longer time+1[batch=3], lengths i32[batch=3] [4 2 3]
  //= half ceildiv((time+1)*2,3)[batch=3], lengths i32[batch=3] [3 2 2]
  //= both [batch=3,time[batch=3]]
  //= type f32[batch=3,time[batch=3]]
  //= padded f32[batch=3,time[batch=3]]
  //| [[ 0. 0.5  1.]
  //|  [ 0.   -   -]
  //|  [ 0. 0.5   -]]
  //= reference f32[batch=3,time[batch=3]]
  //| [[ 0. 0.5  1.]
  //|  [ 0.   -   -]
  //|  [ 0. 0.5   -]]
  stop(batch, time, later, longer, half, plain, none, both, type, padded, reference, bare);
}

void computed() {
  const Dim batch("batch", 3), time("time", tensor({3, 1, 2}, {batch})), width("width", 2);
  const Dim less = time - batch, area = (time + 1) * width, part = (time + 1) * 6 / (width + 1);
  //= less time-batch[batch=3], lengths i32[batch=3] [0 0 0]
  //= area (time+1)*width[batch=3], lengths i32[batch=3] [8 4 6]
  //= part (time+1)*6/(width+1)[batch=3], lengths i32[batch=3] [8 4 6]
  const Dim even("even", tensor({4, 8, 12}, {batch}));
  const Dim exact = even / Dim(2), rounded = even / 3, shared = even / (width * 2);
  //= exact even/Dim(2)[batch=3], lengths i32[batch=3] [2 4 6]
  //= rounded even/3[batch=3], lengths i32[batch=3] [1 2 4]
  //= shared even/(width*2)[batch=3], lengths i32[batch=3] [1 2 3]
  stop(less, area, part, exact, rounded, shared);
}

void arrays() {
  TensorArray lines(TensorType(f32, {2}), {.size = 3});
  lines = lines.write(1, tensor({1., 2.}));
  TensorArray many(TensorType(i32), {.dynamic_size = true});
  for (int i = 0; i < 40; ++i) many = many.push_back(scalar(i));
  const TensorArray unset;
  //= lines TensorArray: list of f32[2], 3 elements
  //| [0] not written
  //| [1] f32[2] [1. 2.]
  //| [2] not written
  //= many TensorArray: list of i32[], 40 elements
  //| [0] i32[] 0
  //| [1] i32[] 1
  //| [2] i32[] 2
  //| [3] i32[] 3
  //| [4] i32[] 4
  //| [5] i32[] 5
  //| [6] i32[] 6
  //| [7] i32[] 7
  //| [8] i32[] 8
  //| [9] i32[] 9
  //| ...
  //= unset (empty TensorArray)
  stop(lines, many, unset);
}

void bad() {
  Tensor source = tensor({1., 2.});
  const Tensor empty, moved_to = std::move(source);
  Tensor overwritten = tensor({3.});
  alignas(Tensor) unsigned char bytes[sizeof(Tensor)];
  std::memset(bytes, 0x7b, sizeof bytes);
  std::memcpy(static_cast<void*>(&overwritten), bytes, sizeof bytes);
  alignas(64) static unsigned char zeros_in_memory[256] = {};
  Tensor freed;
  const void* const address = zeros_in_memory;
  std::memcpy(static_cast<void*>(&freed), &address, sizeof address);
  TensorType type(f32, {2});
  const TensorType taken = std::move(type);
  //= empty (empty Tensor)
  //= source (empty Tensor)
  //= moved_to f32[2] [1. 2.]
  //~ overwritten \(damaged Tensor: no memory at 0x7b7b7b7b7b7b7b7f; not yet init.*, or .*\)
  //= taken f32[2]
  //= type (empty TensorType)
  //~ freed \(damaged Tensor: 0x[0-9a-f]+ is a tensor that was freed; not yet init.*, or .*\)
  stop(empty, source, moved_to, overwritten, freed, type, taken);
  new (&overwritten) Tensor;  // their destructors must not see the bytes
  new (&freed) Tensor;
}

// A frame has the first line of each argument.
[[gnu::noinline]] void called(const Tensor& table, const Tensor& row) {
  //~ frame #0 .*called \(table=f32\[2,3\] \.\.\., row=f32\[3\] \[0\. 1\. 2\.\]\) .*
  stop(table, row);
}

struct Cell {
  Tensor w;
};

void bodies() {
  const Cell cell{tensor({2., 3.})};
  const auto is_short = [](const Tensor& state) { return sum(state) < 1.0; };
  const auto eager_body = [&](const Tensor& state) {
    const Tensor h = state + cell.w;
    const Cell doubled{h + h};
    //= h f32[2] [2. 3.]
    //= doubled.w f32[2] [4. 6.]
    stop(h, doubled);
    return h;
  };
  while_loop(is_short, eager_body, zeros({2}));
  const auto body = [&](const Tensor& state) {
    const Tensor h = state + cell.w;
    //= h f32[2], a promise: the result of add in the body of while_loop "encoder"
    //= state f32[2], a promise: an argument of the body of while_loop "encoder"
    stop(h, state);
    return h;
  };
  const auto step = jit([&](const Tensor& x) {
    const Tensor total = sum(while_loop(is_short, body, x, {.name = "encoder"}));
    //= total f32[], a promise: the result of sum in jit "jit"
    stop(total);
    return total;
  });
  step(zeros({2}));
  const Graph& graph = step.graph();
  const auto twice = jit([](const Tensor& x) { return x + x; });
  twice(ones({2}));
  const Graph& small = twice.graph();
  //= small jit(%0: f32[2], %1: i64[2]) {
  //|   %2: f32[2] = add(%0, %0)
  //|   return %2
  //| }
  stop(graph, small);
}

}  // namespace

// For programs without debug information: the address is the first argument.
extern "C" [[gnu::noinline]] void stop_at(const Tensor* x) {
  asm volatile("" : : "r"(x) : "memory");
}

int main() {
  tensors();
  named();
  computed();
  arrays();
  bad();
  called(ones({2, 3}), cast(range(3), f32));
  bodies();
  const Tensor x = tensor({7., 8.});
  stop_at(&x);
}
