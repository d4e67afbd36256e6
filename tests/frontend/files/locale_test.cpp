// Files, texts and messages do not depend on the program's locale.
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "reel/core/base/quantities.h"
#include "reel/reel.h"
#include "reel/tests/check.h"
#include "reel/tests/other_locale.h"
#include "reel/tests/own_folder.h"

namespace reel {
namespace {

class LocaleTest : public InOwnFolder {
 protected:
  LocaleTest() : InOwnFolder("file") {}

  /// Expects that make() returns the same in another locale.
  template <class Make>
  static void expect_same(const Make& make) {
    const std::string expected = make();
    const OtherLocale other;
    const std::string actual = make();
    const auto [a, b] =
        std::mismatch(actual.begin(), actual.end(), expected.begin(), expected.end());
    EXPECT_EQ(std::string(a, actual.end()).substr(0, 80),
              std::string(b, expected.end()).substr(0, 80));
  }
};

Tensor wide_loop(const Tensor& x) {
  const auto body = [](const Tensor&, const Tensor& s) { return tanh(s) * 1234.5f; };
  return sum(fori_loop(0, 1500, body, x, {.name = "wide"}));
}

TEST_F(LocaleTest, FilesAreWrittenAndReadAsInAnyOther) {
  const auto file = [&](const auto& save) {
    save();
    return bytes_of(path);
  };
  manual_seed(123456);
  const Tensor x = full({1500, 2}, 0.25);
  expect_same([&] { return file([&] { save_npy(path, x); }); });
  expect_same([&] { return file([&] { save_safetensors(path, std::pair{x, x}); }); });
  expect_same([&] { return file([&] { save_checkpoint(path, x, {{"a", "b"}}); }); });
  const OtherLocale other;
  Tensor loaded = zeros({1500, 2});
  load_checkpoint(path, loaded);
  expect_same_bits(loaded, x);
  save_npy(path, x);
  expect_same_bits(load_npy(path), x);
  Sequence sequence(path);
  EXPECT_EQ(sequence.next(Dim(1200)).numel(), 2400);
}

TEST_F(LocaleTest, MessagesAreTheSame) {
  expect_same([] {
    return message_of<ShapeError>([] { return zeros({1500}) + zeros({Dim("time", 2500)}); });
  });
  expect_same([] {
    return message_of<IndexError>([] { return gather(zeros({1500}), scalar(123456), 0); });
  });
  expect_same([&] { return message_of<IoError>([&] { return load_npy(path + ".not"); }); });
  expect_same([&] {
    write(path, std::string(1500, '\1'));
    return message_of<IoError>([&] { return load_npy(path); });
  });
}

TEST_F(LocaleTest, PrintedTextIsTheSame) {
  const Dim time("time", 12345);
  expect_same([&] {
    return str(full({time, Dim("two", 2)}, 1234.5), tensor({1234567, -1234567}));
  });
  expect_same([&] { return str(range(time).type(), time, Dims{time, Dim(4321)}); });
  expect_same([] { return str(scalar(true), scalar(0.5, f64), scalar(1e20)); });
  expect_same([] { return bytes_text(1234567) + time_text(1.5e-3) + rate_text(1.5e9, "FLOP/s"); });
  expect_same([] { return counted(12345, "step") + fixed_text(1234.56, 1) + digits_text(0.5, 3); });
}

/// A stream with the user's locale prints tensors as one with the classic locale.
TEST_F(LocaleTest, ValuesOnTheUsersStreamAreTheSame) {
  const auto printed = [](const auto& value) {
    std::ostringstream out;
    out << value;
    return out.str();
  };
  const Dim time("time", 12345);
  const auto traced = jit(wide_loop);
  traced(ones({1500}));
  expect_same([&] { return printed(full({time}, 1234.5)); });
  expect_same([&] { return printed(Tensor(full({time}, 1234.5)).type()) + printed(time); });
  expect_same([&] { return printed(Dims{time, Dim(4321)}) + printed(Dim(4321)); });
  expect_same([&] { return printed(traced.graph()); });
  expect_same([&] { return printed(saved_values(wide_loop)(ones({1500}))); });
}

TEST_F(LocaleTest, GraphsPicturesAndProfilesAreTheSame) {
  const auto traced = jit(wide_loop, {.name = "traced", .profile = true});
  traced(ones({1500}));
  expect_same([&] { return traced.graph().to_dot(); });
  expect_same([&] { return traced.explain(); });
  expect_same([&] {
    traced.graph().write_html(path);
    return bytes_of(path);
  });
  const RunProfile profile = traced.profile();
  expect_same([&] { return profile.summary(); });
  expect_same([&] {
    profile.write_chrome_trace(path);
    return bytes_of(path);
  });
}

TEST_F(LocaleTest, ProgressIsTheSame) {
  expect_same([] {
    double seconds = 0;
    std::ostringstream out;
    ProgressOptions options;
    options.out = &out;
    options.is_terminal = true;
    options.width = 80;
    options.clock = [&] { return seconds; };
    Progress progress(12345, "training", options);
    for (const int step : {1, 2000, 12345}) {
      seconds += 1000.5;
      progress.update(step, {{"loss", 1234.5678}, {"rate", 0.125}});
    }
    return out.str();
  });
}

/// A new locale must not cause a second trace.
TEST_F(LocaleTest, OneTraceServesEveryLocale) {
  const auto traced = jit(wide_loop);
  traced(ones({1500}));
  const OtherLocale other;
  traced(ones({1500}));
  EXPECT_EQ(traced.trace_count(), 1);
}

}  // namespace
}  // namespace reel
