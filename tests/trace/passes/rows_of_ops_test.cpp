// Rows of ops: a loop around each op is split into row blocks and has the bits of an unsplit
// loop.
#include "reel/core/op/axes.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <sstream>

#include "reel/reel.h"
#include "reel/tests/check.h"
#include "reel/tests/threads.h"

namespace reel {
namespace {

using Next = std::function<Tensor(const Tensor&)>;
struct Named {
  const char* name;
  Next next;
  bool has_indices = false;  ///< which may be out of range in finished entries
};

class RowsOfOpsTest : public ::testing::Test {
 protected:
  const Dim batch{"batch", 7}, hidden{"hidden", 8}, half{"half", 4}, head{"head", 2};
  const Dim ragged{"time", tensor({4, 1, 0, 3, 4, 2, 3}, {batch})}, full{"time", 4};

  void SetUp() override { manual_seed(3); }

  /// Returns a scan that computes its state with next(h + x), with its gradient along x.
  static auto scanned(const Next& next) {
    return value_and_grad([next](const Tensor& x) {
      const auto body = [&](const Tensor& x, const Tensor& h) {
        const Tensor y = tanh(next(h * 0.5 + x) + h * 0.1);
        return std::pair{y, y};
      };
      const bool is_named = x.type().is_named();
      const Dim time = x.dims()[0];
      Dims dims(x.dims().begin() + 1, x.dims().end());
      const Tensor ys =
          is_named
              ? scan(Scan{.spatial_dim = time, .initial = zeros(dims), .xs = x, .body = body}).ys
              : scan(Scan{.initial = zeros(dims), .xs = x, .body = body}).ys;
      return std::pair{sum(square(ys)), ys};
    });
  }

  static std::string cut_lines(const std::string& text, const char* kind) {
    std::string result;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);)
      if (const auto at = line.find(kind); at != line.npos) result += line.substr(at) + "\n";
    return result;
  }

  /// Returns the reason why a loop is not split, or an empty text.
  static std::string why_not(const Next& next, const Tensor& x) {
    const auto f = scanned(next);
    const auto run = [&](const auto& f) {
      manual_seed(5);
      const auto [value, slope] = f(x);
      return Tensors{value.first, mask_padding(value.second), mask_padding(slope)};
    };
    const auto whole = jit(f, {.passes = {.cut_rows = false, .shrink_batch = false}});
    const auto interpreted = jit(f, {.executor = Executor::interpreter});
    const Tensors expected = run(whole);
    const Tensors reference = run(interpreted);
    for (const int rows : {1, 2, 3}) {
      const auto cut = jit(f, {.passes = {.block_rows = rows}});
      for (const int count : {1, 2, 5}) {
        const Threads these(count);
        const Tensors found = run(cut);
        for (std::size_t i = 0; i < found.size(); ++i) {
          expect_same_bits(found[i], expected[i]);
          expect_all_close(found[i], reference[i], 2e-5);
        }
      }
      const std::string not_cut = cut_lines(cut.explain(), "not cut: ");
      if (!not_cut.empty()) return not_cut;
      EXPECT_NE(cut_lines(cut.explain(), "cut: "), "") << cut.explain();
    }
    return "";
  }

  std::vector<Named> over_names() const {
    const Dim width("width", 4), two("two", 2), three("three", 3), wide("wide", 11),
        best("best", 2);
    const auto part = [=, this](const Tensor& y, int k) {
      return slice(y, hidden, 4 * k, 4 * k + 4, half);
    };
    const auto apart = [=, this](const Tensor& y) { return split<2>(y, hidden, half); };
    const Tensor table = random_normal({Dim("classes", 8), hidden});
    const Dim classes = table.dims()[0];
    return {
        {"slice, concat",
         [=, this](const Tensor& y) {
           return concat({part(y, 1), sin(part(y, 0))}, half, hidden);
         }},
        {"slice", [=, this](const Tensor& y) { return y * sum(part(y, 1) * part(y, 0), half); }},
        {"slice from the end",
         [=, this](const Tensor& y) { return y * max(slice(y, hidden, -3, {}, three), three); }},
        {"slice with a step",
         [=, this](const Tensor& y) { return y * sum(slice(y, hidden, 0, {}, 2, half), half); }},
        {"pad",
         [=, this](const Tensor& y) {
           return y * sum(square(pad(y, hidden, 1, 2, 0.5, wide)), wide);
         }},
        {"shift", [=, this](const Tensor& y) { return shift(y, hidden, 1, 0.25); }},
        {"reverse", [=, this](const Tensor& y) { return y * reverse(y, hidden); }},
        {"cumsum", [=, this](const Tensor& y) { return cumsum(y, hidden); }},
        {"cumprod", [=, this](const Tensor& y) { return cumprod(y, hidden); }},
        {"linear_scan",
         [=, this](const Tensor& y) {
           return linear_scan(tanh(mean(y, hidden)), y, max(y, hidden), hidden);
         }},
        {"linear_scan of operands with all axes",
         [=, this](const Tensor& y) {
           return linear_scan(sin(y), y * 0.5, hidden, {.input = tanh(y), .reverse = true});
         }},
        {"stack, unstack",
         [=, this](const Tensor& y) {
           const auto [a, b] = apart(y);
           const Tensors parts = unstack(cumsum(stack({a, b}, two), two), two);
           return concat({parts[1], parts[0]}, half, hidden);
         }},
        {"reshape",
         [=, this](const Tensor& y) {
           const Tensor heads = reshape(y, {batch, head, width});
           return reshape(softmax(heads, width) * heads, {batch, hidden});
         }},
        {"split_dim, merge_dims",
         [=, this](const Tensor& y) {
           const Tensor heads = split_dim(y, hidden, {head, width});
           return merge_dims(softmax(heads, head), {head, width}, hidden);
         }},
        {"transpose",
         [=, this](const Tensor& y) {
           const Tensor turned = transpose(y, {hidden, batch});
           return transpose(cumsum(turned, hidden), {batch, hidden}) * 0.5;
         }},
        {"where, clip",
         [](const Tensor& y) { return where(y > 0.1, clip(y, -0.5, 0.5), square(y)); }},
        {"layer norm",
         [=, this](const Tensor& y) {
           const Tensor centred = y - mean(y, hidden);
           return centred / sqrt(mean(square(centred), hidden) + 0.1);
         }},
        {"expand",
         [=, this](const Tensor& y) {
           return y * expand(mean(y, hidden), {batch, hidden});
         }},
        {"one_hot, argmax",
         [=, this](const Tensor& y) { return y + one_hot(argmax(y, hidden), hidden) * y; }},
        {"any, all",
         [=, this](const Tensor& y) {
           return y + cast(any(y > 0.3, hidden), f32) - cast(all(y > -0.5, hidden), f32) * y;
         }},
        {"sort", [=, this](const Tensor& y) { return sort(y, hidden) * 0.5; }, true},
        {"top_k",
         [=, this](const Tensor& y) { return y * sum(top_k(y, hidden, best).values, best); }, true},
        {"gather with clip",
         [=, this](const Tensor& y) {
           return y + gather(table, argmax(y, hidden), classes, {.clip = true});
         }},
        {"noise for all rows", [=, this](const Tensor& y) { return y + random_normal({hidden}); }},
        {"dropout", [](const Tensor& y) { return dropout(y, 0.3); }},
        {"noise",
         [=, this](const Tensor& y) {
           return y + random_normal({batch, hidden}) * truncated_normal({batch}, 0.5, 0.1);
         }},
        {"noise, rows behind",
         [=, this](const Tensor& y) {
           return y + random_uniform({hidden, batch}, -1, 1);
         }},
        {"draws of classes",
         [=, this](const Tensor& y) { return y * one_hot(categorical(y, hidden), hidden); }, true},
    };
  }
};

TEST_F(RowsOfOpsTest, OpsOverNamedAxesAreCut) {
  const Tensor x = random_normal({full, batch, hidden});
  for (const auto& [name, next, has_indices] : over_names()) {
    SCOPED_TRACE(name);
    EXPECT_EQ(why_not(next, x), "");
  }
}

TEST_F(RowsOfOpsTest, OpsOverNamedAxesAreCutIfEntriesFinishOneByOne) {
  const Tensor x = mask_padding(random_normal({ragged, batch, hidden}), NAN);
  for (const auto& [name, next, has_indices] : over_names()) {
    SCOPED_TRACE(name);
    const std::string why = why_not(next, x);
    EXPECT_EQ(why.find("may fail for values of finished entries") != why.npos, has_indices) << why;
    EXPECT_TRUE(why.empty() || has_indices) << why;
  }
}

TEST_F(RowsOfOpsTest, OpsOverPlainAxesAreCut) {
  const Tensor x = random_normal({4, 7, 8}), table = random_normal({8, 8});
  const std::vector<Named> all{
      {"slice, concat",
       [](const Tensor& y) {
         return concat({slice(y, 1, 4, 8), sin(slice(y, 1, 0, 4))}, 1);
       }},
      {"pad", [](const Tensor& y) { return slice(pad(y, 1, 1, 0, 0.5), 1, 0, 8); }},
      {"stack",
       [](const Tensor& y) {
         return sum(stack({y, sin(y)}, 1), 1);
       }},
      {"unstack", [](const Tensor& y) { return stack(unstack(y, 1), 1) * y; }},
      {"reshape",
       [](const Tensor& y) {
         return reshape(softmax(reshape(y, {7, 2, 4}), 2), {7, 8});
       }},
      {"reshape, with an open size",
       [](const Tensor& y) {
         return reshape(tanh(reshape(y, {7, -1, 2})), {-1, 8});
       }},
      {"reshape with ones in front",
       [](const Tensor& y) {
         return reshape(cumsum(reshape(y, {1, 7, 8}), 2), {7, 8});
       }},
      {"sum, kept", [](const Tensor& y) { return y / (1. + sum(square(y), 1, Keep::yes)); }},
      {"transpose",
       [](const Tensor& y) {
         return transpose(cumsum(transpose(y, {1, 0}), 0), {1, 0});
       }},
      {"split_dim, merge_dims",
       [](const Tensor& y) {
         return merge_dims(sin(split_dim(y, 1, {2, 4})), {1, 2});
       }},
      {"linear_scan", [](const Tensor& y) { return linear_scan(sin(y), y, max(y, 1), 1); }},
      {"gather", [&](const Tensor& y) { return y + gather(table, argmax(y, 1), 0); }},
      {"dropout", [](const Tensor& y) { return dropout(y, 0.3); }},
      {"noise",
       [](const Tensor& y) {
         return y + random_normal({7, 8}) * random_normal({8});
       }},
  };
  for (const auto& [name, next, has_indices] : all) {
    SCOPED_TRACE(name);
    EXPECT_EQ(why_not(next, x), "");
  }
}

TEST_F(RowsOfOpsTest, OpsAlongTheRows) {
  const Tensor x = random_normal({4, 7, 8}), square_x = random_normal({4, 7, 7});
  const auto why = [&](const Next& next, const Tensor& x) {
    const std::string all = why_not(next, x);
    return all.substr(0, all.find('\n'));
  };
  const auto over_plain = [&](const Next& next) { return why(next, x); };
  EXPECT_EQ(over_plain([](const Tensor& y) { return shift(y, 0, 1); }),
            "not cut: op shift may mix the rows, 7");
  EXPECT_EQ(over_plain([](const Tensor& y) {
              return reshape(sin(reshape(y, {8, 7})), {7, 8});
            }),
            "not cut: op reshape may mix the rows, 7");
  EXPECT_EQ(over_plain([](const Tensor& y) { return cumsum(y, 0); }),
            "not cut: op cumsum may mix the rows, 7");
  EXPECT_EQ(over_plain([](const Tensor& y) { return linear_scan(sin(y), y, 0); }),
            "not cut: op linear_scan may mix the rows, 7");
  EXPECT_EQ(why(
                [](const Tensor& y) {
                  return transpose(y, {1, 0});
                },
                square_x),
            "not cut: op add may mix the rows, 7");
}

TEST_F(RowsOfOpsTest, RemarkNamesTheDrawThatMixesRows) {
  // Its rows could be its first axis or its second.
  const Tensor x = random_normal({4, 7, 7});
  const auto next = [](const Tensor& y) {
    const Tensor noise = random_normal({7, 7}) > 0.;
    return where(noise, y, sum(cast(noise, f32), 0));
  };
  EXPECT_TRUE(why_not(next, x).starts_with("not cut: op random_normal may mix the rows, 7\n"));
}

TEST_F(RowsOfOpsTest, LoopIsNotCutIfIndicesOfFinishedEntriesMayFail) {
  const Tensor table = random_normal({Dim("classes", 8), hidden});
  const Dim classes = table.dims()[0];
  const auto next = [&](const Tensor& y) { return y + gather(table, argmax(y, hidden), classes); };
  EXPECT_EQ(why_not(next, random_normal({full, batch, hidden})), "");
  EXPECT_TRUE(why_not(next, random_normal({ragged, batch, hidden}))
                  .starts_with("not cut: op gather may fail for values of finished "
                               "entries\n"));
}

TEST_F(RowsOfOpsTest, LoopIsNotCutIfDrawsOfFinishedEntriesAreSummed) {
  // The numbers that finished entries drew count in a sum over entries, and therefore in a
  // gradient.
  const Dim batch = this->batch, hidden = this->hidden;
  const auto next = [=](const Tensor& y) {
    const Tensor dropped = y * random_uniform({batch, hidden});
    return dropped + sum(square(dropped), batch) * 0.1;
  };
  EXPECT_NE(why_not(next, random_normal({ragged, batch, hidden})), "");
}

TEST_F(RowsOfOpsTest, LoopIsNotCutIfUpdatesInPaddingWouldBeAdded) {
  // In a row block, words have no lengths. The gradient of gather adds one update for each word.
  const Dim words("words", tensor({2, 1, 3, 0, 2, 1, 3}, {batch}));
  const Tensor ids = tensor(std::vector<std::int32_t>(21, 5), {batch, words});
  const auto next = [&](const Tensor& y) {
    const Tensor each = ids + cast(sum(y, hidden) * 0., i32);  // else it would leave the loop
    return y + sum(gather(y, each, hidden, {.clip = true}), words) * 0.1;
  };
  const std::string why = why_not(next, random_normal({ragged, batch, hidden}));
  EXPECT_NE(why.find("not cut: op scatter_add reads the lengths of words"), why.npos) << why;
}

}  // namespace
}  // namespace reel
