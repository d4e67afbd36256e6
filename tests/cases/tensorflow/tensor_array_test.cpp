// TensorArray as TensorFlow's users know it: the table of TensorFlow's tests, in every mode.
#include "reel/tests/gradients.h"
#include "reel/tests/modes.h"

namespace reel {
namespace {

using TensorFlowTensorArray = InEveryMode;
REEL_IN_EVERY_MODE(TensorFlowTensorArray);

struct Writing {
  Tensor i;
  TensorArray array;
};

/// Returns the gradient of the sum of f's gradient.
template <class F>
auto second(F f) {
  return grad([f](Tensor x) { return sum(grad(f)(x)); });
}

TEST_P(TensorFlowTensorArray, T01_ElementsOfOtherSizesAreReadBack) {
  const auto f = run([](Tensor a, Tensor b) {
    const TensorArray array = TensorArray({f32, {unknown, unknown}}, {.size = 3});
    const TensorArray all = array.write(0, a).write(1, b).write(2, reshape(scalar(-3.0), {1, 1}));
    return std::tuple{all[0], all[1], all[2]};
  });
  const auto [a, b, c] = f(tensor({{4., 5.}}), tensor({{1.}}));
  EXPECT_EQ(str(a.type()), "f32[1,2]");
  expect_values(a, {4, 5});
  EXPECT_EQ(str(b.type()), "f32[1,1]");
  expect_values(b, {1});
  expect_values(c, {-3});
}

TEST_P(TensorFlowTensorArray, T02_StackOfEveryDType) {
  const auto f = run([](Tensor a, Tensor b, Tensor c) {
    const TensorArray array(TensorType(a.dtype(), {1, 2}), {.size = 3});
    return array.write(0, a).write(1, b).write(2, c).stack();
  });
  for (const DType dtype : {f32, f64, i32, i64, boolean}) {
    const auto of = [&](double first) { return cast(tensor({{first, first + 1}}), dtype); };
    const Tensor all = f(of(4), of(6), of(8));
    EXPECT_EQ(str(all.type()), str(TensorType(dtype, {3, 1, 2})));
    if (dtype == boolean)
      expect_values(all, {1, 1, 1, 1, 1, 1});
    else
      expect_values(all, {4, 5, 6, 7, 8, 9});
  }
}

TEST_P(TensorFlowTensorArray, T03_StackOfElementsWithoutEntries) {
  const auto f = run([](Tensor x) {
    return TensorArray({f32, {0, 1}}, {.size = 3}).write(0, x).write(1, x).write(2, x).stack();
  });
  EXPECT_EQ(str(f(zeros({0, 1})).type()), "f32[3,0,1]");
}

TEST_P(TensorFlowTensorArray, T04_ConcatOfOtherLengths) {
  const auto f = run([](Tensor a, Tensor b, Tensor c) {
    const TensorArray array({f32, {unknown, 2}}, {.size = 3});
    return array.write(0, a).write(1, b).write(2, c).concat();
  });
  const Tensor all = f(tensor({{4., 5.}, {104., 105.}, {204., 205.}}),
                       tensor({{6., 7.}, {106., 107.}}), tensor({{8., 9.}}));
  EXPECT_EQ(str(all.type()), "f32[6,2]");
  expect_values(all, {4, 5, 104, 105, 204, 205, 6, 7, 106, 107, 8, 9});
}

TEST_P(TensorFlowTensorArray, T06_UnwrittenElementsAreZeros) {
  const auto f = run([](Tensor x) {
    const TensorArray array = TensorArray({f32, {1, 2}}, {.size = 3}).write(1, x);
    return std::tuple{array[0], array.stack(), array.concat(), array.gather(tensor({1, 2}))};
  });
  const auto [first, stacked, joined, some] = f(tensor({{4., 5.}}));
  expect_values(first, {0, 0});
  EXPECT_EQ(str(stacked.type()), "f32[3,1,2]");
  expect_values(stacked, {0, 0, 4, 5, 0, 0});
  EXPECT_EQ(str(joined.type()), "f32[3,2]");
  expect_values(joined, {0, 0, 4, 5, 0, 0});
  expect_values(some, {4, 5, 0, 0});
  const Dim batch("batch", 2), slot("slot", 3);
  const auto named = run([&](Tensor x) {
    return TensorArray({f32, {batch}}, {.size = 3}).write(1, x).write(0, x * 2.0).stack(slot);
  });
  expect_values(named(tensor({1., 2.}, {batch})), {2, 4, 1, 2, 0, 0});
}

TEST_P(TensorFlowTensorArray, T07_UnstackedAndSplitElementsAreRead) {
  const auto unstacked = run([](Tensor x) {
    const TensorArray array = TensorArray::unstack(x, 0);
    return std::tuple{array[0], array[1], array[2], array.size()};
  });
  const auto [a, b, c, size] = unstacked(tensor({{1., 2.}, {3., 4.}, {5., 6.}}));
  expect_values(a, {1, 2});
  expect_values(b, {3, 4});
  expect_values(c, {5, 6});
  expect_values(size, {3});
  EXPECT_EQ(str(std::get<1>(unstacked(zeros({3, 0}))).type()), "f32[0]");

  const auto split = run([](Tensor x, Tensor lengths) {
    const TensorArray array = TensorArray::split(x, lengths);
    return std::tuple{array[0], array[1], array[2], array.size()};
  });
  const auto [p, q, r, array_size] =
      split(tensor({{1., 101.}, {2., 102.}, {3., 103.}}), tensor({2, 0, 1}));
  EXPECT_EQ(str(p.type()), "f32[2,2]");
  expect_values(p, {1, 101, 2, 102});
  EXPECT_EQ(str(q.type()), "f32[0,2]");
  EXPECT_EQ(str(r.type()), "f32[1,2]");
  expect_values(r, {3, 103});
  expect_values(array_size, {3});
}

TEST_P(TensorFlowTensorArray, T08_WrongIndicesAndDTypes) {
  const auto write = run([](Tensor index, Tensor x) {
    return TensorArray({f32, {unknown}}, {.size = 3}).write(index, x).stack();
  });
  const auto read = run([](Tensor index) {
    return TensorArray({f32, {}}, {.size = 3}).read(index);
  });
  EXPECT_EQ(message_of<IndexError>([&] { write(scalar(3), ones({2})); }),
            "TensorArray write: index 3 is out of range for 3 elements; an array made with "
            ".dynamic_size = true grows");
  EXPECT_EQ(message_of<IndexError>([&] { write(scalar(-1), ones({2})); }),
            "TensorArray write: index -1 is negative; write counts positions from the front, and "
            "the array has 3 elements");
  EXPECT_EQ(message_of<IndexError>([&] { write(scalar(std::int64_t{1} << 40, i64), ones({2})); }),
            "TensorArray write: index 1099511627776 is too large; an array has at most 2147483647 "
            "elements");
  EXPECT_EQ(message_of<DTypeError>([&] { write(scalar(0), ones({2}, i32)); }),
            "TensorArray write: an element of type i32[2] does not fit an array of f32[?]: dtypes "
            "differ; cast it to f32");
  for (const int index : {-4, 3})
    EXPECT_EQ(message_of<IndexError>([&] { read(scalar(index)); }),
              str("TensorArray read: index ", index, " is out of range for 3 elements"));
}

TEST_P(TensorFlowTensorArray, T09_ASecondWriteReplaces) {
  const auto f = [](Tensor x) {
    return TensorArray({f32, {}}, {.size = 3}).write(2, x).write(2, x * x)[2];
  };
  expect_values(run(f)(scalar(3.0)), {9});
  expect_values(run(grad(f))(scalar(3.0)), {6});
  expect_values(run(second(f))(scalar(3.0)), {2});
}

TEST_P(TensorFlowTensorArray, T10_ReadsAreRepeatable) {
  const auto f = run([](Tensor x) {
    const TensorArray array = TensorArray({f32, {2}}, {.size = 3}).write(1, x);
    return array[1] + array[1];
  });
  expect_values(f(tensor({1., -1.})), {2, -2});
}

TEST_P(TensorFlowTensorArray, T11_ConcatAndSplitRefuseSizesThatDoNotFit) {
  const auto concat = run([](Tensor x, Tensor y) {
    const TensorArray array(TensorType(f32, Dims(x.rank(), unknown)));
    return array.push_back(x).push_back(y).concat();
  });
  EXPECT_EQ(message_of<ShapeError>([&] { concat(scalar(1.0), scalar(2.0)); }),
            "TensorArray concat: elements are f32[], scalars; they are joined along their first "
            "axis");
  EXPECT_EQ(message_of<ShapeError>([&] {
              concat(ones({2, 3}), ones({2, 4}));
            }),
            "TensorArray concat: element 1 is f32[2,4], others are f32[?,3]; only the first size "
            "may differ");
  EXPECT_EQ(message_of<ShapeError>([&] {
              concat(ones({2, 3}), ones({2}));
            }),
            "TensorArray push_back: an element of type f32[2] does not fit an array of f32[?,?]: "
            "dims differ; give every element the dims of the array's, in which sizes that "
            "differ are unknown");
  const auto split =
      run([](Tensor x, Tensor lengths) { return TensorArray::split(x, lengths)[0]; });
  EXPECT_EQ(message_of<ShapeError>([&] { split(ones({3}), scalar(1)); }),
            "TensorArray split: lengths must be a vector, got i32[]");
  EXPECT_EQ(message_of<DTypeError>([&] { split(ones({3}), ones({3})); }),
            "TensorArray split: lengths must be integers, got f32[3]");
  EXPECT_EQ(message_of<ShapeError>([&] { split(ones({3}), tensor({1})); }),
            "TensorArray split: lengths add up to 1, but f32[3] has 3 along its first axis");
  EXPECT_EQ(message_of<ShapeError>([&] {
              split(ones({3}), tensor({2, 2}));
            }),
            "TensorArray split: lengths add up to 4, but f32[3] has 3 along its first axis");
  EXPECT_EQ(message_of<ArgumentError>([&] {
              split(ones({3}), tensor({4, -1}));
            }),
            "TensorArray split: length 1 is -1; lengths must not be negative");
  EXPECT_EQ(message_of<ShapeError>([&] { split(scalar(1.0), tensor({1})); }),
            "TensorArray split: f32[] has no axis to take apart");
}

TEST_P(TensorFlowTensorArray, T14_CotangentsOfReadsAddUp) {
  // Element 0 is read twice, with the cotangents [2, 3] and [-1.5, 1.5]; element 1 with [4, 5].
  const auto f = [](Tensor x) {
    const TensorArray array = TensorArray::unstack(x, 0);
    return sum(array[0] * tensor({2., 3.})) + sum(array[0] * tensor({-1.5, 1.5})) +
           sum(array[1] * tensor({4., 5.}));
  };
  const Tensor x = tensor({{1., -1.}, {10., -10.}});
  expect_values(run(grad(f))(x), {0.5, 4.5, 4, 5});
  const auto squares = [](Tensor x) {
    const TensorArray array = TensorArray::unstack(x, 0);
    return sum(array[0] * array[0] * array[0]) + sum(array[0] * array[1]);
  };
  expect_values(run(grad(squares))(x), {13, -7, 1, -1});
  expect_values(run(second(squares))(x), {7, -5, 1, 1});
}

TEST_P(TensorFlowTensorArray, T15_RoundTripsAreIdentities) {
  const Tensor weights = tensor({{1., 2.}, {3., 4.}, {5., 6.}});
  const auto split = [=](Tensor x) {
    return sum(TensorArray::split(x, tensor({2, 0, 1})).concat() * weights);
  };
  const auto unstacked = [=](Tensor x) {
    return sum(TensorArray::unstack(x, 0).stack() * weights);
  };
  const auto scattered = [=](Tensor x) {
    const Tensor places = tensor({2, 0, 1});
    const TensorArray array({f32, {2}}, {.size = 3});
    return sum(array.scatter(places, x).gather(places) * weights);
  };
  const Tensor x = tensor({{7., 8.}, {9., 10.}, {11., 12.}});
  expect_values(run(grad(split))(x), {1, 2, 3, 4, 5, 6});
  expect_values(run(grad(unstacked))(x), {1, 2, 3, 4, 5, 6});
  expect_values(run(grad(scattered))(x), {1, 2, 3, 4, 5, 6});
}

TEST_P(TensorFlowTensorArray, T16_UnreadElementsHaveZeroGradients) {
  const auto read = [](Tensor x) { return TensorArray::unstack(x, 0)[0]; };
  expect_values(run(grad(read))(tensor({1., 2.})), {1, 0});
  const auto written = [](std::pair<Tensor, Tensor> ab) {
    const TensorArray array({f32, {}}, {.size = 2});
    return array.write(0, ab.first).write(1, ab.second)[0];
  };
  const auto [a, b] = run(grad(written))(std::pair{scalar(1.0), scalar(2.0)});
  expect_values(a, {1});
  expect_values(b, {0});
  const auto square_of_second = [](Tensor x) {
    return sum(square(TensorArray::split(x, tensor({1, 2}))[1]));
  };
  expect_values(run(grad(square_of_second))(tensor({1., 2., 3.})), {0, 4, 6});
  expect_values(run(second(square_of_second))(tensor({1., 2., 3.})), {0, 2, 2});
}

TEST_P(TensorFlowTensorArray, T19_ElementTypeIsKnownBehindALoop) {
  std::string seen;
  const auto f = run([&](Tensor n) {
    const TensorArray all =
        while_loop([&](const Writing& s) { return s.i < n; },
                   [](const Writing& s) {
                     return Writing{s.i + 1, s.array.write(s.i, reshape(cast(s.i, f32), {1, 1}))};
                   },
                   Writing{scalar(0), TensorArray({f32, {1, 1}}, {.size = 10})})
            .array;
    seen = str(all.element_type());
    return std::tuple{all.stack(), all.size()};
  });
  const auto [stacked, size] = f(scalar(10));
  EXPECT_EQ(seen, "f32[1,1]");
  EXPECT_EQ(str(stacked.type()), "f32[10,1,1]");
  expect_values(stacked, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
  expect_values(size, {10});
}

TEST_P(TensorFlowTensorArray, T20_GradientsTakenTogetherDoNotCountTwice) {
  const Tensor g = tensor({{1., 2., 3.}, {4., 5., 6.}});
  const auto f = [=](std::pair<Tensor, Tensor> ab) {
    const TensorArray array({f32, {2, 3}}, {.size = 2});
    const TensorArray both = array.write(0, ab.first).write(1, ab.second);
    return sum((both[0] + both[1]) * g);
  };
  const Tensor a = ones({2, 3}), b = zeros({2, 3});
  const auto [da, db] = run(grad(f))(std::pair{a, b});
  expect_values(da, {1, 2, 3, 4, 5, 6});
  expect_values(db, {1, 2, 3, 4, 5, 6});
  expect_values(run(grad([&](Tensor a) { return f({a, b}); }))(a), {1, 2, 3, 4, 5, 6});
  expect_values(run(grad([&](Tensor b) { return f({a, b}); }))(b), {1, 2, 3, 4, 5, 6});
}

TEST_P(TensorFlowTensorArray, T21_WritesGoBeyondUnstackedAndSplitElements) {
  const auto unstacked = [](Tensor x) {
    const TensorArray array({f32, {}}, {.size = 3, .dynamic_size = true});
    return array.scatter(range(3), x).write(3, scalar(4.0)).stack();
  };
  expect_values(run(unstacked)(tensor({1., 2., 3.})), {1, 2, 3, 4});
  expect_values(run(grad([=](Tensor x) { return sum(unstacked(x)); }))(tensor({1., 2., 3.})),
                {1, 1, 1});
  const auto split = [](Tensor x) {
    return TensorArray::split(x, tensor({1, 1, 1})).push_back(tensor({4.})).concat();
  };
  expect_values(run(split)(tensor({1., 2., 3.})), {1, 2, 3, 4});
  expect_values(run(grad([=](Tensor x) { return sum(split(x)); }))(tensor({1., 2., 3.})),
                {1, 1, 1});
}

TEST_P(TensorFlowTensorArray, T23_ScatterLeavesTheOthersAlone) {
  const auto f = run([](Tensor one, Tensor two) {
    const TensorArray empty({f32, {}}, {.size = 5});
    const TensorArray a = empty.scatter(tensor({3, 4}), one);
    const TensorArray b = a.scatter(tensor({1}), tensor({1.}));
    const TensorArray c = b.scatter(tensor({0, 2}), two);
    return std::tuple{a.stack(), b.stack(), c.stack()};
  });
  const auto [a, b, c] = f(ones({2}), tensor({5., 6.}));
  expect_values(a, {0, 0, 0, 1, 1});
  expect_values(b, {0, 1, 0, 1, 1});
  expect_values(c, {5, 1, 6, 1, 1});
}

TEST_P(TensorFlowTensorArray, T24_GradientOfGatherIsInItsRows) {
  const auto f = [](Tensor x) {
    return sum(square(TensorArray::unstack(x, 0).gather(tensor({1, 8, 1}))));
  };
  const Tensor x = reshape(cast(range(20), f32), {10, 2});
  expect_values(run(f)(x), {2 * (4 + 9) + 16 * 16 + 17 * 17});
  std::vector<double> first(20), other(20);
  first[2] = 2 * 2 * 2, first[3] = 2 * 2 * 3, first[16] = 2 * 16, first[17] = 2 * 17;
  other[2] = other[3] = 4, other[16] = other[17] = 2;
  expect_values(run(grad(f))(x), first);
  expect_values(run(second(f))(x), other);
}

TEST_P(TensorFlowTensorArray, T25_StackAndConcatOfNoElements) {
  const auto f = run([](TensorArray array) { return std::tuple{array.stack(), array.concat()}; });
  const auto [stacked, joined] = f(TensorArray({f32, {3, 5}}));
  EXPECT_EQ(str(stacked.type()), "f32[0,3,5]");
  EXPECT_EQ(str(joined.type()), "f32[0,5]");
  const TensorArray open({f32, {unknown, 5}});
  EXPECT_EQ(message_of<ShapeError>([&] { run([](TensorArray a) { return a.stack(); })(open); }),
            "TensorArray stack: there are no elements, and their shape, f32[?,5], is not known");
  expect_values(run([](TensorArray a) { return a.concat(); })(open), {});
  const TensorArray unsized({f32, {3, unknown}});
  EXPECT_EQ(message_of<ShapeError>([&] { run([](TensorArray a) { return a.concat(); })(unsized); }),
            "TensorArray concat: there are no elements, and their shape, f32[3,?], is not known");
}

TEST_P(TensorFlowTensorArray, T26_ShapesThatAreKnownInPart) {
  const auto f = run([](Tensor x) {
    return TensorArray({f32, {unknown, 4, 3}}, {.size = 3}).write(0, x)[0];
  });
  EXPECT_EQ(str(f(ones({5, 4, 3})).type()), "f32[5,4,3]");
  EXPECT_EQ(str(f(ones({1, 4, 3})).type()), "f32[1,4,3]");
  EXPECT_EQ(message_of<ShapeError>([&] {
              f(ones({5, 4, 2}));
            }),
            "TensorArray write: an element of type f32[5,4,2] does not fit an array of f32[?,4,3]: "
            "dims differ; give every element the dims of the array's, in which sizes that "
            "differ are unknown");
  std::string seen;
  const auto element = run([&](Tensor x) {
    const TensorArray array = TensorArray::unstack(x, 0);
    seen = str(array.element_type());
    return array[0];
  });
  element(ones({10, 2, 3}));
  EXPECT_EQ(seen, "f32[2,3]");
}

TEST_P(TensorFlowTensorArray, T27_GrowsFromNothingInALoop) {
  const auto f = [](Tensor scale) {
    return while_loop([](const Writing& s) { return s.i < 5; },
                      [&](const Writing& s) {
                        const Tensor x = cast(s.i * s.i + 1, f32) * scale;
                        return Writing{s.i + 1, s.array.write(s.i, x)};
                      },
                      Writing{scalar(0), TensorArray({f32, {}}, {.dynamic_size = true})})
        .array.stack();
  };
  expect_values(run(f)(scalar(1.0)), {1, 2, 5, 10, 17});
  const auto loss = [=](Tensor scale) { return sum(square(f(scale))); };
  expect_values(run(grad(loss))(scalar(1.0)), {2 * (1 + 4 + 25 + 100 + 289)});
  expect_values(run(second(loss))(scalar(1.0)), {2 * (1 + 4 + 25 + 100 + 289)});
}

TEST_P(TensorFlowTensorArray, T29_SizeAndDTypeStay) {
  const auto f = run([](TensorArray a) { return std::tuple{a, a.size()}; });
  for (const int size : {2, 4}) {
    const auto [same, count] = f(TensorArray({i64, {3}}, {.size = size}));
    EXPECT_EQ(str(same.element_type()), "i64[3]");
    expect_values(count, {double(size)});
  }
}

TEST_P(TensorFlowTensorArray, S08_SecondDerivativeThroughAWrite) {
  const auto f = [](Tensor x) {
    return square(TensorArray({f32, {}}, {.size = 1}).write(0, x)[0]);
  };
  expect_values(run(grad(grad(f)))(scalar(4.0)), {2});
}

// The array itself knows if it may grow: a jitted function takes both kinds.
TEST_P(TensorFlowTensorArray, DynamicSizeTravelsWithTheArray) {
  const auto f = run([](TensorArray array) { return array.write(2, scalar(1.0)).stack(); });
  expect_values(f(TensorArray({f32, {}}, {.dynamic_size = true})), {0, 0, 1});
  EXPECT_EQ(message_of<IndexError>([&] {
              f(TensorArray({f32, {}}));
            }),
            "TensorArray write: index 2 is out of range for 0 elements; an array made with "
            ".dynamic_size = true grows");
  const auto g = run([](TensorArray array) {
    return array.scatter(tensor({3, 1}), tensor({1., 2.})).stack();
  });
  expect_values(g(TensorArray({f32, {}}, {.dynamic_size = true})), {0, 2, 0, 1});
  EXPECT_EQ(message_of<IndexError>([&] {
              g(TensorArray({f32, {}}, {.size = 3}));
            }),
            "TensorArray write: index 3 is out of range for 3 elements; an array made with "
            ".dynamic_size = true grows");
}

TEST_P(TensorFlowTensorArray, TheLastOfEqualIndicesCounts) {
  const auto f = [](Tensor x) {
    const TensorArray array = TensorArray({f32, {}}, {.size = 2}).write(0, sum(x));
    return sum(square(array.scatter(tensor({0, 1, 0}), x * x).stack()));
  };
  const Tensor x = tensor({1., 2., 3.});
  expect_values(run(f)(x), {81 + 16});
  expect_values(run(grad(f))(x), {0, 4 * 8, 4 * 27});
  expect_values(run(second(f))(x), {0, 12 * 4, 12 * 9});
}

TEST_P(TensorFlowTensorArray, GatherTakesNamedDimsAndNegativeIndices) {
  const Dim batch("batch", 2), beam("beam", 3);
  const auto f =
      run([&](Tensor x, Tensor indices) { return TensorArray::unstack(x, 0).gather(indices); });
  const Tensor x = tensor({{1., 2.}, {3., 4.}}, {Dim("time", 2), batch});
  const Tensor all = f(x, tensor({-1, 0, 1}, {beam}));
  EXPECT_EQ(str(all.type()), "f32[beam=3,batch=2]");
  expect_values(all, {3, 4, 1, 2, 3, 4});
  EXPECT_EQ(message_of<ShapeError>([&] { f(x, tensor({1})); }),
            "TensorArray gather: indices i32[1] and elements f32[batch=2] mix named and plain "
            "dims; name the dim of the indices as well");
  EXPECT_EQ(message_of<IndexError>([&] { f(x, tensor({2}, {Dim("n", 1)})); }),
            "TensorArray gather: index 2 is out of range for 2 elements");
  EXPECT_EQ(message_of<ShapeError>([&] { f(x, scalar(1)); }),
            "TensorArray gather: indices must be a vector, got i32[]");
  EXPECT_EQ(message_of<DTypeError>([&] { f(x, tensor({1.})); }),
            "TensorArray gather: indices must be integers, got f32[1]");
}

TEST_P(TensorFlowTensorArray, OpenElementsAreGatheredAndScatteredWithGradients) {
  const auto f = [](Tensor x) {
    const TensorArray array = TensorArray({f32, {unknown}}).push_back(concat({x, x}, 0));
    const TensorArray more = array.push_back(x * x).push_back(x);
    const TensorArray all = more.scatter(tensor({2}), reshape(x * x * x, {1, -1}));
    return sum(all.gather(tensor({1, 2, 1}))) + sum(square(all.concat()));
  };
  // Σ 2x² + x³ + 2x² (the copies) + x⁴ + x⁶
  const Tensor x = tensor({1., 2.}, {}, f64);
  const auto in_f64 = [](Tensor x) {
    const TensorArray array = TensorArray({f64, {unknown}}).push_back(concat({x, x}, 0));
    const TensorArray all =
        array.push_back(x * x).push_back(x).scatter(tensor({2}), reshape(x * x * x, {1, -1}));
    return sum(all.gather(tensor({1, 2, 1}))) + sum(square(all.concat()));
  };
  expect_values(run(f)(tensor({1., 2.})), {2 + 1 + 2 + 1 + 1 + 8 + 8 + 8 + 16 + 64});
  expect_gradient_of(in_f64, x, run(grad(in_f64))(x), 1e-6);
  const auto slope = [&](Tensor x) { return sum(grad(in_f64)(x)); };
  expect_gradient_of(slope, x, run(grad(slope))(x), 1e-6);
}

}  // namespace
}  // namespace reel
