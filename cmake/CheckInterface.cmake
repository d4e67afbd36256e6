# cmake -D NM=... -D ROOT=... -D "LIBRARIES=libreel.so;..." [-D LEFT_OUT=REGEX] [-D WRITE=ON] -P CheckInterface.cmake
#
# Compares the functions that shared libraries export, and the types of public headers, with tests/install/interface.txt.
# WRITE writes the file instead. LEFT_OUT matches functions that this build lacks, as an optional library is missing.
#
# The list is the same for all compilers: it has functions that are compiled into the library, not inline ones or instances of
# templates, which depend on inlining, and standard types in short form.
cmake_minimum_required(VERSION 3.25)
include(${CMAKE_CURRENT_LIST_DIR}/FindTypes.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/PublicHeaders.cmake)
set(file ${ROOT}/tests/install/interface.txt)

set(text "# Functions that the shared libraries export, and types of installed headers. scripts/interface writes this file.\n")
foreach(library IN LISTS LIBRARIES)
  execute_process(COMMAND ${NM} --dynamic --defined-only --demangle --format=posix ${library}
    OUTPUT_VARIABLE output COMMAND_ERROR_IS_FATAL ANY)
  string(REPLACE "\n" ";" lines "${output}")
  list(FILTER lines INCLUDE REGEX "^reel::.* T [0-9a-f]+ ?[0-9a-f]*$")
  list(TRANSFORM lines REPLACE " T [0-9a-f]+ ?[0-9a-f]*$" "")
  list(JOIN lines "\n" lines)
  string(REPLACE "[abi:cxx11]" "" lines "${lines}")
  string(REGEX REPLACE "std::__[a-z0-9]+::" "std::" lines "${lines}")
  string(REGEX REPLACE ", std::(char_traits|allocator|less|equal_to|hash|default_delete)<([^<>]|<([^<>]|<([^<>]|<[^<>]*>)*>)*>)*>" ""
    lines "${lines}")
  string(REGEX REPLACE "std::basic_string<char ?>" "std::string" lines "${lines}")
  string(REGEX REPLACE "std::basic_string_view<char ?>" "std::string_view" lines "${lines}")
  string(REPLACE ", 18446744073709551615ul>" ">" lines "${lines}")
  string(REGEX REPLACE " +>" ">" lines "${lines}")
  string(REPLACE "\n" ";" lines "${lines}")
  list(REMOVE_DUPLICATES lines)  # constructors and destructors have two symbols
  list(SORT lines)
  list(LENGTH lines count)
  cmake_path(GET library FILENAME name)
  string(REGEX REPLACE "\\.so.*" "" name "${name}")
  if(count LESS 5)
    message(FATAL_ERROR "${library}: found ${count} functions only")
  endif()
  list(JOIN lines "\n" lines)
  string(APPEND text "\n# ${name}\n${lines}\n")
endforeach()

reel_public_headers(${ROOT} headers reel.h distributed.h onnx.h frontend/xtensor.h)
set(types "")
foreach(header IN LISTS headers)
  reel_find_types(${ROOT} ${header} found ALIASES)
  list(APPEND types ${found})
endforeach()
list(FILTER types EXCLUDE REGEX "::detail::|<")  # nor specialisations
list(REMOVE_DUPLICATES types)
list(SORT types)
list(JOIN types "\n" types)
string(APPEND text "\n# types\n${types}\n")

if(WRITE)
  file(WRITE ${file} "${text}")
  return()
endif()
file(READ ${file} expected)
if(expected STREQUAL text)
  return()
endif()
# differences(A B VARIABLE): the lines of text A that text B lacks.
function(differences a b variable)
  string(REPLACE "\n" ";" lines "${${a}}")
  string(REPLACE "\n" ";" others "${${b}}")
  list(REMOVE_ITEM lines ${others} "")
  if(LEFT_OUT)
    list(FILTER lines EXCLUDE REGEX "${LEFT_OUT}")
  endif()
  set(${variable} "${lines}" PARENT_SCOPE)
endfunction()
differences(expected text gone)
differences(text expected new)
if(gone OR new)
  list(JOIN gone "\n  - " gone)
  list(JOIN new "\n  + " new)
  message(FATAL_ERROR "the public interface is another one than tests/install/interface.txt says:\n  - ${gone}\n  + ${new}\n"
    "If this is intended, run scripts/interface, and say in CHANGELOG.md what changes for users, and in docs/upgrading.md if"
    " programs break.")
elseif(NOT LEFT_OUT)
  message(FATAL_ERROR "tests/install/interface.txt has its lines in another order; scripts/interface writes it")
endif()
