// Running out of memory is an exception: after any failed allocation the call throws MemoryError,
// arguments and memory() are unchanged, and the next call gives the right bits. A separate program,
// which makes allocations fail.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <sstream>
#include <type_traits>

#include "reel/tests/frontend/errors/failed_attempts.h"
#include "reel/tests/modes.h"
#include "reel/tests/own_folder.h"

namespace reel {
namespace {

using Function = Tensor (*)(const Tensor& w, const Tensor& x);
struct Named {
  const char* name;
  Function f;
};

Tensor small_ops(const Tensor& w, const Tensor& x) {
  const Tensor rows = concat({x, x * 2.f}, 1);
  const Tensor chosen = where(rows > 0.5f, rows, exp(rows));
  return sum(softmax(gather(chosen, tensor({3, 0, 5}), 1), Axes(2)) * sum(w)) +
         mean(slice(w, 0, 2, 5) - transpose(slice(w, 1, 2, 5), {1, 0}));
}
Tensor product(const Tensor& w, const Tensor& x) {
  return sum(matmul(reshape(x, {24, 8}), matmul(w, transpose(w, {1, 0}))));
}
Tensor scanned(const Tensor& w, const Tensor& x) {
  const auto step = [&](const Tensor& x, const Tensor& h) {
    const Tensor next = tanh(matmul(h, w) + x);
    return std::pair{next, next};
  };
  return sum(scan(Scan{.initial = zeros({4, 8}), .xs = x, .body = step}).ys);
}
Tensor ragged(const Tensor& w, const Tensor& x) {
  const Dim batch("batch", 4), time("time", tensor({6, 0, 3, 5}, {batch})), in("in", 8),
      out("out", 8);
  const Tensor words = reshape(transpose(x, {1, 0, 2}), {batch, time, in}),
               weight = reshape(w, {in, out});
  const auto step = [&](const Tensor& x, const Tensor& h) {
    const Tensor next = tanh(rename(matmul(h + x, weight, in), out, in));
    return std::pair{next, next};
  };
  return sum(
      scan(Scan{.spatial_dim = time, .initial = zeros({batch, in}), .xs = words, .body = step}).ys,
      {batch, time, in});
}
Tensor repeated(const Tensor& w, const Tensor& x) {
  return sum(
      while_loop([](const Tensor& h) { return sum(abs(h)) < 40.f; },
                 [&](const Tensor& h) { return matmul(h, w) + slice(x, 0, 0, 1) + h * 1.2f; },
                 slice(x, 0, 1, 2)));
}
Tensor branched(const Tensor& w, const Tensor& x) {
  return cond(
      sum(x) > 0.f, [&] { return sum(tanh(w) * 2.f); }, [&] { return sum(w); });
}
Tensor arrays(const Tensor& w, const Tensor& x) {
  const TensorArray written = fori_loop(
      0, 5,
      [&](const Tensor& i, const TensorArray& array) {
        return array.push_back(gather(x, i, 0) * w.dim(0).size() + sum(w));
      },
      TensorArray(TensorType(f32, {4, 8})));
  return sum(written.stack()) + sum(written.read(2) * written[3]);
}
template <class Policy>
Tensor with_policy(const Tensor& w, const Tensor& x, const Policy& policy) {
  auto spec =
      Scan{.initial = zeros({4, 8}), .xs = x, .body = [&](const Tensor& x, const Tensor& h) {
             return std::pair{None{}, tanh(matmul(h, w) + x)};
           }};
  policy(spec);
  return sum(scan(spec).state);
}
Tensor every_second(const Tensor& w, const Tensor& x) {
  return with_policy(w, x, [](auto& spec) { spec.checkpoint = Checkpoint::every(2); });
}
Tensor within_budget(const Tensor& w, const Tensor& x) {
  return with_policy(w, x, [](auto& spec) { spec.checkpoint = Checkpoint::budget(500); });
}
Tensor swapped(const Tensor& w, const Tensor& x) {
  return with_policy(w, x, [](auto& spec) { spec.swap_memory = true; });
}
Tensor run_again(const Tensor& w, const Tensor& x) {
  return checkpoint([](const Tensor& w, const Tensor& x) { return scanned(w, x); })(w, x);
}
Tensor hessian(const Tensor& w, const Tensor& x) {
  return sum(hvp([&](const Tensor& w) { return scanned(w, x); }, w, w));
}

constexpr Named kFunctions[] = {
    {"small_ops", small_ops}, {"product", product},         {"scan", scanned},
    {"ragged scan", ragged},  {"while_loop", repeated},     {"cond", branched},
    {"TensorArray", arrays},  {"every", every_second},      {"budget", within_budget},
    {"swap_memory", swapped}, {"checkpoint(f)", run_again}, {"hvp", hessian},
};

Tensor weight() { return reshape(cast(range(64), f32) * 0.004f - 0.1f, {8, 8}); }
Tensor words() { return reshape(cast(range(192), f32) * 0.002f + 0.1f, {6, 4, 8}); }

/// is_recorded: a call before has recorded the function, so that only its run is tried.
template <class F>
Attempt attempt_of(RunMode mode, const F& f, bool is_recorded) {
  const Tensor w = weight(), x = words();
  const auto made = std::make_shared<Tensor>();
  const auto result = [=] { return Tensors{*made}; };
  const auto state = [=] { return Tensors{w, x}; };
  if (mode == RunMode::eager)
    return {[=] { *made = f(w, x); }, result, state, std::is_same_v<F, Function>};
  const auto fast = jit(f, options_of(mode));
  if (is_recorded) fast(w, x);
  return {[=] { *made = fast(w, x); }, result, state};
}

class FailedAllocationsTest : public testing::TestWithParam<Named> {
 protected:
  void TearDown() override { set_threads(1); }

  /// Tries the value and the gradient of the function.
  void expect_no_harm_in(RunMode mode, int threads, bool is_recorded, Fails fails = Fails::once) {
    set_threads(threads);
    const Function f = GetParam().f;
    const std::string what = str("mode ", static_cast<int>(mode), ", ", threads, " threads");
    expect_no_harm(
        what + ", value", [&] { return attempt_of(mode, f, is_recorded); }, fails);
    expect_no_harm(
        what + ", gradient", [&] { return attempt_of(mode, grad(f), is_recorded); }, fails);
  }
};
INSTANTIATE_TEST_SUITE_P(All, FailedAllocationsTest, testing::ValuesIn(kFunctions),
                         [](const auto& info) {
                           std::string name;
                           for (const char c : std::string(info.param.name))
                             if (std::isalnum(static_cast<unsigned char>(c))) name += c;
                           return name;
                         });

TEST_P(FailedAllocationsTest, EagerCallsSurviveOneFailedAllocation) {
  expect_no_harm_in(RunMode::eager, 1, false);
}
TEST_P(FailedAllocationsTest, EagerCallsSurviveTheEndOfMemory) {
  expect_no_harm_in(RunMode::eager, 1, false, Fails::for_good);
}
TEST_P(FailedAllocationsTest, TheFirstCallOfAPlanSurvivesOneFailedAllocation) {
  expect_no_harm_in(RunMode::plan, 1, false);
}
TEST_P(FailedAllocationsTest, CallsOfAPlanSurviveOneFailedAllocation) {
  for (const int threads : {1, 2}) expect_no_harm_in(RunMode::plan, threads, true);
}
TEST_P(FailedAllocationsTest, TracedCallsSurviveTheEndOfMemory) {
  for (const RunMode mode : {RunMode::plan, RunMode::interpreter, RunMode::dataflow10})
    expect_no_harm_in(mode, 1, true, Fails::for_good);
}
TEST_P(FailedAllocationsTest, TheInterpreterSurvivesOneFailedAllocation) {
  expect_no_harm_in(RunMode::interpreter, 1, true);
}
TEST_P(FailedAllocationsTest, TheDataflowExecutorSurvivesOneFailedAllocation) {
  expect_no_harm_in(RunMode::dataflow10, 1, true);
}
TEST_P(FailedAllocationsTest, TheDataflowExecutorOnManyThreadsSurvivesOneFailedAllocation) {
  const OnManyThreads many;
  expect_no_harm_in(RunMode::dataflow_threads, 3, true);
}

TEST(FirstAllocationTest, LeavesThePoolOfTheProcessUsableIfItFails) {
  bool has_failed = true;
  long n = 0;
  while (has_failed) {
    const FailingMemory failing(++n, Fails::once);
    try {
      zeros({1000});
    } catch (const MemoryError&) {
    } catch (const std::bad_alloc&) {  // for the list of sizes
    }
    has_failed = failing.has_failed();
  }
  EXPECT_GT(n, 1);
  expect_values(zeros({3}) + 1.f, {1, 1, 1});
}

// ---- Arguments that were moved in --------------------------------------------------------------

struct Model {
  Tensor weight;
  std::vector<Tensor> more;
  std::map<std::string, Tensor> named;
};

/// A training step with its model and optimiser moved in, so that a failed call could have
/// overwritten them.
Attempt step_in_place(RunMode mode, bool is_recorded) {
  struct State {
    Model model{weight(), {full({8}, 0.5)}, {{"scale", scalar(0.9)}, {"bias", full({8}, 0.25)}}};
    Adam<Model> adam{model};
  };
  const auto state = std::make_shared<State>();
  const Tensor x = words();
  const auto step = [](Model model, Adam<Model> adam, const Tensor& x) {
    const auto loss = [&](const Model& model) {
      return mean(square(matmul(reshape(x, {24, 8}), model.weight) * model.named.at("scale") +
                         model.more[0] + model.named.at("bias")));
    };
    const auto [value, gradient] = value_and_grad(loss)(model);
    adam.update(model, clip_by_global_norm(gradient, 1.0).first);
    return std::tuple{model, adam, value};
  };
  const auto leaves = [state] { return tensors_of(flatten(std::tie(state->model, state->adam))); };
  const auto fast = jit(step, options_of(mode));
  const auto call = [=] {
    std::tie(state->model, state->adam, std::ignore) =
        fast(std::move(state->model), std::move(state->adam), x);
  };
  if (is_recorded) call();
  return {call, leaves, leaves};
}

/// A step of decoding, with its caches moved in: it replaces a row of each one, and reads it in
/// products and a loop.
Attempt step_of_caches(RunMode mode, bool is_recorded) {
  struct State {
    std::vector<Tensor> caches{reshape(words(), {24, 8}) * 1.f, reshape(words(), {24, 8}) * 2.f};
    Tensor x = full({8}, 0.5);
  };
  const auto state = std::make_shared<State>();
  const auto step = [w = weight()](std::vector<Tensor> caches, Tensor x, const Tensor& at) {
    for (Tensor& cache : caches) {
      cache = set_at(std::move(cache), at, matmul(x, w), 0);
      const Tensor seen = fori_loop(
          0, at + 1, [&](const Tensor& i, const Tensor& sum) { return sum + gather(cache, i, 0); },
          zeros({8}));
      x = tanh(x + seen + matmul(softmax(matmul(cache, x), 0), cache));
    }
    return std::pair{caches, x};
  };
  const auto leaves = [state] {
    Tensors result = state->caches;
    result.push_back(state->x);
    return result;
  };
  const auto fast = jit(step, options_of(mode));
  const auto call = [=] {
    std::tie(state->caches, state->x) =
        fast(std::move(state->caches), std::move(state->x), scalar(3));
  };
  if (is_recorded) call();
  return {call, leaves, leaves};
}

using MovedArgumentsTest = testing::TestWithParam<RunMode>;
INSTANTIATE_TEST_SUITE_P(All, MovedArgumentsTest,
                         testing::Values(RunMode::plan, RunMode::interpreter, RunMode::dataflow10),
                         name_of_mode);

TEST_P(MovedArgumentsTest, AreAsTheyWereIfAnyAllocationFails) {
  for (const bool is_recorded : {true, false}) {
    expect_no_harm("step", [&] { return step_in_place(GetParam(), is_recorded); });
    expect_no_harm("caches", [&] { return step_of_caches(GetParam(), is_recorded); });
  }
}
TEST_P(MovedArgumentsTest, AreAsTheyWereIfThereIsNoMemoryFromSomeAllocationOn) {
  expect_no_harm(
      "step", [&] { return step_in_place(GetParam(), true); }, Fails::for_good);
  expect_no_harm(
      "caches", [&] { return step_of_caches(GetParam(), true); }, Fails::for_good);
}

// ---- Tables -------------------------------------------------------------------------------------

struct Tables {
  EmbeddingTable words, letters;
  Tensor scale;
};

/// An eager step of two tables and their moments in place. is_held: one table has a second
/// reference, so that it is copied.
Attempt step_of_tables(bool is_held) {
  struct State {
    Tables tables{EmbeddingTable(weight()), EmbeddingTable(weight() * 3.f), scalar(0.9)};
    Adam<Tables> adam{tables};
    Tensor held;
  };
  const auto state = std::make_shared<State>();
  if (is_held) state->held = state->tables.letters.dense();
  const auto loss = [](const Tables& tables) {
    return sum(square(gather(tables.words, tensor({1, 5, 1}))) * tables.scale) +
           sum(gather(tables.letters, tensor({0, 7})));
  };
  const Tables gradient = grad(loss)(state->tables);
  const auto leaves = [state] {
    Tensors all = tensors_of(flatten(std::tie(state->tables, state->adam)));
    if (state->held.is_defined()) all.push_back(state->held);
    return all;
  };
  return {[=] { state->adam.update(state->tables, gradient); }, leaves, leaves, true};
}

TEST(FailedAllocationsOfTablesTest, AnEagerStepChangesAllTablesOrNone) {
  for (const bool is_held : {false, true})
    for (const Fails fails : {Fails::once, Fails::for_good})
      expect_no_harm(
          is_held ? "held" : "in place", [=] { return step_of_tables(is_held); }, fails);
}

/// An eager step of whole tensors.
Attempt step_of_tensors() {
  struct State {
    Model model{weight(), {full({8}, 0.5)}, {{"scale", scalar(0.9)}, {"bias", full({8}, 0.25)}}};
    Sgd<Model> sgd{model, {.momentum = 0.9}};
  };
  const auto state = std::make_shared<State>();
  const Model gradient = tree_map([](const Tensor& x) { return x * 0.5f; }, state->model);
  const auto leaves = [state] { return tensors_of(flatten(std::tie(state->model, state->sgd))); };
  return {[=] { state->sgd.update(state->model, gradient); }, leaves, leaves, true};
}
/// Into an average.
Attempt step_of_average() {
  const auto state = std::make_shared<std::pair<Tables, Ema<Tables>>>(
      Tables{EmbeddingTable(weight()), EmbeddingTable(weight() * 3.f), scalar(0.9)},
      Ema<Tables>(Tables{EmbeddingTable(weight()), EmbeddingTable(weight()), scalar(0.5)}));
  const auto leaves = [state] { return tensors_of(flatten(state->second)); };
  return {[=] { state->second.update(state->first); }, leaves, leaves, true};
}

TEST(FailedAllocationsOfTablesTest, AnEagerStepChangesAllTensorsOrNone) {
  expect_no_harm("Sgd", step_of_tensors);
  expect_no_harm("Ema", step_of_average);
}

// ---- Files -------------------------------------------------------------------------------------

struct Training {
  Model model;
  Tensor step;
};
Training training(double scale) {
  return {{weight() * static_cast<float>(scale),
           {full({8}, 0.5 * scale)},
           {{"scale", scalar(0.9)}, {"\"bias\"\n", full({8}, 0.25 * scale)}}},
          scalar(static_cast<std::int64_t>(7 * scale), i64)};
}

class FailedAllocationsInFilesTest : public InOwnFolder {
 protected:
  FailedAllocationsInFilesTest() : InOwnFolder("file") {}

  /// The bytes of the file, and how many files there are beside it.
  Tensors files_here() const {
    const std::string bytes = bytes_of(path);
    return {tensor(std::vector<std::int32_t>(bytes.begin(), bytes.end())),
            scalar(static_cast<std::int64_t>(files().size()), i64)};
  }
  /// save() replaces the file of old() as a whole or not at all.
  void expect_whole_or_old(const std::string& what, const std::function<void()>& old,
                           const std::function<void()>& save) const {
    const auto state = [this] { return files_here(); };
    const auto make = [=] {
      old();
      return Attempt{save, state, state, true};
    };
    expect_no_harm(what, make);
    expect_no_harm(what + ", for good", make, Fails::for_good);
  }
  /// load() fills `to` as a whole or not at all.
  void expect_filled_or_old(const std::string& what, const std::function<Tensors()>& state,
                            const std::function<void()>& reset,
                            const std::function<void()>& load) const {
    const auto make = [=] {
      reset();
      return Attempt{load, state, state, true};
    };
    expect_no_harm(what, make);
    expect_no_harm(what + ", for good", make, Fails::for_good);
  }
};

TEST_F(FailedAllocationsInFilesTest, SavedFilesAreNewOrOld) {
  const Training before = training(1), after = training(2);
  const Metadata metadata{{"run", "a \"b\"\n"}, {"more", std::string(100, 'x')}};
  expect_whole_or_old(
      "save_safetensors", [&] { save_safetensors(path, before); },
      [&] { save_safetensors(path, after, metadata); });
  expect_whole_or_old(
      "save_checkpoint", [&] { save_checkpoint(path, before); },
      [&] { save_checkpoint(path, after, metadata); });
  expect_whole_or_old(
      "save_npy", [&] { save_npy(path, weight()); }, [&] { save_npy(path, weight() * 2.f); });
}

TEST_F(FailedAllocationsInFilesTest, PagesOfGraphsAreNewOrOld) {
  const auto f = jit(branched);
  f(weight(), words());
  const auto make = [&] {
    write(path, "old");
    const auto state = [this] { return files_here(); };
    return Attempt{[&] { f.graph().write_html(path); }, state, state, true};
  };
  expect_no_harm("write_html", make);
}

TEST_F(FailedAllocationsInFilesTest, ANewFileIsThereOrNot) {
  const Training after = training(2);
  expect_whole_or_old(
      "save_safetensors", [&] { std::filesystem::remove(path); },
      [&] { save_safetensors(path, after); });
}

TEST_F(FailedAllocationsInFilesTest, LoadedTreesAreNewOrOld) {
  save_checkpoint(path, training(2), {{"run", std::string(100, 'x')}});
  const Tensor stream = random_state();
  Training to;
  const auto state = [&] {
    Tensors all = tensors_of(flatten(to));
    all.push_back(random_state());
    return all;
  };
  const auto reset = [&] {
    to = training(1);
    set_random_state(stream * 0);
  };
  expect_filled_or_old("load_safetensors", state, reset, [&] { load_safetensors(path, to); });
  expect_filled_or_old("load_checkpoint", state, reset, [&] { load_checkpoint(path, to); });
}

TEST_F(FailedAllocationsInFilesTest, TensorsOfFilesAndMetadata) {
  save_safetensors(path, training(2), {{"run", std::string(100, 'x')}});
  Tensors made;
  const auto state = [] { return Tensors{}; };
  expect_no_harm("SafetensorsFile", [&] {
    return Attempt{[&] {
                     const SafetensorsFile file(path);
                     made = {file.tensor("model.weight"), file.tensor("step")};
                     if (file.metadata().at("run").size() != 100) made.clear();
                   },
                   [&] { return made; }, state, true};
  });
  save_npy(path, weight());
  expect_no_harm("load_npy", [&] {
    return Attempt{[&] { made = {load_npy(path)}; }, [&] { return made; }, state, true};
  });
}

// ---- Text ----------------------------------------------------------------------------

TEST(FailedAllocationsInTextTest, ATextThatAStreamCallsGoodIsWhole) {
  const auto attempt = [](const std::function<Tensors(const Tensor&)>& f) {
    return [f] {
      const Tensor x = words();
      const auto made = std::make_shared<Tensors>();
      return Attempt{[=] { *made = f(x); }, [=] { return *made; }, [=] { return Tensors{x}; },
                     true};
    };
  };
  expect_no_harm("print", attempt([](const Tensor& x) {
                   std::ostringstream text;
                   text << x * 2.f;
                   if (!text) throw std::bad_alloc();  // streams say it so
                   return Tensors{scalar(static_cast<std::int64_t>(text.str().size()), i64)};
                 }));
}

}  // namespace
}  // namespace reel
