# cmake -D COMPILER=... -D FLAGS=... -D INCLUDE=... -D FOLDER=... -D BUILD=... -P CheckCompileErrors.cmake:
# checks that each program of FOLDER fails to compile, with the sentence in its first line, in at most 40 lines of output.
cmake_minimum_required(VERSION 3.25)

set(most_lines 40)
set(compile ${COMPILER} ${FLAGS} -std=c++20 -fdiagnostics-color=never)
# Precompiles the headers once for all programs.
file(MAKE_DIRECTORY ${BUILD}/reel)
execute_process(COMMAND ${compile} -w -x c++-header -I${INCLUDE} ${INCLUDE}/reel/reel.h -o ${BUILD}/reel/reel.h.gch
  COMMAND_ERROR_IS_FATAL ANY)
file(GLOB programs ${FOLDER}/*.cpp)
foreach(program IN LISTS programs)
  file(STRINGS ${program} sentence LIMIT_COUNT 1 REGEX "^// error: ")
  string(REPLACE "// error: " "" sentence "${sentence}")
  execute_process(COMMAND ${compile} -fsyntax-only -I${BUILD} -I${INCLUDE} ${program}
    RESULT_VARIABLE result ERROR_VARIABLE errors)
  if(result EQUAL 0)
    message(SEND_ERROR "${program} compiles, but should not: ${sentence}")
  endif()
  string(FIND "${errors}" "${sentence}" place)
  string(REGEX MATCHALL "\n" ends "${errors}")
  list(LENGTH ends lines)
  if(place EQUAL -1 OR lines GREATER most_lines)
    message(SEND_ERROR "${program}: ${lines} lines without or around the sentence \"${sentence}\":\n${errors}")
  endif()
endforeach()
