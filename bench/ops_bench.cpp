// Times public ops that libtorch has too, eagerly, on one thread, at three sizes. The rows of the
// table that end in ratio_to_libtorch are below 1 if Reel is faster.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iostream>

#include "harness.h"
#include "libtorch.h"
#include "ops.h"
#include "reel/reel.h"

namespace reel::bench {
namespace {

Tensor operand(const OpInput& input, std::size_t number) {
  const Dims dims(input.sizes.begin(), input.sizes.end());
  const Tensor all = tensor(elements_of(input, number), dims);
  switch (input.values) {
    case OpInput::Values::boolean:
      return cast(all, boolean);
    case OpInput::Values::index:
      return cast(all, i32);
    default:
      return all;
  }
}

/// Ends the program if the results of both libraries differ.
void check_agreement(const std::string& name, const Tensor& ours,
                     const std::vector<float>& theirs) {
  const Tensor as_f32 = cast(ours, f32);
  const float* const made = as_f32.data<float>();
  bool agree = as_f32.numel() == std::ssize(theirs);
  for (std::size_t i = 0; agree && i < theirs.size(); ++i) {
    const float a = made[i], b = theirs[i];
    agree = a == b || (std::isnan(a) && std::isnan(b)) ||
            std::abs(a - b) <= 1e-3f * std::max({1.f, std::abs(a), std::abs(b)});
  }
  if (agree) return;
  std::cerr << name << ": the results differ from libtorch's\n";
  std::exit(1);
}

void compare(Group& group, const OpCase& of, std::int64_t rows, std::int64_t columns) {
  const std::string name = str(of.name, " rows=", rows, " columns=", columns);
  if (!group.wants(name)) return;
  Tensors operands;
  for (std::size_t i = 0; i < of.inputs.size(); ++i) operands.push_back(operand(of.inputs[i], i));
  std::vector<Contender> contenders{{"reel", [&] { of.ours(operands); }}};
  if (libtorch()) {
    const OpRun theirs = libtorch()->op(of, rows, columns);
    if (!of.may_differ) check_agreement(name, of.ours(operands), theirs.result());
    contenders.push_back({"libtorch", theirs.run});
  }
  group.compare(name, {"us", "us", 1e6}, contenders, Clock::processor);
}

}  // namespace
}  // namespace reel::bench

int main(int argc, char** argv) {
  using namespace reel::bench;
  Group group("ops", argc, argv);
  start_on_one_thread();
  reel::manual_seed(1);
  for (const auto& [rows, columns] : {std::pair{32, 32}, {512, 128}, {2048, 1024}})
    for (const OpCase& of : op_cases(rows, columns)) compare(group, of, rows, columns);
  std::cout << "slower than libtorch:\n";
  for (const auto& [name, ratio] : group.above("ratio_to_libtorch", 1))
    std::cout << "  " << reel::str(std::round(ratio * 100) / 100) << "  " << name << '\n';
  return group.finish();
}
