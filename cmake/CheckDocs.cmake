# cmake -D ROOT=... -P CheckDocs.cmake: checks that code in docs/ that names its file (// core/ops/elementwise/unary.cpp) is in it.
cmake_minimum_required(VERSION 3.25)

# Ignores whitespace: a page may indent less than the file does.
function(squeeze text result)
  string(REGEX REPLACE "[ \n]+" " " text "${text}")
  string(STRIP "${text}" text)
  set(${result} "${text}" PARENT_SCOPE)
endfunction()

file(GLOB_RECURSE pages ${ROOT}/docs/*.md)
foreach(page IN LISTS pages)
  file(READ ${page} text)
  # Semicolons separate the elements of CMake lists, and are frequent in code.
  string(REPLACE ";" "\\;" text "${text}")
  string(REGEX MATCHALL "```cpp\n// [^\n]+\n[^`]*```" blocks "${text}")
  foreach(block IN LISTS blocks)
    string(REGEX MATCH "^```cpp\n// ([^\n]+)\n(.*)```$" _ "${block}")
    set(file ${CMAKE_MATCH_1})
    squeeze("${CMAKE_MATCH_2}" code)
    file(READ ${ROOT}/${file} source)
    squeeze("${source}" source)
    string(FIND "${source}" "${code}" place)
    if(place EQUAL -1)
      message(SEND_ERROR "${page} shows code that is not in ${file}:\n${CMAKE_MATCH_2}")
    endif()
  endforeach()
endforeach()
