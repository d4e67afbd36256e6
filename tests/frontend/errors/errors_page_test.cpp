// The programs of docs/errors.md: each runs here, throws the message that the page shows, and works
// after the page's repair.
#include <cmath>
#include <fstream>
#include <sstream>

#include "reel/tests/modes.h"

namespace reel {
namespace {

struct Decoder {
  Tensor step, hidden;
};

/// Collapses white space, because the page breaks lines freely.
std::string squeezed(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (!std::isspace(static_cast<unsigned char>(c)))
      result += c;
    else if (!result.empty() && result.back() != ' ')
      result += ' ';
  }
  return result;
}

std::string page() {
  std::ifstream file(REEL_ERRORS_PAGE);
  EXPECT_TRUE(file) << REEL_ERRORS_PAGE;
  std::ostringstream text;
  text << file.rdbuf();
  return squeezed(text.str());
}

template <class E, class Fn>
void expect_on_page(const Fn& program, const char* file = __builtin_FILE(),
                    int line = __builtin_LINE()) {
  const std::string message = message_of<E>(program, file, line);
  if (page().find("``` " + squeezed(message) + " ```") == std::string::npos)
    ADD_FAILURE_AT(file, line) << "not a block of docs/errors.md:\n" << message;
}

// The programs of tests/compile_errors have the mistakes.
TEST(ErrorsPage, RepairsOfErrorsOfTheCompilerCompile) {
  const Dim in("in", 2), out("out", 3);
  Linear net = Linear::init(in, out);
  const Adam<Linear> adam(net, {.learning_rate = 0.01});
  EXPECT_DOUBLE_EQ(adam.learning_rate().item<double>(), 0.01);
  const Tensor x = ones({2, 2}), scores = ones({in, out}), labels = zeros({in}, i32);
  EXPECT_TRUE((sum(x) > 0).item<bool>());
  expect_values(maximum(x, 2 * x), {2, 2, 2, 2});
  EXPECT_EQ(sum(x).item<float>(), 4);
  const Tensors parts = unstack(x, 0);
  expect_values(parts[0] + parts[1], {2, 2});
  Tensor steps = scalar(1);
  steps += 1;
  EXPECT_EQ(steps.item<std::int32_t>(), 2);
  for (const Tensor& row : unstack(x, 0)) EXPECT_EQ(item<float>(sum(row)), 2);
  expect_values(concat({x, zeros({2, 3})}, 1), {1, 1, 0, 0, 0, 1, 1, 0, 0, 0});
  EXPECT_NEAR(cross_entropy(scores, labels, out).item<float>(), std::log(3.0), 1e-6);
  expect_values(pow(x, 2) + square(x), {2, 2, 2, 2});
  const std::vector<float> values{1, 2};
  expect_values(x + tensor(values), {2, 3, 2, 3});
  EXPECT_NE(str(summary(net)).find("weight"), std::string::npos);
}

TEST(ErrorsPage, DtypesNeverMixSilently) {
  expect_on_page<DTypeError>([] {
    const Tensor scores = tensor({0.5, 1.5, 2.5}), lengths = tensor({3, 2, 1});
    return scores / lengths;
  });
  const Tensor scores = tensor({0.5, 1.5, 2.5}), lengths = tensor({3, 2, 1});
  const Tensor mean_scores = scores / cast(lengths, f32);
  expect_values(mean_scores, {0.5 / 3, 0.75, 2.5});
}

TEST(ErrorsPage, EachOperandLacksADimOfTheOther) {
  expect_on_page<ShapeError>([] {
    const Dim batch("batch", 2), feature("feature", 3);
    const Tensor a = ones({batch}), b = ones({feature});
    return a + b;
  });
  const Dim batch("batch", 2), feature("feature", 3);
  const Tensor a = ones({batch}), b = ones({feature});
  const Tensor table = expand(a, {batch, feature}) + b;
  EXPECT_EQ(table.shape(), (std::vector<std::int64_t>{2, 3}));
}

TEST(ErrorsPage, NamedAndPlainDims) {
  expect_on_page<ShapeError>([] {
    const Dim batch("batch", 2);
    return ones({batch}) + ones({2});
  });
  const Dim batch("batch", 2);
  const Tensor twos = ones({batch}) + ones({batch});
  expect_values(twos, {2, 2});
}

TEST(ErrorsPage, AStateThatChangesItsType) {
  expect_on_page<DTypeError>([] {
    const auto body = [](const Decoder& s) {
      return Decoder{s.step + 1, cast(s.hidden, f64) * 0.5};
    };
    const Decoder start{scalar(0), ones({3})};
    return while_loop([](const Decoder& s) { return s.step < 10; }, body, start,
                      {.name = "decode"});
  });
  const auto body = [](const Decoder& s) { return Decoder{s.step + 1, s.hidden * 0.5}; };
  const Decoder start{scalar(0), ones({3})};
  while_loop([](const Decoder& s) { return s.step < 10; }, body, start, {.name = "decode"});
}

TEST(ErrorsPage, AStateThatGrows) {
  expect_on_page<ShapeError>([] {
    const auto twice = [](const Tensor& m) { return concat({m, m}, 0); };
    return while_loop([](const Tensor& m) { return sum(m) < 100.0; }, twice, ones({2, 2}));
  });
  const auto twice = [](const Tensor& m) { return concat({m, m}, 0); };
  const Tensor large = while_loop([](const Tensor& m) { return sum(m) < 100.0; }, twice,
                                  ones({2, 2}), {.shape_invariants = {PartialShape{unknown, 2}}});
  EXPECT_EQ(large.shape(), (std::vector<std::int64_t>{64, 2}));
}

TEST(ErrorsPage, AConditionForEachEntry) {
  expect_on_page<ShapeError>([] {
    const Dim batch("batch", 3);
    const Tensor start = tensor({1.0, 2.0, 3.0}, {batch});
    return while_loop([](const Tensor& s) { return s < 8.0; },
                      [](const Tensor& s) { return s * 2.0; }, start);
  });
  const Dim batch("batch", 3);
  const Tensor start = tensor({1.0, 2.0, 3.0}, {batch});
  const auto result = scan(Scan{
      .cond_dims = {batch},
      .initial = start,
      .cond = [](const Tensor& s) { return s < 8.0; },
      .body =
          [](const Tensor& s) {
            return std::pair{None{}, s * 2.0};
          },
  });
  expect_values(result.state, {8, 8, 12});
}

TEST(ErrorsPage, AValueThatSteersCpp) {
  expect_on_page<TraceError>([] {
    const auto magnitude = [](const Tensor& x) { return x.item<float>() < 0 ? -x : x; };
    return jit(magnitude)(scalar(-3.0));
  });
  const auto magnitude = [](const Tensor& x) {
    return cond(
        x < 0.0, [&] { return -x; }, [&] { return x; });
  };
  expect_values(jit(magnitude)(scalar(-3.0)), {3});
}

TEST(ErrorsPage, AValueOfABodyOutside) {
  expect_on_page<TraceError>([] {
    const auto last_product = [](const Tensor& x) {
      Tensor product;
      while_loop([](const Tensor& s) { return s < 10.0; },
                 [&](const Tensor& s) {
                   product = s * x;
                   return s + product;
                 },
                 x);
      return product;
    };
    return jit(last_product)(scalar(2.0));
  });
  const auto last_product = [](const Tensor& x) {
    const auto [sum, product] = while_loop([](const Tensor& s, const Tensor&) { return s < 10.0; },
                                           [&](const Tensor& s, const Tensor&) {
                                             return std::tuple{s + s * x, s * x};
                                           },
                                           std::tuple{x, x});
    return product;
  };
  expect_values(jit(last_product)(scalar(2.0)), {12});
}

TEST(ErrorsPage, ADimOfAnEarlierBatch) {
  expect_on_page<ShapeError>([] {
    const Dim time("time", 3), later("time", 4);
    const auto total = jit([&](const Tensor& x) { return sum(x, time); });
    total(ones({time}));
    return total(ones({later}));
  });
  const Dim time("time", 3), later("time", 4);
  const auto total = jit([](const Tensor& x) { return sum(x, x.dim("time")); });
  total(ones({time}));
  expect_values(total(ones({later})), {4});
}

TEST(ErrorsPage, AnIndexOutOfRangeInALoop) {
  expect_on_page<IndexError>([] {
    const Tensor table = tensor({2, 1, 3});
    const auto follow = [&](const Tensor& place) { return gather(table, place, 0); };
    return while_loop([](const Tensor& place) { return place != 1; }, follow, scalar(0),
                      {.name = "follow"});
  });
  const Tensor table = tensor({2, 1, 3});
  const auto follow = [&](const Tensor& place) { return gather(table, place, 0); };
  const Tensor end = while_loop([](const Tensor& place) { return place < 3; }, follow, scalar(0),
                                {.name = "follow"});
  expect_values(end, {3});
}

TEST(ErrorsPage, LoopUnderAPolicyRefusesItemInEagerMode) {
  const Tensor start = zeros({2}), xs = ones({4, 2});
  expect_on_page<TraceError>([&] {
    return grad([&](const Tensor& w) {
      const auto body = [&](const Tensor& x, const Tensor& h) {
        const Tensor next = h * w + x;
        return std::pair{None{}, max(next).item<float>() > 1 ? next * 0.5 : next};
      };
      return sum(scan(Scan{.initial = start,
                           .xs = xs,
                           .body = body,
                           .checkpoint = Checkpoint::every(2),
                           .name = "encoder"})
                     .state);
    })(ones({2}));
  });
  const Tensor gradient = grad([&](const Tensor& w) {
    const auto body = [&](const Tensor& x, const Tensor& h) {
      const Tensor next = h * w + x;
      return std::pair{None{}, where(max(next) > 1, next * 0.5, next)};
    };
    return sum(
        scan(Scan{.initial = start, .xs = xs, .body = body, .checkpoint = Checkpoint::every(2)})
            .state);
  })(ones({2}));
  // h: 1, 2/2, 2/2, 2/2; dh/dw = (h + w dh/dw)/2 from the second step on: 1/2, 3/4, 7/8.
  expect_values(gradient, {0.875, 0.875});
}

TEST(ErrorsPage, AFullDiskStopsALoopThatSpills) {
  const auto gradient_in = [](const std::string& folder) {
    return grad([&](const Tensor& w) {
      const auto body = [&](const Tensor& x, const Tensor& h) {
        return std::pair{None{}, tanh(h * w + x)};
      };
      return sum(scan(Scan{.initial = zeros({200, 200}),
                           .xs = ones({40, 200}),
                           .body = body,
                           .swap_memory = Spill{.folder = folder, .bytes_in_memory = 1 << 20}})
                     .state);
    })(ones({200}));
  };
  expect_on_page<IoError>([&] { return gradient_in("no/such/folder"); });
  EXPECT_TRUE(std::isfinite(gradient_in("").to_vector<float>()[0]));
}

struct Model {
  Tensor table;
};

TEST(ErrorsPage, AStepThatFails) {
  expect_on_page<IndexError>([] {
    const auto step = jit([](Model model, const Tensor& label) {
      model.table = model.table + gather(model.table, label, 0);
      return model;
    });
    Model model{ones({3, 2})};
    model = step(std::move(model), scalar(1));
    return step(std::move(model), scalar(7)).table;
  });
  Model model{ones({3, 2})};
  const auto eager_step = [](const Model& model, const Tensor& label) {
    return Model{model.table + gather(model.table, label, 0)};
  };
  model = eager_step(model, scalar(0));
  EXPECT_THROW(model = eager_step(model, scalar(7)), IndexError);
  expect_values(model.table, {2, 2, 2, 2, 2, 2});
}

}  // namespace
}  // namespace reel
