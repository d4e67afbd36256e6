# cmake -D ROOT=... -P CheckTypes.cmake: fails if two files define a type of one name in one namespace.
#
# If two files define different types of one name, the linker keeps one of their destructors, and one of every other inline
# function that takes such a type. The program then destroys one type as if it were the other. A compiler sees one file at
# a time and reports nothing; with optimisation the fault hides where functions are inlined.
#
# Types in anonymous namespaces belong to one file each and are free. reel and reel::detail share one list of names, since
# code in detail reads both. Other namespaces (reel::imported, reel::fuzz, ...) have lists of their own. A specialisation
# is a name of its own. Nested types are told apart by their outer types.
cmake_minimum_required(VERSION 3.25)
include(${CMAKE_CURRENT_LIST_DIR}/FindTypes.cmake)

set(count 0)
foreach(top core eager trace autodiff frontend distributed onnx tests bench examples)
  file(GLOB_RECURSE files RELATIVE ${ROOT} ${ROOT}/${top}/*.h ${ROOT}/${top}/*.cpp)
  foreach(file IN LISTS files)
    reel_find_types(${ROOT} ${file} types)
    foreach(type IN LISTS types)
      math(EXPR count "${count} + 1")
      string(REGEX REPLACE "^reel::detail::" "reel::" key "${type}")
      string(MAKE_C_IDENTIFIER "${key}" key)
      if(DEFINED type_${key} AND NOT file_${key} STREQUAL file)
        message(SEND_ERROR "${type_${key}} of ${file_${key}} and ${type} of ${file} have one name: move one of them into"
          " an anonymous namespace, or rename it")
      endif()
      set(type_${key} ${type})
      set(file_${key} ${file})
    endforeach()
  endforeach()
endforeach()
if(count LESS 700)
  message(FATAL_ERROR "found ${count} types only")
endif()
