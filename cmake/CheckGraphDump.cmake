# cmake -D PROGRAM=... -D FILTER=... -D FOLDER=... -P CheckGraphDump.cmake: checks that REEL_DUMP_GRAPHS writes the graphs
# of a test's traced function: the graph before the passes of a plan, and after some of them, as text and as pages.
cmake_minimum_required(VERSION 3.25)

file(REMOVE_RECURSE ${FOLDER})
execute_process(
  COMMAND ${CMAKE_COMMAND} -E env REEL_DUMP_GRAPHS=${FOLDER} ${PROGRAM} --gtest_filter=${FILTER}
  OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
file(GLOB texts ${FOLDER}/*-plan/*.txt)
file(GLOB pages ${FOLDER}/*-plan/*.html)
list(LENGTH texts text_count)
list(LENGTH pages page_count)
if(text_count LESS 3 OR NOT text_count EQUAL page_count)
  message(FATAL_ERROR "${FOLDER}: ${text_count} texts and ${page_count} pages of plans")
endif()
file(GLOB first ${FOLDER}/*-plan/00-before.txt)
if(NOT first)
  message(FATAL_ERROR "${FOLDER}: no graph before the passes")
endif()
foreach(text IN LISTS texts)
  file(STRINGS ${text} lines REGEX "return")
  if(NOT lines)
    message(SEND_ERROR "${text}: is no graph")
  endif()
endforeach()
