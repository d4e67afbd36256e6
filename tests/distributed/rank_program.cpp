// A small training program with a fault that its first argument names, for programs_test.cpp.
//
//   rank_program CASE SECONDS [OPTION]   SECONDS: the World's timeout
//
// It locks the file that REEL_ALIVE names, until its process is gone.
#include <fcntl.h>
#include <mpi.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <string>
#include <thread>

#include "reel/distributed.h"
#include "reel/reel.h"

using namespace reel;

namespace {

struct Model {
  EmbeddingTable words;
  LstmCell cell;
  Linear readout;
};

struct Batch {
  Tensor ids, targets;
};

Model first_model() {
  manual_seed(5);
  const Dim in("in", 6), hidden("hidden", 16), symbol("symbol", 11);
  auto cell = LstmCell::init(in, hidden);
  auto readout = Linear::init(hidden, symbol);
  return {EmbeddingTable(random_normal({symbol, in})), std::move(cell), std::move(readout)};
}

/// The batch of a step, with sequences of different lengths: other numbers of symbols in each
/// shard.
Batch batch_of(int step, int rows) {
  std::vector<std::int32_t> lengths, ids, targets;
  for (int i = 0; i < rows; ++i) lengths.push_back(2 + (i * 5 + step) % 7);
  const Dim batch("batch", rows), time("time", tensor(lengths, {batch}));
  for (std::int64_t i = 0; i < rows * time.size(); ++i) {
    ids.push_back(static_cast<std::int32_t>((i * 7 + step) % 11));
    targets.push_back(static_cast<std::int32_t>((i * 3 + step) % 11));
  }
  return {tensor(ids, {batch, time}), tensor(targets, {batch, time})};
}

Weighted loss_of(const Model& model, const Batch& batch) {
  const Dim time = batch.ids.dim("time");
  const Tensor x = dropout(gather(model.words, batch.ids), 0.1);
  auto [outputs, last] = recur(model.cell, x, time);
  return log_loss(model.readout(outputs), batch.targets, model.readout.out);
}

/// FNV-1a of the bits of all tensors.
template <class Tree>
std::uint64_t bits_of(const Tree& tree) {
  std::uint64_t hash = 0xcbf29ce484222325ull;
  for (const Tensor& x : tensors_of(flatten(tree))) {
    if (!x.is_defined()) continue;
    const char* const data = x.data<char>();
    for (std::int64_t i = 0; i < x.type().bytes(); ++i)
      hash = (hash ^ static_cast<unsigned char>(data[i])) * 0x100000001b3ull;
  }
  return hash;
}

/// Trains, and prints the bits of the loss and the model on the first rank.
void train(const World& world, const std::string& mode, int steps, int rows) {
  Model model = world.broadcast(first_model());
  Adam<Model> adam(model);
  const auto step = [&](Model model, Adam<Model> adam, const Sharded<Batch>& batch) {
    auto [loss, gradient] = world.value_and_grad(loss_of)(model, batch);
    auto [clipped, norm] = clip_by_global_norm(gradient, 1.0);
    adam.update(model, clipped);
    return std::tuple{model, adam, loss};
  };
  const Executor executor = mode == "interpreter" ? Executor::interpreter
                            : mode == "dataflow"  ? Executor::dataflow
                                                  : Executor::plan;
  const auto traced = jit(step, {.executor = executor});
  Tensor loss;
  for (int i = 0; i < steps; ++i) {
    const auto mine = world.shard(batch_of(i, rows), 0);
    std::tie(model, adam, loss) =
        mode == "eager" ? step(model, adam, mine) : traced(model, adam, mine);
  }
  if (world.rank() == 0)
    std::printf("%016llx %016llx\n", static_cast<unsigned long long>(bits_of(loss)),
                static_cast<unsigned long long>(bits_of(model)));
}

void compute_for_ever() {
  for (;;) asm volatile("");
}

/// Lets this process have `bytes` more memory than it has.
void limit_memory(std::size_t bytes) {
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const ::rlim_t limit = pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)) + bytes;
  const ::rlimit limits{limit, limit};
  ::setrlimit(RLIMIT_AS, &limits);
}

void reduce(const World& world, int times) {
  Tensor x = full({1000}, 1e-3);
  for (int i = 0; i < times; ++i) x = world.all_reduce(x) * (1. / world.size());
}

/// Runs the case. The last rank has the fault.
void run(const World& world, const std::string& name, const std::string& option) {
  const bool is_last = world.rank() == world.size() - 1;
  if (name == "bits") {
    train(world, option, 12, 24);
  } else if (name == "killed") {  // after OPTION milliseconds of collectives
    if (is_last)
      std::thread([ms = std::atoi(option.c_str())] {
        std::this_thread::sleep_for(std::chrono::milliseconds(ms));
        std::printf("killed\n");
        std::fflush(stdout);
        ::raise(SIGKILL);
      }).detach();
    for (;;) reduce(world, 1);
  } else if (name == "endless") {
    reduce(world, 1);
    if (world.rank() == 0) std::cout << "started" << std::endl;
    for (;;) reduce(world, 1);
  } else if (name == "throws") {
    reduce(world, 3);
    if (is_last) throw ArgumentError("no batch 7");
    for (;;) reduce(world, 1);
  } else if (name == "exits") {
    reduce(world, 3);
    if (is_last) std::exit(0);
    for (;;) reduce(world, 1);
  } else if (name == "crashes") {
    reduce(world, 3);
    if (is_last) ::raise(SIGSEGV);
    for (;;) reduce(world, 1);
  } else if (name == "uneven") {
    reduce(world, is_last ? 3 : 4);
  } else if (name == "computes") {
    reduce(world, 2);
    if (is_last) compute_for_ever();
    reduce(world, 1);
  } else if (name == "memory") {  // the last rank has none for the result
    const Tensor x = zeros({16 << 20});
    reduce(world, 2);
    if (is_last) limit_memory(16 << 20);
    try {
      world.all_reduce(x);
    } catch (const MemoryError&) {
      if (option == "computes") compute_for_ever();
    }
    world.barrier();
  } else if (name == "full") {  // rank 0 saves to a full disk while the others go on
    reduce(world, 2);
    if (world.rank() == 0) save_safetensors("/dev/full", std::vector<Tensor>{zeros({100})});
    reduce(world, 1);
  } else if (name == "dead") {  // rank 0 saves to a file system that does not answer
    reduce(world, 2);
    if (world.rank() == 0) save_safetensors(option, std::vector<Tensor>{zeros({100})});
    reduce(world, 1);
  } else if (name == "threads") {
    std::printf("threads %d\n", threads());
  }
}

/// Begins MPI as World does, and takes part in no call, like a rank that is out of reach.
[[noreturn]] void be_absent() {
  int provided = 0;
  MPI_Comm all, announcements, local;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided);
  MPI_Comm_dup(MPI_COMM_WORLD, &all);
  MPI_Comm_dup(MPI_COMM_WORLD, &announcements);
  MPI_Comm_split_type(all, MPI_COMM_TYPE_SHARED, 1, MPI_INFO_NULL, &local);
  for (;;) ::pause();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const std::string name = argv[1], option = argc > 3 ? argv[3] : "";
  if (const char* const alive = std::getenv("REEL_ALIVE"))
    ::flock(::open(alive, O_RDWR | O_CLOEXEC), LOCK_SH);
  WorldOptions options{.timeout = std::chrono::duration<double>(std::atof(argv[2]))};
  if (const char* const rank = std::getenv("OMPI_COMM_WORLD_RANK"); rank && name == "options")
    options.shards = 4 + std::atoi(rank);
  if (const char* const rank = std::getenv("OMPI_COMM_WORLD_RANK");
      name == "absent" && rank && std::atoi(rank) == 1)
    be_absent();
  if (option != "caught") {
    const World world(options);
    run(world, name, option);
    return 0;
  }
  try {
    const World world(options);
    run(world, name, option);
  } catch (const std::exception& error) {
    std::cerr << "rank_program: " << error.what() << '\n';
    return 1;
  }
}
