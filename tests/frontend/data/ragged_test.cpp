// ragged and rows_of: tensors from and to nested rows.
#include "reel/tests/modes.h"

namespace reel {
namespace {

template <class T>
using Rows = std::vector<std::vector<T>>;
using Texts = std::vector<std::string>;
using RaggedTest = InEveryMode;

TEST(RaggedTest, RowsBecomeAPaddedTensorWithTheirLengths) {
  const Rows<float> rows{{1, 2}, {}, {3, 4, 5}};
  const Tensor x = ragged(rows, {Dim("batch"), Dim("time")});
  EXPECT_EQ(str(x.type()), "f32[batch=3,time[batch=3]]");
  EXPECT_EQ(x.shape(), (std::vector<std::int64_t>{3, 3}));
  expect_values(x, {1, 2, 0, 0, 0, 0, 3, 4, 5});
  expect_values(x.dim("time").lengths(), {2, 0, 3});
  EXPECT_EQ(rows_of(x), rows);
}

TEST(RaggedTest, AllNumbersAndTexts) {
  const Dims dims{Dim("batch"), Dim("time")};
  EXPECT_EQ(ragged(Rows<double>{{1}}, dims).dtype(), f64);
  EXPECT_EQ(ragged(Rows<std::int64_t>{{1}}, dims).dtype(), i64);
  EXPECT_EQ(ragged(Rows<bool>{{true}}, dims).dtype(), boolean);
  EXPECT_EQ(ragged(Rows<std::int8_t>{{-1}}, dims).dtype(), i32);
  EXPECT_EQ(ragged(Rows<int>{{1}}, dims, f64).dtype(), f64);
  const Rows<bool> bits{{true, false}, {}, {true}};
  EXPECT_EQ(rows_of<bool>(ragged(bits, dims)), bits);
  const Rows<std::int8_t> bytes{{-128, 127}, {0}};
  EXPECT_EQ(rows_of<std::int8_t>(ragged(bytes, dims)), bytes);
  const Texts texts{"ab", "", "\xff"};
  const Tensor letters = ragged(texts, {Dim("batch"), Dim("letters")});
  EXPECT_EQ(letters.dtype(), i32);
  expect_values(letters, {97, 98, 0, 0, 255, 0});
  EXPECT_EQ(rows_of<std::string>(letters), texts);
}

TEST(RaggedTest, EmptyRowsAndNoRows) {
  for (const Rows<float>& rows : {Rows<float>{}, Rows<float>{{}}, Rows<float>{{}, {}}}) {
    const Tensor x = ragged(rows, {Dim("batch"), Dim("time")});
    EXPECT_EQ(x.dim("batch").size(), static_cast<std::int64_t>(rows.size()));
    EXPECT_EQ(x.dim("time").size(), 0);
    EXPECT_TRUE(x.dim("time").is_ragged());
    EXPECT_EQ(rows_of(x), rows);
    expect_values(sum(x, x.dim("time")), std::vector<double>(rows.size(), 0));
  }
}

TEST(RaggedTest, NestedAtAnyDepth) {
  const std::vector<Texts> words{{"the", "cat"}, {}, {"sat", "", "on"}};
  const Tensor x = ragged(words, {Dim("batch"), Dim("words"), Dim("letters")});
  EXPECT_EQ(str(x.type()), "i32[batch=3,words[batch=3],letters[batch=3,words[batch=3]]]");
  EXPECT_EQ(rows_of<Texts>(x), words);
  expect_values(x.dim("letters").lengths(), {3, 3, 0, 0, 0, 0, 3, 0, 2});
  const std::vector<Rows<Rows<int>>> deep{{{{{1, 2}, {3}}}, {}}, {{{{}}, {}, {{4}}}}};
  const Tensor y = ragged(deep, {Dim("a"), Dim("b"), Dim("c"), Dim("d"), Dim("e")});
  EXPECT_EQ(rows_of<Rows<Rows<int>>>(y), deep);
}

TEST(RaggedTest, DimsThatHaveSizes) {
  const Dim batch("batch", 2), time("time", tensor({1, 2}, {batch})), feature("feature", 2);
  const std::vector<Rows<float>> rows{{{1, 2}}, {{3, 4}, {5, 6}}};
  const Tensor x = ragged(rows, {batch, time, feature});
  EXPECT_EQ(x.dims(), (Dims{batch, time, feature}));
  expect_values(x, {1, 2, 0, 0, 3, 4, 5, 6});
  EXPECT_EQ(rows_of<Rows<float>>(x), rows);
  EXPECT_EQ(str(ragged(rows, {batch, Dim("time"), Dim("feature")}).type()),
            "f32[batch=2,time[batch=2],feature[batch=2,time[batch=2]]]");
  const Rows<int> even{{1, 2, 3}, {4, 5, 6}};
  EXPECT_EQ(str(ragged(even, {2, 3}).type()), "i32[2,3]");
  EXPECT_EQ(rows_of<int>(tensor({{1, 2, 3}, {4, 5, 6}})), even);
  const Dim dynamic("batch", scalar(2));
  EXPECT_EQ(ragged(even, {dynamic, Dim("time")}).dims()[0], dynamic);
}

TEST(RaggedTest, PaddingIsNoElement) {
  const Dim batch("batch", 2), time("time", tensor({1, 3}, {batch}));
  const Tensor x = tensor({{1., NAN, 9.}, {2., 3., 4.}}, {batch, time});
  EXPECT_EQ(rows_of(x), (Rows<float>{{1}, {2, 3, 4}}));
  EXPECT_EQ(rows_of(transpose(x, {batch, time}) * 2), (Rows<float>{{2}, {4, 6, 8}}));
}

TEST_P(RaggedTest, OneTraceAndItsGradientServeAllRows) {
  const auto f = [](const Tensor& x) { return sum(square(x), x.dim("time")); };
  const auto step = run(f);
  const Dims dims{Dim("batch"), Dim("time")};
  expect_values(step(ragged(Rows<float>{{1, 2}, {}, {3}}, dims)), {5, 0, 9});
  expect_values(step(ragged(Rows<float>{{}, {1}, {2, 2}}, dims)), {0, 1, 8});
  EXPECT_EQ(step.trace_count(), 1);
  const auto loss = [&](const Tensor& w) {
    return sum(w * ragged(Rows<float>{{1, 2}, {}, {3}}, {Dim("batch"), Dim("time")}));
  };
  expect_values(run(grad(loss))(scalar(2.0)), {6});
}
REEL_IN_EVERY_MODE(RaggedTest);

TEST(RaggedErrorsTest, NameTheRow) {
  const Dim batch("batch", 2), time("time", tensor({1, 2}, {batch}));
  const Rows<float> rows{{1}, {2}};
  EXPECT_EQ(
      message_of<ArgumentError>([&] { return ragged(rows, {batch}); }),
      "ragged: the rows are nested 2 deep, but 1 dims are given, [batch=2]; give one for each "
      "level");
  EXPECT_EQ(message_of<ShapeError>([&] {
              return ragged(Rows<float>{{1}}, {batch, time});
            }),
            "ragged: rows has 1 item, but batch=2 has 2 there");
  EXPECT_EQ(message_of<ShapeError>([&] {
              return ragged(rows, {batch, time});
            }),
            "ragged: rows[1] has 1 item, but time[batch=2] has 2 there");
  EXPECT_EQ(message_of<ShapeError>([&] {
              return ragged(Rows<float>{{1, 2, 3}, {4, 5}}, {2, 3});
            }),
            "ragged: rows[1] has 2 items, but the size there is 3");
  EXPECT_EQ(message_of<ShapeError>([&] {
              return ragged(rows, {Dim("batch"), time});
            }),
            "ragged: the lengths of time[batch=2] run over batch=2, which is not among the dims "
            "before it, [batch=2]");
  EXPECT_EQ(message_of<DTypeError>([&] {
              return ragged(Rows<float>{{1.5}}, {Dim("batch"), Dim("time")}, i32);
            }),
            "ragged: 1.5 does not fit i32, which holds integers; give a dtype of f32 or f64");
  EXPECT_EQ(message_of<DTypeError>([&] {
              return rows_of<int>(ones({2, 2}));
            }),
            "rows_of: asked for elements of type i32 of a tensor of type f32[2,2]; cast it to i32, "
            "or ask for f32");
  EXPECT_EQ(
      message_of<ShapeError>([&] { return rows_of(ones({2})); }),
      "rows_of: rows nested 2 deep have 2 axes, but f32[2] has 1; to_vector returns its elements");
  EXPECT_EQ(message_of<ShapeError>([&] {
              return rows_of(ones({2, 2, 2}));
            }),
            "rows_of: rows nested 2 deep have 2 axes, but f32[2,2,2] has 3; give the type of a "
            "row, as in "
            "rows_of<std::vector<std::vector<float>>>(x) for three axes");
  EXPECT_EQ(
      message_of<ShapeError>([&] {
        return rows_of(transpose(ones({batch, time}), {time, batch}));
      }),
      "rows_of: the lengths of time[batch=2] run over batch=2, which does not stand before it "
      "in f32[time[batch=2],batch=2]; transpose it: transpose(x, {batch, time})");
  EXPECT_EQ(message_of<ArgumentError>([&] {
              return rows_of<std::string>(tensor({{97, 256}}));
            }),
            "rows_of: the element 256 does not fit a byte");
  message_of<TraceError>([&] {
    return jit([](const Tensor& x) {
      rows_of(x);
      return x;
    })(ones({2, 2}));
  });
  message_of<TraceError>([&] {
    return jit([&](const Tensor& x) {
      return ragged(rows, {x.dim("batch"), Dim("time")});
    })(ones({Dim("batch", scalar(2))}));
  });
}

}  // namespace
}  // namespace reel
