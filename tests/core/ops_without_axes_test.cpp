// Every op tells its axes (core/op/axes.h), or has a reason here. Without axes an op runs in no row
// block, and vmap loops over it: a new op would lose speed without an error.
#include <gtest/gtest.h>

#include <set>
#include <string_view>
#include <vector>

#include "reel/core/op/axes.h"
#include "reel/core/op/op.h"

namespace reel {
namespace {

struct Reason {
  const char* why;
  std::vector<std::string_view> ops;
};
const Reason kReasons[] = {
    {"RowAxes follows the graph inside",
     {"loop", "cond", "fused", "checkpointed", "custom_vjp", "recompute"}},
    {"is a mark for other passes, which remove it before rows are cut", {"afresh"}},
    {"has an effect: one print or check is not one of each row",
     {"print", "check_numerics", "assert_that", "check_rows"}},
    {"has no operand with axes, and no equal elements",
     {"constant", "range", "dim_lengths", "dim_token", "mask"}},
    {"makes a dim: its lengths are those of all rows", {"define_dim"}},
    {"each row of vmap has a key; rows of a batch have one", {"fold_key"}},
    {"the result is the size of axes, which all rows have in common", {"axes_size"}},
    {"result types depend on the values of all elements",
     {"ctc_labels", "true_positions", "coalesce_rows", "shape_of", "scatter_places",
      "gather_places", "matrix_places", "row_numbers"}},
    {"takes rows of one table by number, for optimisers: a table has no batch",
     {"take_rows", "add_rows", "put_rows"}},
    {"vmap has a rule for it; in row blocks, indices of all rows would compete for one element",
     {"scatter_max"}},
    {"the norm of all elements", {"norm"}},
    {"skips padding of several axes at once; passes make it of dot behind the cut",
     {"unpadded_dot"}},
    {"adds blocks of rows in one order; passes make it behind the cut", {"sum_blocks"}},
    {"reorders a matrix for packed products, which stays outside of loops",
     {"pack", "pack_turned"}},
    {"has the size of another operand, of any dims", {"sum_to", "reshape_like"}},
    {"finished entries are told by a mask of all rows", {"fill_running", "collect_running"}},
    {"a list has no axes; vmap runs a loop over the rows",
     {"list_new",     "list_write",  "list_drop",    "list_read",       "list_read_like",
      "list_one_hot", "list_index",  "list_stack",   "list_unstack",    "list_size",
      "list_gather",  "list_spread", "list_scatter", "list_extend",     "list_part",
      "list_concat",  "list_join",   "list_split",   "list_zeros_like", "list_add",
      "list_retype",  "list_resize"}},
    {"the rank is unknown before a run",
     {"as_unranked", "ranked_like", "ensure_shape_unranked", "stack_unranked", "slice_unranked"}},
};

TEST(OpsWithoutAxesTest, HaveAReason) {
  std::set<std::string_view> listed;
  for (const Reason& reason : kReasons) listed.insert(reason.ops.begin(), reason.ops.end());
  std::set<std::string_view> names;
  for (const Op* op : all_ops()) {
    names.insert(op->name);
    const bool tells = op->axes || op->pointwise;
    EXPECT_NE(tells, listed.contains(op->name))
        << op->name
        << (tells ? " tells its axes and is listed" : " tells no axes and has no reason");
  }
  for (const std::string_view name : listed) EXPECT_TRUE(names.contains(name)) << name;
}

}  // namespace
}  // namespace reel
