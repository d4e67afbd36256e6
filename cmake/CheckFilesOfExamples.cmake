# cmake -D ROOT=... -P CheckFilesOfExamples.cmake: checks that the tables "Every file of ..." of docs/ list the files that an
# addition touches: all files with a name of the example, except those that only use it.
cmake_minimum_required(VERSION 3.25)

# Sets OUT to the paths in the first column of a section's table, and COUNT to the number of rows that every addition needs:
# those with "always", or all rows of a table without such a column.
function(read_table page section out count)
  file(STRINGS ${ROOT}/docs/${page} lines)
  set(inside FALSE)
  set(paths "")
  set(always 0)
  set(has_column FALSE)
  foreach(line IN LISTS lines)
    if(line MATCHES "^#+ (.*)")
      set(inside FALSE)
      if(CMAKE_MATCH_1 STREQUAL section)
        set(inside TRUE)
      endif()
    elseif(inside AND line MATCHES "^\\| file \\| needed \\|")
      set(has_column TRUE)
    elseif(inside AND line MATCHES "^\\| `([^`]+)` \\|")
      list(APPEND paths ${CMAKE_MATCH_1})
      if(NOT has_column OR line MATCHES "^\\| `[^`]+` \\| always \\|")
        math(EXPR always "${always} + 1")
      endif()
    endif()
  endforeach()
  set(${out} ${paths} PARENT_SCOPE)
  set(${count} ${always} PARENT_SCOPE)
endfunction()

# Compares a table with the files that match REGEX. Further arguments: expressions of paths whose files use the example.
# A page of docs/changes/ counts as CHANGELOG.md, where its lines stood before the release.
function(check page section regex)
  read_table(${page} "${section}" listed always)
  if(NOT listed)
    message(FATAL_ERROR "docs/${page} has no table \"${section}\"")
  endif()
  set(files ${ROOT}/CHANGELOG.md)
  foreach(top autodiff bench cmake core distributed docs eager examples frontend onnx tests trace)
    file(GLOB_RECURSE some ${ROOT}/${top}/*.h ${ROOT}/${top}/*.cpp ${ROOT}/${top}/*.txt ${ROOT}/${top}/*.toml
      ${ROOT}/${top}/*.cmake ${ROOT}/${top}/*.md)
    list(APPEND files ${some})
  endforeach()
  set(found "")
  set(unused ${ARGN})
  foreach(path IN LISTS files)
    file(RELATIVE_PATH file ${ROOT} ${path})
    if(file MATCHES "^docs/adding_a|^cmake/CheckFilesOfExamples.cmake")
      continue()
    endif()
    file(STRINGS ${path} lines REGEX "${regex}" LIMIT_COUNT 1)
    if(NOT lines)
      continue()
    endif()
    string(REGEX REPLACE "^docs/changes/.*" "CHANGELOG.md" file "${file}")
    set(is_use FALSE)
    foreach(use IN LISTS ARGN)
      if(file MATCHES "${use}")
        set(is_use TRUE)
        list(REMOVE_ITEM unused "${use}")
      endif()
    endforeach()
    if(NOT is_use)
      list(APPEND found ${file})
    endif()
  endforeach()
  list(REMOVE_DUPLICATES found)
  foreach(file IN LISTS listed)
    if(NOT file IN_LIST found)
      message(SEND_ERROR "docs/${page}, \"${section}\": ${file} does not name the example")
    endif()
  endforeach()
  foreach(file IN LISTS found)
    if(NOT file IN_LIST listed)
      message(SEND_ERROR "docs/${page}, \"${section}\" lacks ${file}, which names the example: "
        "add a row, or the file to the uses in cmake/CheckFilesOfExamples.cmake if it only uses it")
    endif()
  endforeach()
  foreach(use IN LISTS unused)
    message(SEND_ERROR "CheckFilesOfExamples.cmake: no file of ${use} uses the example of \"${section}\"")
  endforeach()
  list(LENGTH listed count)
  message(STATUS "${section}: ${count} files, ${always} always")
  if(always GREATER 8)
    message(SEND_ERROR "docs/${page}: an addition shall need at most eight files")
  endif()
endfunction()

# All names of the op: its file, its object, its attributes, its function, and its name in texts and pages. Folders in
# which functions are used, and files that have another thing of the name (an option, a direction).
set(in_front "(^|[^A-Za-z_.:>])")
check(adding_an_op.md "Every file of reverse"
  "[ /]reverse\\.cpp|${in_front}reverse_op([^a-z_]|$)|ReverseAttrs|${in_front}reverse\\(|reel::reverse\\(|\"reverse\"|`reverse`"
  "^(autodiff|bench|examples|frontend)/" "^tests/(cases|frontend|onnx|start|trace)/" "^docs/(decisions|start)/|^docs/semantics.md"
  "^core/ops/(reductions/cumulative.h|scans/)" "^onnx/(ops/|writers/recurrent_writer.cpp|writers/reductions.cpp)"
  "^tests/core/ops/shown_padding_test.cpp" "^tests/fuzz/(program/|rules/control/)")
# Here the functor and the enumerator are names too; the file has other ops.
check(adding_an_op.md "Every file of tanh"
  "${in_front}tanh_op([^a-z_]|$)|(^|[^A-Za-z])Tanh([^A-Za-z]|$)|Unary::tanh([^a-z_]|$)|^ *tanh,|${in_front}tanh\\(|reel::tanh\\(|\"tanh\"|`tanh`"
  "^(autodiff|bench|distributed|examples|frontend)/" "^trace/(executors/plan/tiles|passes)/"
  "^tests/(autodiff|cases|compilers|distributed|eager|exit|frontend|onnx|pages|start|trace)/" "^tests/install/model.cpp"
  "^docs/" "^core/options/checkpoint_policy.h"
  "^onnx/(op_forms.cpp|ops/attention.cpp|ops/recurrent.cpp|writers/cell_pattern.cpp)"
  "^tests/core/(graph_rewriter_test|ops/linear_scan_test).cpp" "^tests/fuzz/(drafter.cpp|program/|relations/|rules/[a-df-z])")
check(adding_a_pass.md "Every file of a pass" "(^|[^a-z_])drop_masks([^a-z_]|_test)")
