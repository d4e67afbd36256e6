#include "reel/trace/executors/plan/explain/explain.h"

#include <algorithm>
#include <optional>
#include <span>

#include "reel/core/base/str.h"
#include "reel/core/op/facts.h"
#include "reel/core/ops/control/fused.h"
#include "reel/core/ops/elementwise/element_loop.h"
#include "reel/core/ops/products/packed.h"
#include "reel/core/ops/products/products.h"
#include "reel/core/runtime/parallel.h"
#include "reel/trace/executors/loop/loop_types.h"
#include "reel/trace/executors/plan/base/explain_format.h"
#include "reel/trace/executors/plan/base/rates.h"
#include "reel/trace/executors/plan/explain/explain_residuals.h"
#include "reel/trace/executors/plan/explain/plan_times.h"
#include "reel/trace/executors/plan/explain/plan_view.h"
#include "reel/trace/passes/support/remarks.h"

namespace reel {
namespace {

/// Element-wise ops of a body: their number, the number of fused ops, and the names of unfused
/// ones.
struct Fusions {
  int ops = 0, programs = 0;
  std::vector<std::string_view> alone;
};

Fusions fusions_of(const Graph& body) {
  Fusions result;
  for (const OpRecord& record : body.records) {
    if (record.op == &fused_op) {
      const Graph& inside = *get<FusedAttrs>(record.attrs.get()).body.graph;
      result.programs += 1;
      result.ops += static_cast<int>(inside.records.size());
    } else if (element_loop(*record.op)) {
      result.alone.push_back(record.op->name);
    }
  }
  return result;
}

}  // namespace

/// Writes the text from top to bottom.
class PlanText {
 public:
  explicit PlanText(const PlanContext& context)
      : passes_(context.passes), times_(context.profile) {}

  std::string write(const Plan& plan, const std::string& in_place) {
    const Rates& rates = machine_rates();
    out_ << counted(count(plan), "instruction") << ", without those in loops\n";
    line("", "rates: on one thread ", rate_text(rates.flops, "FLOP/s"), " in products, ",
         rate_text(rates.bytes, "B/s"), " in copies, ", rate_text(rates.elements, ""),
         " elements a second, ", time_text(rates.call), " a call");
    write_times("", times_.of_whole(plan));
    write_bytes(plan);
    out_ << in_place;
    write_loops(plan, times_.profiles(), "", "", 1, 1);
    return out_.str();
  }

 private:
  using Instruction = PlanView::Instruction;
  template <class... Text>
  void line(const std::string& indent, const Text&... text) {
    ((out_ << indent) << ... << text) << '\n';
  }

  static std::int64_t count(const Plan& plan) {
    const auto& all = PlanView::instructions(plan);
    return std::count_if(all.begin(), all.end(),
                         [](const Instruction& at) { return at.kind != PlanView::Kind::nothing; });
  }
  void write_times(const std::string& indent, const std::vector<std::string>& lines) {
    for (std::size_t i = 0; i < lines.size(); ++i)
      line(i ? indent + "  " : indent, "time: ", lines[i]);
  }

  // ---- Bytes ------------------------------------------------------------------------------------

  struct LoopBytes {
    std::int64_t stacks = 0, residuals = 0, carries_and_sums = 0, steps = 0;
  };

  /// Adds the bytes of the loops in a plan and inside those; stacks of inner loops are left out.
  void add_loops(const Plan& plan, LoopBytes& sum) const {
    const auto add_plan = [&](const Plan& inside) {
      sum.steps += PlanView::memory_bytes(inside);
      add_loops(inside, sum);
    };
    for (const Instruction& at : PlanView::instructions(plan)) {
      if (at.kind == PlanView::Kind::loop) {
        const LoopPlan& loop = PlanView::loop_of(plan, at);
        sum.carries_and_sums += PlanView::sum_bytes(loop);
        PlanView::each_planned(loop, [&](const PlannedLoop& form) {
          sum.carries_and_sums += form.memory_bytes();
          PlanView::each_plan(form, add_plan);
        });
      }
      if (at.kind == PlanView::Kind::cond)
        for (std::size_t b = 0; b < 2; ++b)
          if (const SubPlan& branch = PlanView::branch(PlanView::cond_of(plan, at), b))
            add_plan(*branch);
    }
  }

  void write_bytes(const Plan& plan) {
    const Graph& graph = plan.graph();
    std::int64_t arguments = 0, captures = 0, constants = 0, values = 0, blocks = 0, results = 0;
    std::vector<std::uint8_t> is_read(graph.types.size());
    for (const ValueId v : graph.outputs) is_read[v] = 1;
    for (const OpRecord& record : graph.records)
      for (const ValueId v : graph.inputs_of(record)) is_read[v] = 1;
    for (std::size_t i = 0; i < graph.inputs.size(); ++i)
      if (is_read[graph.inputs[i]])
        (i < graph.formal_count ? arguments : captures) +=
            dense_bytes(PlanView::types(plan).types[graph.inputs[i]]);
    for (std::size_t s = graph.inputs.size(); s < PlanView::slot_count(plan); ++s) {
      const PlanView::Slot slot = PlanView::slot(plan, s);
      const std::int64_t bytes = dense_bytes(slot.type);
      if (slot.place == Place::constant) constants += bytes;
      if (slot.place == Place::buffer) values += bytes;
      if (slot.place == Place::block) (slot.is_output ? results : blocks) += bytes;
    }
    LoopBytes loops;
    add_loops(plan, loops);
    for (const Instruction& at : PlanView::instructions(plan)) {
      if (at.kind != PlanView::Kind::loop) continue;
      loops.stacks += dense_bytes(stacks_of(plan, at, false));
      loops.residuals += dense_bytes(stacks_of(plan, at, true));
    }
    line("", "bytes:");
    line("  ", "arguments that are read: ", bytes_text(arguments));
    line("  ", "captures: ", bytes_text(captures));
    line("  ", "constants: ", bytes_text(constants));
    line("  ", "values: ", bytes_text(values), ", in ", bytes_text(PlanView::memory_bytes(plan)),
         " of memory, ", passes_.reuse_memory ? "shared by disjoint live ranges" : "none shared",
         PlanView::shared_stacks(plan) ? " and by equal states" : "");
    line("  ", "values with their own allocation: ", bytes_text(blocks));
    line("  ", "of which stacks of loops: ", bytes_text(loops.stacks), ", ",
         bytes_text(loops.residuals), " of them residuals");
    line("  ",
         "carries of loops, two buffers each, and sums: ", bytes_text(loops.carries_and_sums));
    line("  ", "values inside loops: ", bytes_text(loops.steps));
    line("  ", "results: ", bytes_text(results));
  }

  // ---- Loops ------------------------------------------------------------------------------------

  /// times: how often the plan runs per call, if known. share: of its ops' times, which are sums
  /// over threads, in the time of the call.
  void write_loops(const Plan& plan, const Profiles& profiles, const std::string& number,
                   const std::string& indent, std::optional<double> times, double share) {
    int count = 0;
    write_loops(plan, profiles, number, indent, times, share, count);
  }
  void write_loops(const Plan& plan, const Profiles& profiles, const std::string& number,
                   const std::string& indent, std::optional<double> times, double share,
                   int& count) {
    std::uint32_t beside = 0;  // loops still to come that run beside the last one
    std::string how;           // how the loops of the group run
    for (const Instruction& at : PlanView::instructions(plan)) {
      const Profiles own = children_of(profiles, at.record);
      if (at.kind == PlanView::Kind::loop) {
        write_loop(plan, at, profiles, str(number, ++count), indent, times, share);
        if (beside) line(indent + "  ", "beside loop ", number, count - 1, ": ", how);
        beside = at.beside ? at.beside : beside - (beside > 0);
        if (at.beside) how = how_beside(plan, at);
      }
      if (at.kind != PlanView::Kind::cond) continue;
      for (const bool is_true : {true, false})
        write_branch(PlanView::branch(PlanView::cond_of(plan, at), is_true), is_true,
                     children_of(own, is_true), number, indent, times, share, count);
    }
  }

  /// number, times, share, count: number, runs and share of the loop around it, and the loops found
  /// in it so far.
  void write_branch(const SubPlan& branch, bool is_true, const Profiles& profiles,
                    const std::string& number, const std::string& indent,
                    std::optional<double> times, double share, int& count) {
    const char* which = is_true ? "cond, true branch: " : "cond, false branch: ";
    if (!branch) return line(indent, which, "never taken, not planned");
    if (!this->count(*branch)) return line(indent, which, "no instructions");
    line(indent, which, counted(this->count(*branch), "instruction"));
    const std::string inner = indent + "  ";
    const Graph& graph = branch->graph();
    const auto products = std::count_if(graph.records.begin(), graph.records.end(),
                                        [](const OpRecord& r) { return is_product(*r.op); });
    if (products && !number.empty())
      line(inner, "not moved: ", counted(products, "product"),
           ", as not every iteration takes the branch");
    write_packed(inner, *branch);
    write_fused(inner, graph);
    write_times(inner, times_.of_branch(*branch, profiles, share));
    write_loops(*branch, profiles, number, inner, times, share, count);
  }

  /// Returns how a loop and the following ones that may run beside it are run.
  static std::string how_beside(const Plan& plan, const Instruction& first) {
    const std::span group(&first, first.beside + 1);
    const bool are_cut = std::all_of(group.begin(), group.end(), [&](const Instruction& at) {
      return PlanView::loop_of(plan, at).blocks_inside() >= static_cast<std::size_t>(threads());
    });
    if (are_cut) return "runs after it, as the row blocks keep all threads busy";
    return str("starts a chunk as soon as its inputs are stacked, on ",
               counted(std::min<std::int64_t>(threads(), std::ssize(group)), "thread"));
  }

  void list(const std::string& indent, const char* label, const std::vector<TensorType>& types) {
    if (!types.empty()) line(indent, label, ": ", types_text(types));
  }

  void write_loop(const Plan& plan, const Instruction& at, const Profiles& profiles,
                  const std::string& number, const std::string& indent, std::optional<double> times,
                  double share) {
    const LoopPlan& loop = PlanView::loop_of(plan, at);
    const LoopAttrs& attrs = PlanView::attrs_of(plan, at);
    const OpRecord& record = plan.graph().records[at.record];
    std::vector<TensorType> in = PlanView::types(plan, plan.graph().inputs_of(record));
    if (PlanView::is_planned(loop)) in = PlanView::input_types(loop);
    const LoopTypes known =
        types_of(attrs, in, PlanView::types(plan, plan.graph().outputs_of(record)));
    const Profiles own = children_of(profiles, at.record);

    out_ << indent << "loop " << number << ": " << attrs.name << ", " << steps_text(attrs, in);
    if (const auto steps = PlanTimes::counted_steps(at, profiles); steps && !steps_of(attrs, in))
      out_ << " (" << *steps << " iterations a run, counted)";
    const bool over_chunks = attrs.chunking.over_chunks && PlanView::is_planned(loop);
    if (over_chunks)
      out_ << ", in " << chunks_text(PlanView::whole(loop).chunks);
    else if (PlanView::is_planned(loop))
      out_ << ", " << counted(count(*PlanView::shown(loop).body), "instruction") << " each";
    out_ << '\n';
    const std::string inner = indent + "  ";
    if (!attrs.chunking.within_chunk)
      write_parts(inner, attrs);  // the chunked loop has printed them
    list(inner, "carries", known.carries);
    list(inner, "slices", known.slices);
    list(inner, "captures", known.captures);
    list(inner, "stacks", known.stacks);
    list(inner, "sums", known.sums);
    if (!attrs.chunking.over_chunks) write_moves(inner, attrs);  // the inner loop prints them
    if (!attrs.chunking.within_chunk)
      for (const std::string& text : lines_of_residuals(plan, at)) line(inner, text);
    if (!PlanView::is_planned(loop)) {
      line(inner, "no plan: ", why_not_planned(loop));
      out_ << explain_op_by_op(*attrs.body.graph, inner);
      return;
    }
    const PlannedLoop& planned = PlanView::shown(loop);
    std::vector<TensorType> updated;
    for (std::size_t i = 0; i < planned.carries.size(); ++i)
      if (planned.carries[i].is_updated) updated.push_back(planned.body->output_type(i));
    list(inner, "updated in place", updated);
    write_packed(inner, *planned.body);
    write_fused(inner, *attrs.body.graph);
    if (planned.series) line(inner, "series: one call of the tile program runs many iterations");
    if (!over_chunks) write_cut(inner, loop);
    write_times(inner, times_.of_loop(plan, at, profiles, times, share));
    const auto runs = PlanTimes::runs_of_body(plan, at, profiles);
    write_loops(*planned.body, profiles_of_body(own, PlanView::blocks(loop).size()), number + ".",
                inner, times && runs ? std::optional(*times * *runs) : std::nullopt,
                share / PlanTimes::threads_of(at, profiles));
  }

  static std::string chunks_text(const Chunks& chunks) {
    const std::string equal = str(counted(chunks.steps / chunks.size, "chunk"), " of ",
                                  counted(chunks.size, "iteration"));
    return chunks.has_rest() ? str(equal, " and one of ", chunks.steps % chunks.size) : equal;
  }

  /// Returns true if there were any.
  bool write_remarks(const std::string& indent, const LoopAttrs& attrs, LoopRemark::Kind kind,
                     const char* label) {
    bool any = false;
    if (!attrs.debug.remarks) return any;
    for (const LoopRemark& note : *attrs.debug.remarks)
      if (note.kind == kind) {
        line(indent, label, ": ", note.text);
        any = true;
      }
    return any;
  }
  /// Writes which of the user's loops this one comes from, unless it is a user's loop.
  void write_parts(const std::string& indent, const LoopAttrs& attrs) {
    write_remarks(indent, attrs, LoopRemark::Kind::joined, "merged");
    write_remarks(indent, attrs, LoopRemark::Kind::apart, "split");
  }

  void write_moves(const std::string& indent, const LoopAttrs& attrs) {
    bool any = false;
    const auto write = [&](LoopRemark::Kind kind, const char* label) {
      any = write_remarks(indent, attrs, kind, label) || any;
    };
    write(LoopRemark::Kind::hoisted, "hoisted");
    if (!passes_.batch_over_time)
      return line(indent, "not moved: ", any ? "all other ops" : "all ops",
                  ", because the pass batch_across_iterations is disabled");
    write(LoopRemark::Kind::sunk, "sunk");
    if (!any) line(indent, "hoisted, sunk: none");
    write(LoopRemark::Kind::stays, "not moved");
  }

  static std::string why_not_planned(const LoopPlan& loop) {
    if (!PlanView::attrs(loop))
      return PlanView::input_types(loop).empty()
                 ? "no iteration has run"
                 : "run by the interpreter, because list elements differ in size";
    std::string why;
    PlannedLoop(PlanContext{})
        .try_plan(PlanView::attrs(loop), PlanView::input_types(loop), true, &why);
    return why.empty() ? "its plan is not complete, because memory ran out"
                       : "run by the interpreter, because " + why;
  }

  void write_packed(const std::string& indent, const Plan& body) {
    std::vector<ValueId> seen;
    for (const OpRecord& record : body.graph().records) {
      const auto in = body.graph().inputs_of(record);
      if (is_product(*record.op) && !passes_.pack_weights)
        return line(indent, "not packed: all ops, because the pass pack_weights is disabled");
      if (!is_packed_dot(*record.op) || std::count(seen.begin(), seen.end(), in[1])) continue;
      seen.push_back(in[1]);
      const TensorType& type = PlanView::types(body).types[in[1]];
      if (has_panels(*record.op, get<DotAttrs>(record.attrs.get()), type))
        line(indent, "packed: ", type, ", before the loop");
      else
        line(indent, "not packed: ", type, ", the matrix is too small to gain from packing");
    }
  }

  void write_fused(const std::string& indent, const Graph& body) {
    const Fusions fusions = fusions_of(body);
    if (fusions.programs)
      line(indent, "fused: ", counted(fusions.ops, "op"), " in ",
           counted(fusions.programs, "tile program"));
    if (!fusions.alone.empty())
      line(indent, "not fused: ", join(fusions.alone), ", ",
           passes_.fuse_pointwise ? "no adjacent element-wise op of that size"
                                  : "because the pass fuse_pointwise is disabled");
  }

  void write_cut(const std::string& indent, const LoopPlan& loop) {
    const auto& blocks = PlanView::blocks(loop);
    std::string why = "an op depends on the number of rows";
    const std::optional<RowCut> cut =
        find_row_cut(PlanView::whole(loop).loop(), PlanView::input_types(loop), passes_, &why);
    if (const int shares = PlanView::whole(loop).shares_of_series(); shares > 1)
      return line(indent, "cut: ", shares, " shares of its elements, on ",
                  counted(std::min(threads(), shares), "thread"));
    if (blocks.empty()) return line(indent, "not cut: ", why);
    const bool ends = PlanView::whole(loop).loop().has_entries();
    const char* which = !ends                ? ""
                        : blocks.size() == 1 ? ", until its longest entry has finished"
                                             : ", grouped by length";
    const auto [least, most] = std::minmax_element(cut->blocks.begin(), cut->blocks.end());
    line(indent, "cut: ", counted(std::ssize(blocks), "block"), " of ", *least,
         *least == *most ? "" : str(" to ", *most), " rows of ", cut->dim, which, ", on ",
         counted(std::min<std::int64_t>(threads(), std::ssize(blocks)), "thread"),
         !PlanView::runs_joined(loop) ? ""
         : ends && threads() > 1      ? ", as shrinking batches"
         : ends                       ? ", as a shrinking batch"
                                      : ", as one batch");
  }

  const Passes& passes_;
  PlanTimes times_;
  TextStream out_;
};

std::string explain(const Plan& plan, const std::string& in_place) {
  return PlanText(PlanView::context(plan)).write(plan, in_place);
}

std::string explain_op_by_op(const Graph& graph, const std::string& indent) {
  std::string result;
  for (const OpRecord& record : graph.records) {
    if (record.op == &cond_op) {
      const auto& attrs = get<CondAttrs>(record.attrs.get());
      result += explain_op_by_op(*attrs.on_true.graph, indent);
      result += explain_op_by_op(*attrs.on_false.graph, indent);
    }
    if (record.op != &loop_op) continue;
    const auto& attrs = get<LoopAttrs>(record.attrs.get());
    std::vector<TensorType> in, out;
    for (const ValueId v : graph.inputs_of(record)) in.push_back(graph.types[v]);
    for (const ValueId v : graph.outputs_of(record)) out.push_back(graph.types[v]);
    const LoopTypes types = types_of(attrs, in, out);
    result += str(indent, "loop, op by op: ", attrs.name, ", ", steps_text(attrs, in), '\n');
    const auto list = [&](const char* label, const std::vector<TensorType>& of) {
      if (!of.empty()) result += str(indent, "  ", label, ": ", types_text(of), '\n');
    };
    list("carries", types.carries);
    list("slices", types.slices);
    list("stacks", types.stacks);
    list("sums", types.sums);
    result += explain_op_by_op(*attrs.body.graph, indent + "  ");
  }
  return result;
}

}  // namespace reel
