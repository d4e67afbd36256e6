# cmake -D ROOT=... -P CheckTypes.cmake: fails if two files define a type of one name in one namespace.
#
# If two files define different types of one name, the linker keeps one of their destructors, and one of every other inline
# function that takes such a type. The program then destroys one type as if it were the other. A compiler sees one file at
# a time and reports nothing; with optimisation the fault hides where functions are inlined.
#
# Types in anonymous namespaces belong to one file each and are free. reel and reel::detail share one list of names, since
# code in detail reads both. Other namespaces (reel::imported, reel::fuzz, ...) have lists of their own. A specialisation
# is a name of its own. Nested types are told apart by their outer types.
#
# The scan reads lines as .clang-format makes them: what a namespace contains begins in the first column, and the end of a
# namespace repeats its name in a comment, unless nothing between its lines ends with a brace.
cmake_minimum_required(VERSION 3.25)

set(head "(template <.*> )?(struct|class|union|enum|enum class|enum struct) ")
set(attributes "(  [a-z_]+   |alignas\\([^)]*\\) |[A-Z][A-Z_]+ )*")
set(definition "^${head}${attributes}([A-Za-z_][A-Za-z0-9_:]*(<.*>|<[^>]*$)?)( final)?( ?:[^:].*| {.*)?$")

# find_types(FILE OUT): the types that a file defines in reel outside of anonymous namespaces, with their namespaces.
function(find_types file out)
  file(READ ${ROOT}/${file} text)
  string(REGEX REPLACE "[][\\]" " " text "${text}")  # in a list of CMake, these join lines
  string(REPLACE ";" "%" text "${text}")
  string(REPLACE "\n" ";" lines "${text}")
  list(FILTER lines INCLUDE REGEX "{ *(//.*)?$|^}|^(inline )?namespace |^${head}")
  set(open "")           # namespaces around the line
  set(last_brace other)  # what the last line with a brace at its end opened
  set(types "")
  foreach(line IN LISTS lines)
    string(REGEX REPLACE " *//.*$" "" code "${line}")
    if(line MATCHES "^}  // namespace ?([A-Za-z0-9_:]*)" OR (line STREQUAL "}" AND last_brace STREQUAL "namespace"))
      list(POP_BACK open name)
      if(NOT line STREQUAL "}" AND NOT name STREQUAL "namespace ${CMAKE_MATCH_1}")
        message(SEND_ERROR "${file}: \"${line}\" ends \"${name}\"; end each namespace by a comment with its name")
      endif()
      set(last_brace other)
    elseif(code MATCHES "^(inline )?namespace ([A-Za-z0-9_:]*) ?{$")
      list(APPEND open "namespace ${CMAKE_MATCH_2}")
      set(last_brace namespace)
    else()
      if(code MATCHES "{$")
        set(last_brace other)
      endif()
      if(code MATCHES "${definition}" AND (code MATCHES "{" OR NOT code MATCHES "%$"))
        string(REGEX REPLACE "> : .*$" ">" name "${CMAKE_MATCH_4}")  # a specialisation, without its bases
        list(JOIN open "::" space)
        string(REPLACE "namespace " "" space "${space}")
        if(space MATCHES "^reel" AND NOT "namespace " IN_LIST open)
          list(APPEND types "${space}::${name}")
        endif()
      endif()
    endif()
  endforeach()
  if(open)
    message(SEND_ERROR "${file}: nothing ends \"${open}\"; end each namespace by a comment with its name")
  endif()
  set(${out} "${types}" PARENT_SCOPE)
endfunction()

set(count 0)
foreach(top core eager trace autodiff frontend distributed onnx tests bench examples)
  file(GLOB_RECURSE files RELATIVE ${ROOT} ${ROOT}/${top}/*.h ${ROOT}/${top}/*.cpp)
  foreach(file IN LISTS files)
    find_types(${file} types)
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
