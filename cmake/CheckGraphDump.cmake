# cmake -D PROGRAM=... -D FILTER=... -D FOLDER=... -P CheckGraphDump.cmake: checks that REEL_DUMP_GRAPHS writes the graphs
# of a test's traced function: the graph before the passes of a plan, and after some of them, as text and as pages. As root,
# also that it follows no link that another user put into a folder like /tmp.
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

execute_process(COMMAND id -u OUTPUT_VARIABLE user OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
if(NOT user EQUAL 0)
  return()
endif()
# The name of a subfolder is that of the first run.
list(GET first 0 planted)
cmake_path(GET planted PARENT_PATH planted)
cmake_path(GET planted FILENAME planted)
set(shared ${FOLDER}/shared)
file(MAKE_DIRECTORY ${shared} ${FOLDER}/victim)
file(CHMOD ${shared} PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_WRITE GROUP_EXECUTE
  WORLD_READ WORLD_WRITE WORLD_EXECUTE)
execute_process(COMMAND chmod +t ${shared} COMMAND_ERROR_IS_FATAL ANY)
foreach(link ${planted} graphs)
  file(CREATE_LINK ${FOLDER}/victim ${shared}/${link} SYMBOLIC)
  execute_process(COMMAND chown -h 54321 ${shared}/${link} COMMAND_ERROR_IS_FATAL ANY)
endforeach()
foreach(dump ${shared} ${shared}/graphs)
  execute_process(
    COMMAND ${CMAKE_COMMAND} -E env REEL_DUMP_GRAPHS=${dump} ${PROGRAM} --gtest_filter=${FILTER}
    OUTPUT_QUIET ERROR_VARIABLE errors COMMAND_ERROR_IS_FATAL ANY)
  if(NOT errors MATCHES "REEL_DUMP_GRAPHS: [^\n]*is a link of user 54321 in a folder where all may write")
    message(SEND_ERROR "${dump}: expected a line about the link of user 54321, got: ${errors}")
  endif()
endforeach()
file(GLOB written ${FOLDER}/victim/*)
if(written)
  message(SEND_ERROR "written through a link of another user: ${written}")
endif()
