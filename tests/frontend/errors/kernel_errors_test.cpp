// Errors of kernels that name nothing, and failed allocations: messages name the op and the
// iteration in every mode.
#include <gtest/gtest.h>

#include <exception>
#include <stdexcept>

#include "reel/core/base/quantities.h"
#include "reel/core/op/bind.h"
#include "reel/core/runtime/memory.h"
#include "reel/tests/modes.h"

namespace reel {
namespace {

using KernelErrorsTest = InEveryMode;
REEL_IN_EVERY_MODE(KernelErrorsTest);

struct Burnt : std::runtime_error {
  using std::runtime_error::runtime_error;
};

template <void (*act)()>
Tensor fails_at_four(const Tensor& x) {
  static const Op op{
      .name = "fails",
      .type = [](TypeArgs& a) { a.out.push_back(a.in[0]); },
      .kernel =
          [](KernelArgs& a) {
            if (a.input(0).item<std::int32_t>() == 4) act();
            a.alias(0, 0);
          },
      .storage = OpStorage::input,
      .no_vjp = "is not needed",
      .has_effect = true,
  };
  return bind(op, {x});
}

template <void (*act)()>
Tensor loop(const Tensor& n) {
  return while_loop([&](const Tensor& i) { return i < n; },
                    [](const Tensor& i) {
                      return cond(
                          i > 2, [&] { return fails_at_four<act>(i) + 1; }, [&] { return i + 1; });
                    },
                    scalar(0), {.name = "decode"});
}

void burn() { throw Burnt("disk on fire"); }
void find_nothing() { throw ArgumentError("there is nothing"); }
void run_out() { throw std::bad_alloc(); }
constexpr std::int64_t kMany = std::int64_t{1} << 45;
void ask_for_much() { allocate_block(TensorType(f32, {kMany})); }
void break_promise() { throw InternalError("two and two are five"); }

TEST_P(KernelErrorsTest, AnExceptionIsNestedInAnErrorThatNamesOpAndIteration) {
  const auto f = run(loop<burn>);
  for (int call = 0; call < 2; ++call) {
    try {
      f(scalar(9));
      ADD_FAILURE() << "nothing was thrown";
    } catch (const Error& error) {
      EXPECT_EQ(error.message(), "fails: disk on fire\nin iteration 4 of while_loop \"decode\"");
      EXPECT_THROW(std::rethrow_if_nested(error), Burnt);
    }
  }
  expect_values(f(scalar(3)), {3});
}

TEST_P(KernelErrorsTest, AnErrorThatNamesNothingIsGivenItsOp) {
  const auto f = run(loop<find_nothing>);
  EXPECT_EQ(message_of<ArgumentError>([&] { f(scalar(9)); }),
            "there is nothing\nin fails\nin iteration 4 of while_loop \"decode\"");
}

TEST_P(KernelErrorsTest, MissingMemoryForTemporaryDataIsAnError) {
  const auto f = run(loop<run_out>);
  EXPECT_EQ(
      message_of<MemoryError>([&] { f(scalar(9)); }),
      "fails: there is no memory for its temporary data\nin iteration 4 of while_loop \"decode\"");
}

TEST_P(KernelErrorsTest, NoMemoryForATensorSaysHowMuchItWouldHaveBeen) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers end the program where there is no memory";
#endif
  const auto f = run(loop<ask_for_much>);
  EXPECT_EQ(message_of<MemoryError>([&] { f(scalar(9)); }),
            str("fails: there is no memory for ", bytes_text(4 * kMany),
                "\nin iteration 4 of while_loop \"decode\""));
}

TEST_P(KernelErrorsTest, ADefectOfTheLibraryStaysOne) {
  const auto f = run(loop<break_promise>);
  EXPECT_EQ(message_of<InternalError>([&] { f(scalar(9)); }),
            "reel, internal error: two and two are five");
}

TEST_P(KernelErrorsTest, OutsideOfLoopsOnlyTheOpIsNamed) {
  const auto f = run(fails_at_four<burn>);
  EXPECT_EQ(message_of<Error>([&] { f(scalar(4)); }), "fails: disk on fire");
}

}  // namespace
}  // namespace reel
