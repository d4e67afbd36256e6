#include "products.h"

#include <omp.h>

#include <algorithm>
#include <memory>
#include <oneapi/dnnl/dnnl.hpp>
#include <unordered_map>

namespace reel::bench {
namespace {

using dnnl::memory;

/// A primitive with its operands, which is executed `times` times.
struct Job {
  dnnl::matmul primitive;
  std::unordered_map<int, memory> arguments;
  int times;
};

Job job_of(const Products& p, const dnnl::engine& engine) {
  const auto sizes = [&](int rows, int columns) {
    return p.batch > 1 ? memory::dims{p.batch, rows, columns} : memory::dims{rows, columns};
  };
  const auto plain = p.batch > 1 ? memory::format_tag::abc : memory::format_tag::ab;
  const auto packed = p.batch > 1 ? plain : memory::format_tag::any;
  const auto f32 = memory::data_type::f32;
  const dnnl::matmul::primitive_desc desc(
      dnnl::matmul::desc({sizes(p.m, p.k), f32, plain}, {sizes(p.k, p.n), f32, packed},
                         {sizes(p.m, p.n), f32, plain}),
      engine);
  const auto filled = [&](const memory::desc& of) {
    memory result(of, engine);
    std::fill_n(static_cast<char*>(result.get_data_handle()), of.get_size(), char{0});
    return result;
  };
  return {dnnl::matmul(desc),
          {{DNNL_ARG_SRC, filled(desc.src_desc())},
           {DNNL_ARG_WEIGHTS, filled(desc.weights_desc())},
           {DNNL_ARG_DST, filled(desc.dst_desc())}},
          p.times};
}

}  // namespace

std::vector<Products> with_gradients(const Products& p) {
  return {p, {p.m, p.k, p.n, p.batch, p.times}, {p.k, p.n, p.m, p.batch, p.times}};
}

std::vector<Products> recurrent(int steps, int rows, int in, int out) {
  return {{rows, out, in, 1, steps}, {rows, in, out, 1, steps}, {in, out, rows * steps}};
}

std::vector<Products> joined(const std::vector<std::vector<Products>>& lists) {
  std::vector<Products> all;
  for (const auto& list : lists) all.insert(all.end(), list.begin(), list.end());
  return all;
}

std::function<void()> onednn_products(const std::vector<Products>& products) {
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  const auto jobs = std::make_shared<std::vector<Job>>();
  omp_set_num_threads(1);
  for (const Products& p : products) jobs->push_back(job_of(p, engine));
  return [jobs, stream = dnnl::stream(engine)] {
    omp_set_num_threads(1);
    for (const Job& job : *jobs)
      for (int i = 0; i < job.times; ++i) job.primitive.execute(stream, job.arguments);
  };
}

}  // namespace reel::bench
