// random_state and set_random_state.
#include "reel/core/functions/random.h"

#include "reel/tests/modes.h"

namespace reel {
namespace {

using RandomStateTest = InEveryMode;
REEL_IN_EVERY_MODE(RandomStateTest);

TEST_P(RandomStateTest, AStreamSetToItDrawsTheSame) {
  const auto draw =
      run([](const Tensor& x) { return x + random_normal({3}) + random_uniform({3}); });
  manual_seed(7);
  draw(zeros({3}));
  const Tensor state = random_state();
  const Tensor expected = draw(zeros({3})), next = draw(zeros({3}));
  manual_seed(8);
  set_random_state(state);
  expect_same_bits(draw(zeros({3})), expected);
  expect_same_bits(draw(zeros({3})), next);
}

TEST(RandomStreamTest, TheStreamGoesOnFromAState) {
  manual_seed(0xFFFFFFFFFFFFFFFF);
  random_normal({2});
  const Tensor state = random_state();
  expect_values(state, {-1, 1});
  const Tensor next = random_normal({4});
  manual_seed(1);
  set_random_state(state);
  expect_same_bits(random_normal({4}), next);
}

TEST(RandomStreamTest, InvalidStatesAreRefused) {
  EXPECT_EQ(message_of<ArgumentError>([] {
              set_random_state(zeros({2}));
              return 0;
            }),
            "set_random_state: a state is i64[2], as random_state() gives it, not f32[2]");
  EXPECT_EQ(message_of<ArgumentError>([] {
              set_random_state(tensor({1, -1}, {}, i64));
              return 0;
            }),
            "set_random_state: -1 numbers cannot have been taken from a stream");
  EXPECT_EQ(message_of<TraceError>([] {
              return jit([](const Tensor& x) { return x + cast(sum(random_state(), 0), f32); })(
                  ones({2}));
            }),
            "random_state: a trace has no stream of its own; call it outside of the trace");
}

}  // namespace
}  // namespace reel
