#include "reel/tests/fuzz/relations/trial.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "reel/core/base/str.h"
#include "reel/core/ops.h"
#include "reel/tests/fuzz/compare.h"
#include "reel/tests/fuzz/shrinking/variants.h"

namespace reel::fuzz {
namespace {

std::uint64_t hash(const std::string& text) {
  std::uint64_t h = 1469598103934665603u;  // FNV-1a
  for (const char c : text) h = (h ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return h;
}

/// A difference of up to this many times the movement of the expected result counts as rounding.
constexpr double kMovements = 10;

bool is_known(const Program& program, int value) {
  const std::vector<int>& dims = program.values[value].dims;
  return std::all_of(dims.begin(), dims.end(), [&](int dim) {
    const DimInfo& info = program.dims[dim];
    return info.kind != DimInfo::Kind::found && is_subset(info.over, dims);
  });
}

/// True for the error of an index into an entry without elements.
bool needs_elements(const std::exception& error) {
  const std::string_view message = error.what();
  return dynamic_cast<const IndexError*>(&error) &&
         (message.find("which has size 0") != std::string_view::npos ||
          message.find("has length 0") != std::string_view::npos);
}

}  // namespace

Trial::Trial(const Relation& relation, const Program& program)
    : name_(relation.name), program_(program), random_(program.seed ^ hash(relation.name)) {}

Mode Trial::draw_mode() {
  std::vector<Mode> modes = all_modes(program_);
  std::erase_if(modes, [](const Mode& mode) { return mode.takes_static; });
  return modes[static_cast<std::size_t>(random_.below(modes.size()))];
}

Function Trial::function_of(const Program& program, const Arguments& outside, bool known_only) {
  return [&program, outside, known_only](const Tensors& x) {
    const Tensors all = Machine(program, outside).run(x);
    if (!known_only) return all;
    Tensors known;
    for (std::size_t i = 0; i < all.size(); ++i)
      if (is_known(program, program.main.results[i])) known.push_back(all[i]);
    return known;
  };
}

Tensors Trial::call(const std::string& what, const Function& f, const Tensors& x) const {
  manual_seed(program_.seed);
  try {
    return f(x);
  } catch (const std::exception& error) {
    if (!has_compared_ && needs_elements(error)) throw OutsideDomain();
    throw FoundError{{str(name_, ": ", what, " throws: ", gist(error.what())), error.what()}};
  }
}

double Trial::close() const {
  return program_.real == f32 ? 1e-4 : has_derivatives(program_) ? 1e-8 : 1e-10;
}
double Trial::close_second() const { return has_derivatives(program_) ? 1e-7 : 1e-9; }

Tensors Trial::moved(const Tensors& x) const {
  const double step = program_.real == f64 ? 1e-13 : 1e-5;
  Random random(program_.seed);
  Tensors result;
  for (const Tensor& argument : x) {
    if (!is_float(argument.dtype())) {
      result.push_back(argument);
      continue;
    }
    std::vector<double> values = cast(argument, f64).to_vector<double>();
    for (double& value : values)
      value += (std::abs(value) + 0.1) * step * random.between(-1000, 1000) / 1000;
    const Tensor all =
        argument.rank() ? tensor(values, argument.dims(), f64) : scalar(values.at(0), f64);
    result.push_back(cast(all, argument.dtype()));
  }
  return result;
}

Reference Trial::reference(const Function& f, const Tensors& x, const Program& program,
                           const Arguments& outside) const {
  return {[=, this] { return call("moved", f, moved(x)); },
          [=, &program, &outside, this] {
            manual_seed(program_.seed);
            const Tensors arguments(
                x.begin(),
                x.begin() + static_cast<std::ptrdiff_t>(passed_arguments(program, outside).size()));
            return Machine(program, outside).stays_finite(arguments);
          }};
}

void Trial::expect_same(const std::string& what, const Tensors& expected, const Tensors& actual,
                        double tolerance, const Reference& reference) {
  has_compared_ = true;
  const auto differs = difference(expected, actual, tolerance);
  if (!differs) return;
  if (tolerance > 0 && !difference(expected, actual, tolerance, true) && !reference.stays_finite())
    return;
  if (tolerance > kAnyZero && expected.size() == actual.size()) {
    const Tensors aside = reference.at_moved();
    bool is_rounding = aside.size() == expected.size();
    for (std::size_t i = 0; is_rounding && i < expected.size(); ++i)
      is_rounding = distance(expected[i], actual[i]) <=
                    std::max(tolerance, kMovements * distance(expected[i], aside[i]));
    if (is_rounding) return;
  }
  throw FoundError{{str(name_, ": ", what, " differs"), *differs}};
}

Rules without_draws(const Rules& rules) {
  const auto draws = [](const Rule& rule) {
    for (const char* word :
         {"random_", "normal(", "bernoulli", "permutation", "categorical", "dropout", "::init"})
      if (rule.name().find(word) != std::string::npos) return true;
    return false;
  };
  Rules result;
  for (const Rule* rule : rules)
    if (!draws(*rule)) result.push_back(rule);
  return result;
}

bool needs_slices(const Rule& rule) {
  return rule.name().find(".initial = [](") != std::string::npos;
}

void redraw_sizes(Program& program, Random& random, bool all_empty) {
  const auto draw = [&] {
    if (all_empty || random.chance(20)) return 0;
    return random.chance(5) ? random.between(17, 20) : random.between(1, 6);
  };
  for (DimInfo& dim : program.dims) {
    if (!dim.comes_with_arguments()) continue;
    if (dim.kind == DimInfo::Kind::dynamic) {
      dim.lengths = {draw()};
      continue;
    }
    std::vector<int> lengths;
    for_each_element(program, dim.over, {}, [&](std::uint64_t, bool is_valid) {
      lengths.push_back(is_valid ? draw() : 0);
    });
    dim.lengths = std::move(lengths);
  }
}

}  // namespace reel::fuzz
