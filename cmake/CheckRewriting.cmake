# Fails if code copies a graph's records by hand: GraphRewriter does (core/graph/graph_rewriter.h).
# Use: cmake -D ROOT=<the source folder> -P cmake/CheckRewriting.cmake
file(GLOB_RECURSE sources RELATIVE ${ROOT} ${ROOT}/core/*.cpp ${ROOT}/autodiff/*.cpp ${ROOT}/trace/*.cpp
  ${ROOT}/frontend/*.cpp ${ROOT}/onnx/*.cpp)
set(found "")
foreach(source ${sources})
  if(source STREQUAL core/graph/graph_rewriter.cpp)
    continue()
  endif()
  file(STRINGS ${ROOT}/${source} lines REGEX "records\\.clear\\(\\)|static_cast<OpRecords&>")
  foreach(line ${lines})
    string(APPEND found "  ${source}: ${line}\n")
  endforeach()
endforeach()
if(found)
  message(FATAL_ERROR "GraphRewriter copies the records of a graph:\n${found}")
endif()
