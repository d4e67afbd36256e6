# cmake -D ROOT=... -D FOLDER=... [-D COMPILER=...] -P CheckUnityBuild.cmake: fails if a unity build, which scripts/train
# and scripts/speech make, does not compile. Only checks syntax. FOLDER: for the build.
#
# CheckUnityNames.cmake finds names that two files of a folder define. This finds the rest: a function of one file that
# hides a function of namespace reel from another file, a using-declaration, a name that an include brings.
cmake_minimum_required(VERSION 3.25)

set(options -D CMAKE_CXX_FLAGS_RELEASE=-fsyntax-only\ -fmax-errors=5 -D REEL_BUILD_ONNX=OFF
  -D REEL_BUILD_DISTRIBUTED=OFF -D REEL_BUILD_EXAMPLES=OFF)
if(COMPILER)
  list(APPEND options -D CMAKE_CXX_COMPILER=${COMPILER})
endif()
execute_process(COMMAND ${CMAKE_COMMAND} --preset unity -B ${FOLDER} ${options} --log-level=WARNING
  WORKING_DIRECTORY ${ROOT} OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
execute_process(
  COMMAND ${CMAKE_COMMAND} --build ${FOLDER} --target reel_core reel_eager reel_trace reel_autodiff reel_frontend
  RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
if(NOT result EQUAL 0)
  string(REPLACE ";" "," output "${output}")  # would split the list of lines
  string(REGEX MATCHALL "[^\n]*(error|warning):[^\n]*" errors "${output}")
  list(JOIN errors "\n" errors)
  if(NOT errors MATCHES "error:")  # a compiler that was killed, or a missing target
    string(LENGTH "${output}" length)
    if(length GREATER 2000)
      math(EXPR begin "${length} - 2000")
      string(SUBSTRING "${output}" ${begin} -1 output)
    endif()
    string(APPEND errors "\n${output}")
  endif()
  message(FATAL_ERROR "a unity build compiles the files of a folder as one, and fails:\n${errors}")
endif()
