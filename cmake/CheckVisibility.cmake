# cmake -D ROOT=... -P CheckVisibility.cmake: checks that every public header marks its names as exported, by
# REEL_API_BEGIN before the first and REEL_API_END behind the last namespace (core/base/visibility.h).
cmake_minimum_required(VERSION 3.25)
include(${CMAKE_CURRENT_LIST_DIR}/PublicHeaders.cmake)

reel_public_headers(${ROOT} headers reel.h distributed.h onnx.h frontend/xtensor.h)
list(LENGTH headers count)
if(count LESS 100)
  message(FATAL_ERROR "reel.h, distributed.h and onnx.h reach ${count} headers only")
endif()
foreach(header IN LISTS headers)
  file(STRINGS ${ROOT}/${header} lines REGEX "^(REEL_API_BEGIN|REEL_API_END|namespace reel.*|}  // namespace reel.*)$")
  list(TRANSFORM lines REPLACE "^(namespace|}).*" "\\1")
  list(JOIN lines " " lines)
  if(lines AND NOT lines MATCHES "^REEL_API_BEGIN namespace (} namespace )*} REEL_API_END$")
    message(SEND_ERROR "${header}: is public, and its namespaces are not between REEL_API_BEGIN and REEL_API_END")
  endif()
endforeach()
