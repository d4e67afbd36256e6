// Measures training steps that read few rows of a large table: with the gradient as rows, and as a
// whole table.
#include "harness.h"
#include "reel/reel.h"

namespace reel::bench {
namespace {

constexpr int kFeature = 64;

/// Input and output of a step.
template <class Table>
struct State {
  Table table;
  Adam<Table> adam;
};

Tensor rows_of(const Tensor& table, const Tensor& ids) { return gather(table, ids, 0); }
Tensor rows_of(const EmbeddingTable& table, const Tensor& ids) { return gather(table, ids); }

/// Looks up all ids at once.
struct AtOnce {
  template <class Table>
  Tensor operator()(const Table& table, const Tensor& ids) const {
    return sum(square(tanh(rows_of(table, ids))));
  }
};

/// Looks up ids step by step, in the body of a scan.
struct StepByStep {
  template <class Table>
  Tensor operator()(const Table& table, const Tensor& ids) const {
    const auto body = [&](const Tensor& id, const Tensor& h) {
      return std::pair{None{}, tanh(h * 0.9 + rows_of(table, id))};
    };
    const Tensor start = zeros({ids.dims()[1], Dim(kFeature)});
    return sum(square(scan(Scan{.initial = start, .xs = ids, .body = body}).state));
  }
};

template <class Table, class Loss>
Contender contender(const std::string& name, const Table& table, const Tensor& ids, Loss loss,
                    bool is_traced) {
  const auto step = [loss](State<Table> state, const Tensor& ids) {
    state.adam.update(state.table, grad(loss)(state.table, ids));
    return state;
  };
  auto state = std::make_shared<State<Table>>(State<Table>{table, Adam<Table>(table)});
  if (!is_traced)
    return {name, [=] { state->adam.update(state->table, grad(loss)(state->table, ids)); }};
  return {name, [=, traced = jit(step)] { *state = traced(std::move(*state), ids); }};
}

template <class Loss>
void compare(Group& group, std::int64_t rows, const Tensor& ids, const std::string& name,
             Loss loss) {
  const std::string full = str(name, " rows=", rows, " feature=", kFeature, " read=", ids.numel());
  if (!group.wants(full)) return;
  const auto table = [&] { return random_normal({rows, kFeature}); };
  group.compare(full, milliseconds(),
                {contender("rows", EmbeddingTable(table()), ids, loss, true),
                 contender("rows_eager", EmbeddingTable(table()), ids, loss, false),
                 contender("whole", table(), ids, loss, true),
                 contender("whole_eager", table(), ids, loss, false)},
                Clock::processor);
}

/// Training steps one by one, and as one loop with the table in its state.
void compare_loop(Group& group, std::int64_t rows, const Tensor& ids) {
  const std::string full = str("adam, steps in one loop rows=", rows, " feature=", kFeature,
                               " steps=", ids.type().sizes()[0], " read=", ids.type().sizes()[1]);
  if (!group.wants(full)) return;
  using Learnt = State<EmbeddingTable>;
  const auto step = [](Learnt state, const Tensor& ids) {
    state.adam.update(state.table, grad(AtOnce())(state.table, ids));
    return state;
  };
  const auto all = [step](Learnt state, const Tensor& ids) {
    const auto body = [&](const Tensor& ids, const Learnt& state) {
      return std::pair{None{}, step(state, ids)};
    };
    return scan(Scan{.initial = std::move(state), .xs = ids, .body = body}).state;
  };
  const EmbeddingTable table(random_normal({rows, kFeature}));
  const auto learnt = [&] {
    return std::make_shared<Learnt>(Learnt{table, Adam<EmbeddingTable>(table)});
  };
  const auto one_by_one = learnt(), in_a_loop = learnt();
  const auto run_steps = [=, traced = jit(step)] {
    for (int i = 0; i < ids.type().sizes()[0]; ++i)
      *one_by_one = traced(std::move(*one_by_one), slice(ids, 0, i, i + 1));
  };
  group.compare(
      full, milliseconds(),
      {{"reel", [=, traced = jit(all)] { *in_a_loop = traced(std::move(*in_a_loop), ids); }},
       {"one_by_one", run_steps}},
      Clock::processor);
}

Tensor random_ids(std::int64_t rows, const std::vector<std::int64_t>& sizes) {
  const Dims dims(sizes.begin(), sizes.end());
  return cast(floor(random_uniform(dims, 0, 1, f64) * static_cast<double>(rows)), i32);
}

void compare_all(Group& group) {
  compare(group, 1'000'000, random_ids(1'000'000, {1000}), "adam", AtOnce());
  compare(group, 10'000, random_ids(10'000, {1000}), "adam", AtOnce());
  compare(group, 10'000, random_ids(10'000, {100, 10}), "adam in a scan", StepByStep());
  compare_loop(group, 100'000, random_ids(100'000, {100, 1000}));
}

}  // namespace
}  // namespace reel::bench

int main(int argc, char** argv) {
  using namespace reel::bench;
  Group group("sparse", argc, argv);
  reel::set_threads(1);
  reel::manual_seed(1);
  note("a step of Adam on a table of f32, of which a batch reads some rows");
  compare_all(group);
  return group.finish();
}
