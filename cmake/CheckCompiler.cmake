# Installs a build, builds the programs of a user's project against it with another compiler and with all warnings as
# errors, and runs them. Then checks that options which Reel cannot work with give one clear error.
#   cmake -D BUILD=build/release -D PROJECT=tests/compilers -D FOLDER=... -D COMPILER=clang++-19 -P cmake/CheckCompiler.cmake
cmake_minimum_required(VERSION 3.25)
set(prefix ${FOLDER}/prefix)
file(REMOVE_RECURSE ${FOLDER})
execute_process(COMMAND ${CMAKE_COMMAND} --install ${BUILD} --prefix ${prefix} OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
execute_process(
  COMMAND ${CMAKE_COMMAND} -S ${PROJECT} -B ${FOLDER}/programs -D CMAKE_PREFIX_PATH=${prefix} -D CMAKE_CXX_COMPILER=${COMPILER}
  OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${CMAKE_COMMAND} --build ${FOLDER}/programs --parallel 2 COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${CMAKE_CTEST_COMMAND} --test-dir ${FOLDER}/programs --output-on-failure COMMAND_ERROR_IS_FATAL ANY)

# refuses(OPTION SENTENCE): an error unless the compiler ends with the sentence, and nothing but the note that ends it.
function(refuses option sentence)
  file(WRITE ${FOLDER}/refused.cpp "#include <reel/reel.h>\n")
  execute_process(COMMAND ${COMPILER} -std=c++20 ${option} -fsyntax-only -I${prefix}/include ${FOLDER}/refused.cpp
    RESULT_VARIABLE result ERROR_VARIABLE errors)
  string(FIND "${errors}" "${sentence}" place)
  string(REGEX MATCHALL "error: " all "${errors}")
  list(LENGTH all count)
  if(result EQUAL 0 OR place EQUAL -1 OR NOT count EQUAL 2)
    message(FATAL_ERROR "${option}: expected the error \"${sentence}\", got ${count} errors:\n${errors}")
  endif()
endfunction()
refuses(-fno-rtti "Reel needs run-time type information: compile without -fno-rtti")
refuses(-fno-exceptions "Reel needs exceptions: compile without -fno-exceptions")
refuses(-std=c++17 "Reel needs C++20: compile with -std=c++20")

execute_process(COMMAND ${COMPILER} -dumpversion OUTPUT_VARIABLE version)
execute_process(COMMAND ${COMPILER} --version OUTPUT_VARIABLE name)
if(name MATCHES "clang" AND version VERSION_LESS 17)
  # Instead of "no viable constructor or deduction guide".
  execute_process(COMMAND ${COMPILER} -std=c++20 -fsyntax-only -I${prefix}/include ${PROJECT}/scans.cpp
    ERROR_VARIABLE errors)
  string(FIND "${errors}" "clang before 17 cannot deduce the template arguments of Scan{...}" place)
  if(place EQUAL -1)
    message(FATAL_ERROR "${PROJECT}/scans.cpp: no sentence about clang before 17:\n${errors}")
  endif()
endif()
