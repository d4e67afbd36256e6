// Carries that an iteration changes in few places: which are updated in place, with the results of
// fresh copies.
#include <functional>

#include "reel/reel.h"
#include "reel/tests/check.h"

namespace reel {
namespace {

class UpdatedCarriesTest : public ::testing::Test {
 protected:
  using Loop = std::function<std::vector<Tensor>(const Tensor& table, const Tensor& ids)>;

  UpdatedCarriesTest() { manual_seed(1); }

  /// Expects that a plan gives eager mode's results twice, leaves its arguments unchanged, and
  /// updates `in_place` carries in place.
  void check(const Loop& loop, int in_place) {
    for (const int steps : {0, 1, 5}) {
      const Tensor table = random_normal({6, 3}), ids = ids_of(steps);
      const std::vector<float> before = table.to_vector<float>();
      const auto f = jit(loop);
      const std::vector<Tensor> expected = loop(table, ids);
      for (int run = 0; run < 2; ++run) {
        const std::vector<Tensor> actual = f(table, ids);
        ASSERT_EQ(actual.size(), expected.size());
        for (std::size_t k = 0; k < actual.size(); ++k) expect_same_bits(actual[k], expected[k]);
        EXPECT_EQ(table.to_vector<float>(), before);
      }
      if (steps == 0) continue;  // no plan was made
      const std::string text = f.explain();
      const std::string line = "updated in place: ";
      const std::size_t at = text.find(line);
      const std::string types = in_place == 0 ? "" : in_place == 1 ? "f32[6,3]" : "2 x f32[6,3]";
      EXPECT_EQ(at == std::string::npos ? "" : text.substr(at + line.size(), types.size()), types)
          << text;
      EXPECT_EQ(at == std::string::npos, in_place == 0) << text;
    }
  }
  static Tensor ids_of(int steps) {
    std::vector<int> ids(static_cast<std::size_t>(2 * steps));
    for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int>(i * i % 6);
    return reshape(tensor(ids), {steps, 2});
  }
  /// Returns a scan with the table as state. body: (ids, table) -> {y, table}.
  template <class Body>
  static Loop scanned(Body body) {
    return [body](const Tensor& table, const Tensor& ids) {
      const auto result = scan(Scan{.initial = table, .xs = ids, .body = body});
      return std::vector{result.ys, result.state};
    };
  }
  using Two = std::pair<Tensor, Tensor>;
  /// Returns the same scan with two tables as state.
  template <class Body>
  static Loop scanned_pair(Body body) {
    return [body](const Tensor& table, const Tensor& ids) {
      const auto [a, b] =
          scan(Scan{.initial = Two{table, table * 2.f}, .xs = ids, .body = body}).state;
      return std::vector{a, b};
    };
  }
  /// Returns new values for the rows that ids select, computed from the old ones.
  static Tensor changed(const Tensor& table, const Tensor& ids) {
    return tanh(gather(table, ids, 0)) + 0.5f;
  }
};

TEST_F(UpdatedCarriesTest, CarriesReadBeforeTheUpdateLieInPlace) {
  check(scanned([](const Tensor& ids, const Tensor& h) {
          return std::pair{gather(h, ids, 0), scatter_add(h, ids, changed(h, ids), 0)};
        }),
        1);
  check(scanned([](const Tensor& ids, const Tensor& h) {
          return std::pair{gather(h, ids, 0), scatter_max(h, ids, changed(h, ids), 0)};
        }),
        1);
}

TEST_F(UpdatedCarriesTest, CarriesReadAfterTheUpdateDoNotLieInPlace) {
  check(scanned([](const Tensor& ids, const Tensor& h) {
          const Tensor next = scatter_add(h, ids, changed(h, ids), 0);
          return std::pair{sum(h * next), next};  // reads the old table
        }),
        0);
  check(scanned([](const Tensor& ids, const Tensor& h) {
          const Tensor flat = reshape(h, {18});  // reads through a view
          const Tensor next = scatter_add(h, ids, changed(h, ids), 0);
          return std::pair{sum(flat * reshape(next, {18})), next};
        }),
        0);
}

TEST_F(UpdatedCarriesTest, CarriesStackedBeforeTheUpdateDoNotLieInPlace) {
  check(scanned([](const Tensor& ids, const Tensor& h) {
          return std::pair{h, scatter_add(h, ids, changed(h, ids), 0)};
        }),
        0);
}

TEST_F(UpdatedCarriesTest, CarriesStackedAfterTheUpdateLieInPlace) {
  check(scanned([](const Tensor& ids, const Tensor& h) {
          const Tensor next = scatter_add(h, ids, changed(h, ids), 0);
          return std::pair{next, next};
        }),
        1);
}

TEST_F(UpdatedCarriesTest, TwoThatChangePlacesDoNot) {
  check(scanned_pair([](const Tensor& ids, const Two& h) {
          return std::pair{None{}, Two{scatter_add(h.second, ids, changed(h.first, ids), 0),
                                       scatter_add(h.first, ids, changed(h.second, ids), 0)}};
        }),
        0);
  // Both tables are read before one is written.
  check(scanned_pair([](const Tensor& ids, const Two& h) {
          const Tensor rows = changed(h.first, ids), others = changed(h.second, ids);
          return std::pair{None{}, Two{scatter_add(h.first, ids, others, 0),
                                       scatter_add(h.second, ids, rows, 0)}};
        }),
        2);
}

TEST_F(UpdatedCarriesTest, CarriesAddedToThemselvesDoNotLieInPlace) {
  check(
      [](const Tensor& table, const Tensor&) {
        const auto body = [](const Tensor&, const Tensor& h) {
          return scatter_add(h, range(6), h, 0);
        };
        return std::vector{fori_loop(0, 3, body, table)};
      },
      0);
  check(
      [](const Tensor& table, const Tensor&) {
        const auto body = [](const Tensor&, const Tensor& h) {
          return scatter_add(h, range(6), reshape(reshape(h, {18}), {6, 3}), 0);
        };
        return std::vector{fori_loop(0, 3, body, table)};
      },
      0);
}

TEST_F(UpdatedCarriesTest, UntilItsConditionHasSeenIt) {
  const Loop loop = [](const Tensor& table, const Tensor&) {
    const auto body = [](const Tensor& h) {
      return scatter_add(h, tensor({1, 3}), full({2, 3}, 1.f), 0);
    };
    return std::vector{while_loop([](const Tensor& h) { return sum(h) < 40.f; }, body, table)};
  };
  check(loop, 1);
}

TEST_F(UpdatedCarriesTest, InALoopInALoop) {
  check(
      [](const Tensor& table, const Tensor& ids) {
        const auto outer = [&](const Tensor&, const Tensor& h) {
          const auto body = [](const Tensor& ids, const Tensor& h) {
            return std::pair{None{}, scatter_add(h, ids, changed(h, ids), 0)};
          };
          const Tensor last = scan(Scan{.initial = h, .xs = ids, .body = body}).state;
          return last * 0.5f + h;  // both values are live
        };
        return std::vector{fori_loop(0, 3, outer, table)};
      },
      1);
}

// A failure in the middle must not have written into the arguments.
TEST_F(UpdatedCarriesTest, AFailureLeavesArgumentsAlone) {
  const auto f = jit([](const Tensor& table, const Tensor& ids) {
    const auto body = [](const Tensor& ids, const Tensor& h) {
      return std::pair{None{}, scatter_add(h, ids, ones({2, 3}), 0)};
    };
    return scan(Scan{.initial = table, .xs = ids, .body = body}).state;
  });
  const Tensor table = ones({6, 3});
  EXPECT_EQ(message_of<IndexError>([&] {
              f(table, tensor({{0, 1}, {2, 9}}));
            }),
            "scatter_add: index 9 at [1] of i32[2] is out of range for axis 0 of f32[6,3], which "
            "has size 6\nin iteration 1 of scan \"scan\"");
  expect_values(table, std::vector<double>(18, 1));
}

// An iteration costs the rows that it changes: the table is in the state of a training loop.
TEST_F(UpdatedCarriesTest, ATableThatIsTrainedInALoop) {
  const auto train = [](EmbeddingTable table, const Tensor& ids) {
    const auto body = [](const Tensor& ids,
                         const std::pair<EmbeddingTable, Adam<EmbeddingTable>>& s) {
      auto [table, adam] = s;
      const auto loss = [&](const EmbeddingTable& table) {
        return sum(square(gather(table, ids) - 1.f));
      };
      adam.update(table, grad(loss)(table));
      return std::pair{None{}, std::pair{table, adam}};
    };
    return scan(Scan{.initial = std::pair{table, Adam<EmbeddingTable>(table)},
                     .xs = ids,
                     .body = body})
        .state.first.dense();
  };
  const EmbeddingTable table(random_normal({6, 3}));
  const Tensor ids = ids_of(4);
  const auto f = jit(train);
  expect_all_close(f(table, ids), train(table, ids), 1e-6);
  // The table and both moments of Adam.
  EXPECT_NE(f.explain().find("updated in place: 3 x f32[6,3]\n"), std::string::npos) << f.explain();
}

/// Writes one place of each row of a table in each iteration, as a cache of keys does.
Tensor filled(const Tensor& table, const Tensor& xs) {
  const Dim batch = table.dims()[0], positions = table.dims()[1], time = xs.dims()[0];
  const auto body = [=](const Tensor& i, const Tensor& x, const Tensor& h) {
    const Tensor at = range(batch) * 3 + i;
    const Tensor before = gather(h, at, positions);
    return std::pair{before, set_at(h, at, x + before, positions)};
  };
  const auto [ys, last, dim] =
      scan(Scan{.spatial_dim = time, .initial = table, .xs = xs, .body = body});
  return sum(square(last)) + sum(ys);
}

TEST(UpdatedPlacesTest, OnePlaceOfEachRowIsWrittenInPlace) {
  manual_seed(2);
  const Dim batch("batch", 2), time("time", 5), width("width", 4);
  for (const int size : {64, 2048}) {
    const Dim positions("positions", size);
    const Tensor table = random_normal({batch, positions, width});
    const Tensor xs = random_normal({time, batch, width});
    const std::vector<float> before = table.to_vector<float>();
    const auto f = jit(filled);
    expect_all_close(f(table, xs), filled(table, xs), 1e-3);
    EXPECT_EQ(table.to_vector<float>(), before);
    const bool is_in_place = f.explain().find("updated in place: f32[") != std::string::npos;
    EXPECT_EQ(is_in_place, size == 2048) << f.explain();  // small ones are chosen by element
    const auto gradients = [](const Tensor& table, const Tensor& xs) {
      return grad([](const std::pair<Tensor, Tensor>& in) { return filled(in.first, in.second); })(
          std::pair{table, xs});
    };
    const auto [of_table, of_xs] = gradients(table, xs);
    const auto [jitted_table, jitted_xs] = jit(gradients)(table, xs);
    expect_all_close(jitted_table, of_table, 1e-4);
    expect_all_close(jitted_xs, of_xs, 1e-4);
    // Places that no iteration writes have the gradient of their own square.
    expect_all_close(gather(of_table, scalar(30), positions),
                     gather(table, scalar(30), positions) * 2);
  }
}

TEST(UpdatedPlacesTest, PlacesOutOfRangeAreErrorsInLoops) {
  const Dim batch("batch", 2), time("time", 3), width("width", 4), positions("positions", 2048);
  const auto f = jit([=](const Tensor& table, const Tensor& at) {
    return scan(Scan{.spatial_dim = time,
                     .initial = table,
                     .xs = at,
                     .body =
                         [=](const Tensor& at, const Tensor& h) {
                           return std::pair{None{}, set_at(h, at, 1.f, positions)};
                         }})
        .state;
  });
  const Tensor table = zeros({batch, positions, width});
  expect_values(sum(f(table, tensor({0, 1, -1, 2047, 5, -2048}, {time, batch}))), {4 * 6});
  EXPECT_THROW(f(table, tensor({0, 1, 2048, 0, 0, 0}, {time, batch})), IndexError);
}

}  // namespace
}  // namespace reel
