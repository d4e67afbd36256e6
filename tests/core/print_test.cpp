// Tensors as text. The expected texts are NumPy's str() of the same arrays.
#include <limits>

#include "reel/tests/check.h"

namespace reel {
namespace {

/// Returns the text behind the type.
std::string elements(const Tensor& x) { return str(x).substr(str(x.type()).size() + 1); }
Tensor f64s(std::initializer_list<NestedList> numbers) { return tensor(numbers, {}, f64); }

TEST(PrintTest, TypeComesFirstWithTheNamesOfDims) {
  EXPECT_EQ(str(tensor({1.0, 2.5}, {Dim("pair", 2)})), "f32[pair=2] [1.  2.5]");
  EXPECT_EQ(str(tensor({{1, 2}, {3, 4}})), "i32[2,2]\n[[1 2]\n [3 4]]");
  EXPECT_EQ(str(Tensor()), "(empty Tensor)");
}

TEST(PrintTest, FloatsHaveTheirPointsBelowEachOther) {
  EXPECT_EQ(elements(tensor({1., 2.5, -3.})), "[ 1.   2.5 -3. ]");
  EXPECT_EQ(elements(tensor({{1., 2.5}, {-10., 0.125}})),
            "[[  1.      2.5  ]\n [-10.      0.125]]");
  EXPECT_EQ(elements(f64s({0.0, -0.0})), "[ 0. -0.]");
  EXPECT_EQ(elements(tensor({99999992.0})), "[99999992.]");
}

TEST(PrintTest, FloatsHaveAsManyDigitsAsTheyNeedUpToEight) {
  EXPECT_EQ(elements(tensor({0.1, 1 / 3.})), "[0.1        0.33333334]");
  EXPECT_EQ(elements(f64s({0.1, 1 / 3., 100.0})), "[  0.1          0.33333333 100.        ]");
  EXPECT_EQ(elements(f64s({12345678.123456789})), "[12345678.12345679]");
  EXPECT_EQ(elements(f64s({0.001, 1.0})), "[0.001 1.   ]");
}

TEST(PrintTest, WideRangesAreScientific) {
  EXPECT_EQ(elements(tensor({1e-5, 1.0})), "[1.e-05 1.e+00]");
  EXPECT_EQ(elements(tensor({1e8, 1.5})), "[1.0e+08 1.5e+00]");
  EXPECT_EQ(elements(f64s({1e-5, 1e100})), "[1.e-005 1.e+100]");
  EXPECT_EQ(elements(f64s({0.0009, 1.0})), "[9.e-04 1.e+00]");
  EXPECT_EQ(elements(f64s({1 / 3., 1000.4, 2e-3})),
            "[3.33333333e-01 1.00040000e+03 2.00000000e-03]");
  EXPECT_EQ(elements(f64s({1.23456789012e10, 1.0})), "[1.23456789e+10 1.00000000e+00]");
  // Each number with its own digits, if others need more (NumPy 1.24).
  EXPECT_EQ(elements(tensor({-6.7575951f, -70.196449f, 1.2345678e-5f})),
            "[-6.7575951e+00 -7.0196449e+01  1.2345678e-05]");
  EXPECT_EQ(elements(f64s({1e-300, 5e-324})), "[1.e-300 5.e-324]");
  EXPECT_EQ(elements(tensor({123456.789, 0.5})), "[1.2345679e+05 5.0000000e-01]");
}

TEST(PrintTest, NoNumbersStandInTheSameColumns) {
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(elements(f64s({NAN, 1.5, -inf, inf})), "[ nan  1.5 -inf  inf]");
  EXPECT_EQ(elements(f64s({NAN, inf})), "[nan inf]");
  EXPECT_EQ(elements(f64s({NAN, -inf, 1e10})), "[   nan   -inf 1.e+10]");
  EXPECT_EQ(elements(f64s({NAN, -1e-10, 1e10})), "[    nan -1.e-10  1.e+10]");
}

TEST(PrintTest, IntegersAndBooleansAreRightAligned) {
  EXPECT_EQ(elements(tensor({1, -10, 100})), "[  1 -10 100]");
  EXPECT_EQ(elements(tensor({{true, false}})), "[[ True False]]");
  EXPECT_EQ(elements(reshape(range(8), {2, 2, 2})), "[[[0 1]\n  [2 3]]\n\n [[4 5]\n  [6 7]]]");
}

TEST(PrintTest, OneNumberHasAllItsDigits) {
  EXPECT_EQ(str(scalar(2.5)), "f32[] 2.5");
  EXPECT_EQ(str(scalar(2.0)), "f32[] 2.0");
  EXPECT_EQ(elements(scalar(0.1)), "0.1");
  EXPECT_EQ(elements(scalar(1e10)), "10000000000.0");
  EXPECT_EQ(elements(scalar(1e15, f64)), "1000000000000000.0");
  EXPECT_EQ(elements(scalar(1e16, f64)), "1e+16");
  EXPECT_EQ(elements(scalar(1.5e-5, f64)), "1.5e-05");
  EXPECT_EQ(elements(scalar(0.1234567891234, f64)), "0.1234567891234");
  EXPECT_EQ(elements(scalar(NAN)), "nan");
  EXPECT_EQ(elements(scalar(true)), "True");
  EXPECT_EQ(elements(scalar(7)), "7");
}

TEST(PrintTest, NothingIsAnEmptyList) {
  EXPECT_EQ(str(zeros({0})), "f32[0] []");
  EXPECT_EQ(str(zeros({2, 0})), "f32[2,0]\n[]");
}

TEST(PrintTest, LongRowsAreWrapped) {
  EXPECT_EQ(str(range(30)),
            "i32[30]\n[ 0  1  2  3  4  5  6  7  8  9 10 11 12 13 14 15 16 17 18 19 20 21 22 23\n"
            " 24 25 26 27 28 29]");
  EXPECT_EQ(elements(reshape(range(80), {2, 40}) + 60),
            "[[ 60  61  62  63  64  65  66  67  68  69  70  71  72  73  74  75  76  77\n"
            "   78  79  80  81  82  83  84  85  86  87  88  89  90  91  92  93  94  95\n"
            "   96  97  98  99]\n"
            " [100 101 102 103 104 105 106 107 108 109 110 111 112 113 114 115 116 117\n"
            "  118 119 120 121 122 123 124 125 126 127 128 129 130 131 132 133 134 135\n"
            "  136 137 138 139]]");
  EXPECT_EQ(elements(cast(range(14), f64) / 7.0),
            "[0.         0.14285714 0.28571429 0.42857143 0.57142857 0.71428571\n"
            " 0.85714286 1.         1.14285714 1.28571429 1.42857143 1.57142857\n"
            " 1.71428571 1.85714286]");
}

TEST(PrintTest, TensorsOverAThousandElementsShowTheirEdges) {
  EXPECT_EQ(str(range(1001)), "i32[1001] [   0    1    2 ...  998  999 1000]");
  EXPECT_EQ(elements(reshape(range(1600), {40, 40})),
            "[[   0    1    2 ...   37   38   39]\n"
            " [  40   41   42 ...   77   78   79]\n"
            " [  80   81   82 ...  117  118  119]\n"
            " ...\n"
            " [1480 1481 1482 ... 1517 1518 1519]\n"
            " [1520 1521 1522 ... 1557 1558 1559]\n"
            " [1560 1561 1562 ... 1597 1598 1599]]");
  EXPECT_EQ(elements(zeros({2, 600})), "[[0. 0. 0. ... 0. 0. 0.]\n [0. 0. 0. ... 0. 0. 0.]]");
  EXPECT_EQ(elements(reshape(range(2000, f64), {2, 10, 100})),
            "[[[0.000e+00 1.000e+00 2.000e+00 ... 9.700e+01 9.800e+01 9.900e+01]\n"
            "  [1.000e+02 1.010e+02 1.020e+02 ... 1.970e+02 1.980e+02 1.990e+02]\n"
            "  [2.000e+02 2.010e+02 2.020e+02 ... 2.970e+02 2.980e+02 2.990e+02]\n"
            "  ...\n"
            "  [7.000e+02 7.010e+02 7.020e+02 ... 7.970e+02 7.980e+02 7.990e+02]\n"
            "  [8.000e+02 8.010e+02 8.020e+02 ... 8.970e+02 8.980e+02 8.990e+02]\n"
            "  [9.000e+02 9.010e+02 9.020e+02 ... 9.970e+02 9.980e+02 9.990e+02]]\n\n"
            " [[1.000e+03 1.001e+03 1.002e+03 ... 1.097e+03 1.098e+03 1.099e+03]\n"
            "  [1.100e+03 1.101e+03 1.102e+03 ... 1.197e+03 1.198e+03 1.199e+03]\n"
            "  [1.200e+03 1.201e+03 1.202e+03 ... 1.297e+03 1.298e+03 1.299e+03]\n"
            "  ...\n"
            "  [1.700e+03 1.701e+03 1.702e+03 ... 1.797e+03 1.798e+03 1.799e+03]\n"
            "  [1.800e+03 1.801e+03 1.802e+03 ... 1.897e+03 1.898e+03 1.899e+03]\n"
            "  [1.900e+03 1.901e+03 1.902e+03 ... 1.997e+03 1.998e+03 1.999e+03]]]");
}

// NumPy has no padding. Padding prints as a dash and does not affect the format of numbers.
TEST(PrintTest, PaddingIsShownAsADash) {
  const Dim batch("batch", 2), time("time", tensor({3, 1}, {batch})), in("in", 2);
  EXPECT_EQ(str(tensor({1.0, 2.5, 3.0, 4.0, NAN, 1e30}, {batch, time})),
            "f32[batch=2,time[batch=2]]\n[[1.  2.5 3. ]\n [4.  -   -  ]]");
  EXPECT_EQ(elements(tensor({10, 20, 30, 40, -5, -6}, {time, batch})),
            "[[10 20]\n [30  -]\n [-5  -]]");
  EXPECT_EQ(elements(tensor({true, false, true, true, false, false}, {batch, time})),
            "[[ True False  True]\n [ True     -     -]]");
  EXPECT_EQ(elements(expand(range(in), {batch, time, in})),
            "[[[0 1]\n  [0 1]\n  [0 1]]\n\n [[0 1]\n  [- -]\n  [- -]]]");
  // Without the dim of its lengths a ragged dim is full.
  EXPECT_EQ(elements(tensor({1, 2, 3}, {time})), "[1 2 3]");
}

}  // namespace
}  // namespace reel
