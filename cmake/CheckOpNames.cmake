# cmake -D ROOT=... -P CheckOpNames.cmake: checks which files of trace/ and frontend/transforms/ name ops. An op tells its
# axes, zeros, failures and padding itself (core/op/axes.h, facts.h); a pass names ops that it matches or builds, and no
# others. Control ops are the structure of graphs.
cmake_minimum_required(VERSION 3.25)
include(${CMAKE_CURRENT_LIST_DIR}/OpNames.cmake)

set(control loop_op cond_op fused_op checkpointed_op recompute_op custom_vjp_op)

# Files that match a pattern of ops, build one, or both.
set(allowed
  trace/executors/plan/base/rates.cpp                       # builds: calls whose times it takes
  trace/executors/plan/explain/explain.cpp                  # matches: packed products
  trace/executors/plan/plan_donation.cpp                    # matches: updates of some rows, undone if a run fails
  trace/executors/plan/tiles/tile_body.cpp                  # builds: products of a recurrence
  trace/passes/analysis/table_rows.cpp                      # matches: updates of gathered rows
  trace/passes/cleanup/drop_masks.cpp                       # matches: masks and their readers
  trace/passes/cleanup/fold_constants.cpp                   # both: constants
  trace/passes/cleanup/share_masked_operands.cpp            # matches: masks of products
  trace/passes/cleanup/sink_transposes.cpp                  # both: transposes, and windows behind them
  trace/passes/fusion/pointwise_groups.cpp                  # matches: the ops of a tile
  trace/passes/fusion/scatter_last.cpp                      # both: scattered numbers minus products
  trace/passes/fusion/tile_ops.cpp                          # matches: the ops of a tile
  trace/passes/fusion/unfold_products.cpp                   # both: products, as element-wise ops and sums
  trace/passes/hoisting/batch_across_iterations.cpp         # matches: scaled sums of products
  trace/passes/hoisting/hoist_embedding_products.cpp        # both: products of gathered rows
  trace/passes/hoisting/loop_fission.cpp                    # matches: products of gathered rows
  trace/passes/hoisting/loop_fission_sums.cpp               # matches: terms of sums, and linear recurrences
  trace/passes/hoisting/pack_weights.cpp                    # both: packed products
  trace/passes/loop_structure/feed_chunks.cpp               # both: values repeated for each time step
  trace/passes/loop_structure/rows_first.cpp          # both: products behind transposes
  trace/passes/rows/body_on_rows.cpp                        # both: products and draws of some rows
  trace/passes/rows/sums_by_block.cpp                       # both: sums over rows, by block
  frontend/transforms/branch_cost.cpp                 # matches: products and sorts, by their measured costs
  frontend/transforms/rematerialize.cpp               # matches: names that users give to values
  frontend/transforms/saved_values.cpp)               # matches: names that users give to values

# The names of all ops.
reel_op_names(${ROOT} ops)
list(REMOVE_ITEM ops ${control})

# The functions of core/ops and trace/ that tell which op one is: those that take an op or a record and compare it with an
# op by address. A call of one names an op, too.
file(GLOB_RECURSE sources ${ROOT}/core/ops/*.cpp ${ROOT}/core/ops/*.h ${ROOT}/trace/*.cpp ${ROOT}/trace/*.h)
set(questions "")
foreach(source IN LISTS sources)
  file(STRINGS ${source} lines REGEX "^[a-z][^;]*[ *&][a-z_]+\\(.*const Op|[!=]= &[a-z_0-9]+_op|^}")
  set(function "")
  foreach(line IN LISTS lines)
    if(line MATCHES "^[a-z].*[ *&]([a-z_]+)\\(.*const Op(Record)?[ *&]")
      string(REGEX REPLACE "\\(.*" "" function "${line}")
      string(REGEX REPLACE ".*[ *&]" "" function "${function}")
    endif()
    string(REGEX MATCHALL "[!=]= &[a-z_0-9]+_op" found "${line}")
    foreach(one IN LISTS found)
      string(REGEX REPLACE ".*&" "" one "${one}")
      if(function AND one IN_LIST ops)
        list(APPEND questions ${function})
      endif()
    endforeach()
    if(line MATCHES "^}" OR line MATCHES "}$")
      set(function "")
    endif()
  endforeach()
endforeach()
list(REMOVE_DUPLICATES questions)
list(LENGTH questions count)
if(count LESS 10)
  message(FATAL_ERROR "found ${count} functions that tell which op one is")
endif()
list(JOIN questions "|" questions)

file(GLOB_RECURSE files RELATIVE ${ROOT} ${ROOT}/trace/*.cpp ${ROOT}/trace/*.h ${ROOT}/frontend/transforms/*.cpp
  ${ROOT}/frontend/transforms/*.h)
# Every list of ops of a family (core/ops/registry.h).
file(STRINGS ${ROOT}/core/ops/registry.h families REGEX "_ops\\(\\)")
list(TRANSFORM families REPLACE ".*[ *&>]([a-z_]+_ops)\\(\\).*" "\\1")
list(REMOVE_ITEM families all_ops)
list(JOIN families "|" families)

set(named "")
foreach(file IN LISTS files)
  file(STRINGS ${ROOT}/${file} lines
    REGEX "_op($|[^a-z_0-9])|_ops\\(\\)|(${questions})\\(|TileOp::|kernel [!=]= |[.>]name([.]starts_with\\(| [!=]= )\"")
  foreach(line IN LISTS lines)
    string(REGEX REPLACE "//.*" "" line "${line}")
    if(line MATCHES "^[A-Za-z].* ?(${questions})\\(const Op[^;]*;")
      continue()  # a declaration
    endif()
    string(REGEX MATCHALL "[&({ ][a-z_0-9]+_op[^a-z_0-9(]" found "${line} ")
    set(is_named FALSE)
    foreach(one IN LISTS found)
      string(REGEX REPLACE "[^a-z_0-9]" "" one "${one}")
      if(one IN_LIST ops)
        set(is_named TRUE)
      endif()
    endforeach()
    if(line MATCHES "[^a-z_](${families})\\(\\)" OR line MATCHES "[^a-z_](${questions})\\(" OR
       line MATCHES "TileOp::|kernel [!=]= |op(->|[.])name([.]starts_with\\(| [!=]= )\"")
      set(is_named TRUE)
    endif()
    if(is_named)
      list(APPEND named ${file})
      if(NOT file IN_LIST allowed)
        message(SEND_ERROR "${file} names an op; ask the op (core/op/facts.h), or list the file in "
          "cmake/CheckOpNames.cmake if it matches or builds a pattern:\n  ${line}")
      endif()
    endif()
  endforeach()
endforeach()
list(LENGTH named uses)
list(REMOVE_DUPLICATES named)
foreach(file IN LISTS allowed)
  if(NOT file IN_LIST named)
    message(SEND_ERROR "cmake/CheckOpNames.cmake lists ${file}, which names no op")
  endif()
endforeach()
list(FILTER named INCLUDE REGEX "^trace/")
list(LENGTH named count)
message(STATUS "${count} files of trace/ name ops; with frontend/transforms/, in ${uses} lines")
if(count GREATER 22)
  message(SEND_ERROR "${count} files of trace/ name ops, and 22 are allowed: let an op tell a fact instead, or join two "
    "files of one pattern. If neither is possible, raise the number here, and say why in the commit")
endif()
