# cmake -D NM=... -D LIBRARY=libreel.so -D USES=object;archive... -D OBJDUMP=... -D SONAME=... -P CheckExports.cmake
#
# Checks that the shared library has its SONAME, that it exports the names that USES take from it, and no names of other libraries, of
# instruction sets, or of most of its own functions.
cmake_minimum_required(VERSION 3.25)

# symbols(VARIABLE argument...): the names that nm prints.
function(symbols variable)
  execute_process(COMMAND ${NM} --format=posix ${ARGN} OUTPUT_VARIABLE output COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCHALL "(^|\n)[A-Za-z0-9_.$]+ [A-Za-z]" names "${output}")
  list(TRANSFORM names REPLACE "\n?([^ ]+) ." "\\1")
  list(REMOVE_DUPLICATES names)
  set(${variable} "${names}" PARENT_SCOPE)
endfunction()

execute_process(COMMAND ${OBJDUMP} -p ${LIBRARY} OUTPUT_VARIABLE headers COMMAND_ERROR_IS_FATAL ANY)
if(NOT headers MATCHES "SONAME +([^ \n]+)" OR NOT CMAKE_MATCH_1 STREQUAL SONAME)
  message(SEND_ERROR "${LIBRARY} has the SONAME ${CMAKE_MATCH_1}; expected ${SONAME}")
endif()

symbols(exported --dynamic --defined-only ${LIBRARY})
symbols(defined --defined-only ${LIBRARY})

# Itanium names: a length and the identifier.
set(foreign ${exported})
list(FILTER foreign INCLUDE REGEX "8nlohmann|5Xbyak|3fmt|2xt[0-9I]|5xsimd|3tbb|4dnnl|4reel(5sse42|4avx2|6avx512|4neon)|^csv_|^sf_|^backtrace_")
if(foreign)
  list(JOIN foreign "\n  " foreign)
  message(SEND_ERROR "${LIBRARY} exports names that are not Reel's interface (c++filt shows them):\n  ${foreign}")
endif()

foreach(kind exported defined)
  set(reel ${${kind}})
  list(FILTER reel INCLUDE REGEX "^_ZNK?4reel")
  list(LENGTH reel ${kind}_count)
endforeach()
math(EXPR half "${defined_count} / 2")
if(exported_count LESS 500 OR NOT exported_count LESS half)
  message(SEND_ERROR "${LIBRARY} exports ${exported_count} functions of its ${defined_count}; expected at least 500, at most half")
endif()

foreach(name IN LISTS defined)
  set(is_defined_${name} TRUE)
endforeach()
foreach(name IN LISTS exported)
  set(is_exported_${name} TRUE)
endforeach()
set(used 0)
foreach(file IN LISTS USES)
  symbols(names --undefined-only ${file})
  foreach(name IN LISTS names)
    if(is_exported_${name})
      math(EXPR used "${used} + 1")
    elseif(is_defined_${name} AND name MATCHES "^_Z")
      message(SEND_ERROR "${file} uses ${name}, which ${LIBRARY} does not export: REEL_API in its header (core/base/visibility.h)")
    endif()
  endforeach()
endforeach()
if(used LESS 100)
  message(SEND_ERROR "the programs use ${used} names of ${LIBRARY} only")
endif()
message(STATUS "${LIBRARY} exports ${exported_count} functions of its ${defined_count}")
