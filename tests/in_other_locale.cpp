// Runs all tests of the program in another locale if REEL_TEST_LOCALE=other.
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>

#include "reel/tests/other_locale.h"

namespace reel {
namespace {

class InOtherLocale : public ::testing::Environment {
 public:
  void SetUp() override {
    if (std::getenv("REEL_TEST_LOCALE")) other_ = std::make_unique<OtherLocale>();
  }
  void TearDown() override { other_.reset(); }

 private:
  std::unique_ptr<OtherLocale> other_;
};

[[maybe_unused]] ::testing::Environment* const in_other_locale =
    ::testing::AddGlobalTestEnvironment(new InOtherLocale);

}  // namespace
}  // namespace reel
