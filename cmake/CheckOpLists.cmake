# cmake -D ROOT=... -P CheckOpLists.cmake: checks that each op of core/ops is in a list `const Op* const k...[]` beside it,
# from which all_ops() takes the ops that tests run.
cmake_minimum_required(VERSION 3.25)

include(${CMAKE_CURRENT_LIST_DIR}/OpNames.cmake)
reel_op_names(${ROOT} defined)

file(GLOB_RECURSE sources ${ROOT}/core/ops/*.cpp)
set(listed "")
foreach(source IN LISTS sources)
  file(READ ${source} text)
  string(REGEX MATCHALL "const Op\\* const k[A-Za-z]+\\[\\] = {[^}]*}" lists "${text}")
  string(REGEX MATCHALL "&[a-z_0-9]+_op" names "${lists}")
  list(APPEND listed ${names})
endforeach()
foreach(op IN LISTS defined)
  if(NOT "&${op}" IN_LIST listed)
    message(SEND_ERROR "${op} is in no list of its family (const Op* const k...[] = {...}): no test runs it")
  endif()
endforeach()
