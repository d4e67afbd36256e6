# Fails if code copies records of a graph by hand: GraphRewriter does, inline_graph() and part_of_graph()
# (core/graph/graph_rewriter.h). By hand are: cleared records, an appended record with the attributes of the record that it
# copies, and a new graph with the types of another one.
# Use: cmake -D ROOT=<the source folder> -P cmake/CheckRewriting.cmake
cmake_minimum_required(VERSION 3.25)
set(allowed
  autodiff/reverse_graph.cpp           # divides one recording between a forward and a reverse graph
  core/graph/graph_rewriter.cpp
  core/graph/passes/merge_equal.cpp)   # numbers values anew, so that merged ones take no place

file(GLOB_RECURSE sources RELATIVE ${ROOT} ${ROOT}/core/*.cpp ${ROOT}/autodiff/*.cpp ${ROOT}/trace/*.cpp
  ${ROOT}/frontend/*.cpp ${ROOT}/onnx/*.cpp)
set(copies "append\\(\\*?([a-z_0-9.]+)(\\.op)?, ([a-z_0-9.]+)\\.attrs")
set(found "")
set(used "")
foreach(source IN LISTS sources)
  file(STRINGS ${ROOT}/${source} lines REGEX
    "records\\.clear\\(\\)|static_cast<OpRecords&>|append\\(.*\\.attrs|->types = [a-z_.>*-]+types;")
  foreach(line IN LISTS lines)
    if(line MATCHES "append\\(")
      if(NOT line MATCHES "${copies}")
        continue()
      endif()
      set(copy "${CMAKE_MATCH_1}")
      set(owner "${CMAKE_MATCH_3}")
      string(REGEX REPLACE "\\.op$" "" copy "${copy}")
      if(NOT copy STREQUAL owner)
        continue()
      endif()
    endif()
    if(source IN_LIST allowed)
      list(APPEND used ${source})
    else()
      string(APPEND found "  ${source}: ${line}\n")
    endif()
  endforeach()
endforeach()
if(found)
  message(FATAL_ERROR "GraphRewriter copies the records of a graph:\n${found}")
endif()
foreach(source IN LISTS allowed)
  if(NOT source IN_LIST used)
    message(SEND_ERROR "cmake/CheckRewriting.cmake lists ${source}, which copies no records")
  endif()
endforeach()
