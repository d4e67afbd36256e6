// Memory policies of loops around other loops, branches, lists and draws: gradients have the same
// bits as with all residuals saved, in every mode. The bodies contain products; sums of these over
// iterations would have other bits in another order.
#include <gtest/gtest.h>

#include <functional>

#include "reel/tests/frontend/policies/policies.h"
#include "reel/trace/executors/spill/spilled.h"

namespace reel {
namespace {

/// w, u: [h, to] of equal sizes, x: [time, batch, h].
struct Problem {
  Tensor w, u, x;

  Dim time() const { return x.dim("time"); }
  Dim batch() const { return x.dim("batch"); }
  Dim h() const { return x.dim("h"); }
  Tensor times(const Tensor& h, const Tensor& matrix) const {
    return rename(matmul(h, matrix, this->h()), matrix.dims()[1], this->h());
  }
  /// An RNN, with a product that does not depend on the state.
  Tensor step(const Tensor& h, const Tensor& x) const {
    return tanh(times(h, w) + times(tanh(x), u));
  }
  Tensor start() const { return zeros({batch(), h()}); }
};
Problem problem(std::int64_t steps) {
  manual_seed(3);
  const Dim time("time", steps), batch("batch", 2), h("h", 8), to("to", 8);
  return {random_normal({h, to}) * 0.3f, random_normal({h, to}) * 0.3f,
          random_normal({time, batch, h})};
}

/// Computes an iteration from a slice and the state. The policy is for inner loops.
using Step =
    std::function<Tensor(const Problem&, const LoopPolicy&, const Tensor& x, const Tensor& h)>;
/// A loss. The first policy is for its loop, the second for inner loops.
using Loss = std::function<Tensor(const Problem&, const LoopPolicy&, const LoopPolicy&)>;

Tensor plain_step(const Problem& p, const LoopPolicy&, const Tensor& x, const Tensor& h) {
  return p.step(h, x);
}
Tensor counted_inside(const Problem& p, const LoopPolicy& policy, const Tensor& x,
                      const Tensor& h) {
  return fori_loop(0, 3, [&](const Tensor&, const Tensor& h) { return p.step(h, x); }, h,
                   {.checkpoint = policy.checkpoint, .swap_memory = policy.swap_memory});
}
/// A loop of unknown length, from two to five iterations.
Tensor while_inside(const Problem& p, const LoopPolicy& policy, const Tensor& x, const Tensor& h) {
  const auto goes_on = [](const Tensor& k, const Tensor& h) {
    return k < 2 || (sum(h) > 1.f && k < 5);
  };
  const auto body = [&](const Tensor& k, const Tensor& h) {
    return std::tuple{k + 1, p.step(h, x)};
  };
  return std::get<1>(
      while_loop(goes_on, body, std::tuple{0, h},
                 {.checkpoint = policy.checkpoint, .swap_memory = policy.swap_memory}));
}
template <int Steps, class Body>
Tensor scanned(const LoopPolicy& policy, const Tensor& h, const Body& body) {
  const Dim inner("inner", Steps);
  return scan(Scan{.spatial_dim = inner,
                   .initial = h,
                   .xs = cast(range(inner), f32) * 0.1f,
                   .body =
                       [&](const Tensor& x, const Tensor& h) {
                         return std::pair{None{}, body(x, h)};
                       },
                   .checkpoint = policy.checkpoint,
                   .swap_memory = policy.swap_memory})
      .state;
}
template <int Steps>
Tensor scan_inside(const Problem& p, const LoopPolicy& policy, const Tensor& x, const Tensor& h) {
  return scanned<Steps>(policy, h,
                        [&](const Tensor& a, const Tensor& h) { return p.step(h, x * a); });
}
Tensor scan_in_a_scan(const Problem& p, const LoopPolicy& policy, const Tensor& x,
                      const Tensor& h) {
  return scanned<2>(
      {}, h, [&](const Tensor& a, const Tensor& h) { return scan_inside<3>(p, policy, x * a, h); });
}
Tensor while_in_a_scan(const Problem& p, const LoopPolicy& policy, const Tensor& x,
                       const Tensor& h) {
  return scanned<2>(
      policy, h, [&](const Tensor& a, const Tensor& h) { return while_inside(p, {}, x * a, h); });
}
Tensor branches_of_scans(const Problem& p, const LoopPolicy& policy, const Tensor& x,
                         const Tensor& h) {
  return cond(
      sum(h) < 0.5f, [&] { return scan_inside<3>(p, policy, x, h); },
      [&] { return scan_inside<3>(p, policy, x + 1.f, h); });
}
Tensor branches(const Problem& p, const LoopPolicy&, const Tensor& x, const Tensor& h) {
  return cond(
      sum(h) < 0.5f, [&] { return p.step(h, x); }, [&] { return tanh(p.times(h, p.u)) + x; });
}
Tensor draws(const Problem& p, const LoopPolicy&, const Tensor& x, const Tensor& h) {
  return p.step(h * random_uniform({p.batch(), p.h()}, 0.5, 1.5), x);
}
/// Captures a tensor along the loop's own dim.
Tensor attends(const Problem& p, const LoopPolicy&, const Tensor& x, const Tensor& h) {
  const Tensor weights = softmax(sum(p.x * h, p.h()), p.time());
  return p.step(h, x + sum(weights * p.x, p.time()));
}

Loss scan_of(const Step& step) {
  return [step](const Problem& p, const LoopPolicy& policy, const LoopPolicy& inside) {
    const auto body = [&](const Tensor& x, const Tensor& h) {
      const Tensor next = step(p, inside, x, h);
      return std::pair{next, next};
    };
    return sum(square(scan(Scan{.spatial_dim = p.time(),
                                .initial = p.start(),
                                .xs = p.x,
                                .body = body,
                                .checkpoint = policy.checkpoint,
                                .swap_memory = policy.swap_memory})
                          .ys));
  };
}
Loss while_of(const Step& step) {
  return [step](const Problem& p, const LoopPolicy& policy, const LoopPolicy& inside) {
    const auto goes_on = [&](const Tensor& k, const Tensor& h) {
      return k < p.time().size() || sum(h) > 1e9f;
    };
    const auto body = [&](const Tensor& k, const Tensor& h) {
      return std::tuple{k + 1, step(p, inside, gather(p.x, k, p.time()), h)};
    };
    return sum(square(std::get<1>(
        while_loop(goes_on, body, std::tuple{0, p.start()},
                   {.checkpoint = policy.checkpoint, .swap_memory = policy.swap_memory}))));
  };
}
Tensor of_arrays(const Problem& p, const LoopPolicy& policy, const LoopPolicy&) {
  const auto body = [&](const Tensor& x, const Tensor& h) {
    const Tensor next = p.step(h, x);
    return std::pair{next, next};
  };
  return sum(square(scan(Scan{.spatial_dim = p.time(),
                              .initial = p.start(),
                              .xs = p.x,
                              .body = body,
                              .return_tensor_arrays = std::true_type{},
                              .checkpoint = policy.checkpoint,
                              .swap_memory = policy.swap_memory})
                        .ys.stack(p.time())));
}
Tensor of_an_array_that_is_read(const Problem& p, const LoopPolicy& policy, const LoopPolicy&) {
  const TensorArray rows = TensorArray::unstack(p.x, p.time());
  return sum(square(fori_loop(
      0, p.time().size(), [&](const Tensor& k, const Tensor& h) { return p.step(h, rows.read(k)); },
      p.start(), {.checkpoint = policy.checkpoint, .swap_memory = policy.swap_memory})));
}

struct Case {
  const char* name;
  Loss loss;
  bool has_loops_inside;
};
const std::vector<Case>& cases() {
  static const std::vector<Case> all{
      {"scan of counted loops", scan_of(counted_inside), true},
      {"scan of while loops", scan_of(while_inside), true},
      {"scan of scans", scan_of(scan_inside<3>), true},
      {"scan of scans of several chunks", scan_of(scan_inside<70>), true},
      {"scan of scans of scans", scan_of(scan_in_a_scan), true},
      {"scan of scans of while loops", scan_of(while_in_a_scan), true},
      {"scan of branches of scans", scan_of(branches_of_scans), true},
      {"while loop of counted loops", while_of(counted_inside), true},
      {"while loop of while loops", while_of(while_inside), true},
      {"while loop of scans", while_of(scan_inside<3>), true},
      {"while loop", while_of(plain_step), false},
      {"branches", scan_of(branches), false},
      {"draws", scan_of(draws), false},
      {"attention to what is scanned", scan_of(attends), false},
      {"arrays", of_arrays, false},
      {"an array that is read", of_an_array_that_is_read, false},
  };
  return all;
}

class PoliciesOfBodiesTest : public InEveryMode {};

TEST_P(PoliciesOfBodiesTest, GradientsHaveTheBitsOfKeepingAll) {
  const std::vector<std::pair<const char*, LoopPolicy>> policies{
      {"all", {}},
      {"every 1", {Checkpoint::every(1)}},
      {"every 4", {Checkpoint::every(4)}},
      {"budget 1000", {Checkpoint::budget(1000)}},
      {"in a file", {{}, true}}};
  SmallSpillBlocks blocks;
  for (const Case& c : cases()) {
    const Problem p = problem(7);
    const auto gradient = [&](const LoopPolicy& policy, const LoopPolicy& inside) {
      manual_seed(9);
      return run(value_and_grad([&](const Problem& p) { return c.loss(p, policy, inside); }))(p);
    };
    const auto expected = gradient({}, {});
    for (const auto& [name, policy] : policies)
      for (const auto& [name_inside, inside] : policies) {
        if (!c.has_loops_inside && name_inside != policies[0].first) continue;
        SCOPED_TRACE(str(c.name, ", ", name, ", of those inside ", name_inside));
        const auto actual = gradient(policy, inside);
        expect_same_bits(actual.first, expected.first);
        expect_same_leaves(actual.second, expected.second);
      }
  }
  EXPECT_GT(blocks.written(), 0);
}

// Long enough for several chunks of the outer and the inner loops.
TEST(PoliciesOfBodiesInChunksTest, GradientsHaveTheBitsOfKeepingAll) {
  for (const Case& c : cases()) {
    const Problem p = problem(70);
    const auto gradient = [&](const LoopPolicy& policy, const LoopPolicy& inside) {
      manual_seed(9);
      return jit(value_and_grad([&](const Problem& p) { return c.loss(p, policy, inside); }))(p);
    };
    const auto expected = gradient({}, {});
    SmallSpillBlocks blocks;
    const Checkpoint recomputes =
        Checkpoint().where([](const StepValue&) { return Saving::recompute; });
    for (const auto& [policy, inside] :
         {std::pair<LoopPolicy, LoopPolicy>{{Checkpoint::every(4)}, {}},
          {{Checkpoint::budget(3000)}, {Checkpoint::every(2)}},
          {{}, {Checkpoint::budget(1000)}},
          {{{}, true}, {}},
          {{Checkpoint::every(30), true}, {{}, true}},
          {{recomputes}, {}},
          {{recomputes}, {recomputes}}}) {
      SCOPED_TRACE(str(c.name, ", ", text_of(policy.checkpoint),
                       policy.swap_memory.spill() ? ", in a file" : "", ", of those inside ",
                       text_of(inside.checkpoint)));
      const auto actual = gradient(policy, inside);
      expect_same_bits(actual.first, expected.first);
      expect_same_leaves(actual.second, expected.second);
    }
  }
}
REEL_IN_EVERY_MODE(PoliciesOfBodiesTest);

}  // namespace
}  // namespace reel
