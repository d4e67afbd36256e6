# cmake -D NM=... -D OBJECTS=... -P CheckIsaSymbols.cmake
#
# If several files use an inline function, the linker keeps any one of the copies. Objects compiled for newer processors
# must therefore define no such (weak) function outside their own namespace reel::ISA.
cmake_minimum_required(VERSION 3.25)

if(NOT OBJECTS)
  message(FATAL_ERROR "no objects given")
endif()
foreach(object IN LISTS OBJECTS)
  string(REGEX MATCH "\\.(avx[0-9]+)\\.cpp" _ ${object})
  set(own "reel::${CMAKE_MATCH_1}::")
  execute_process(COMMAND ${NM} --defined-only --demangle ${object} OUTPUT_VARIABLE symbols COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCHALL "[0-9a-f]+ [WVu] [^\n]*" weak "${symbols}")
  list(FILTER weak EXCLUDE REGEX "${own}|DW\\.ref\\.")
  if(weak)
    list(JOIN weak "\n  " weak)
    message(SEND_ERROR "${object} shares with other objects:\n  ${weak}")
  endif()
endforeach()
