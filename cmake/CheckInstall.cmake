# Installs a build, and builds and runs a user's project against it: with the components distributed and onnx if the build has
# them, and without them, as if there were no MPI and no ONNX.
#   cmake -D BUILD=build/release -D PROJECT=tests/install -D FOLDER=... [-D MPIRUN=mpirun] -P cmake/CheckInstall.cmake
cmake_minimum_required(VERSION 3.25)
set(ENV{OMPI_ALLOW_RUN_AS_ROOT} 1)
set(ENV{OMPI_ALLOW_RUN_AS_ROOT_CONFIRM} 1)
set(prefix ${FOLDER}/prefix)
file(REMOVE_RECURSE ${FOLDER})
execute_process(COMMAND ${CMAKE_COMMAND} --install ${BUILD} --prefix ${prefix} OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)

# configure(NAME RESULT OUTPUT argument...): configures the user's project in a folder of its own.
function(configure name result_variable output_variable)
  execute_process(
    COMMAND ${CMAKE_COMMAND} -S ${PROJECT} -B ${FOLDER}/${name} -D CMAKE_PREFIX_PATH=${prefix} ${ARGN}
    RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  set(${result_variable} ${result} PARENT_SCOPE)
  set(${output_variable} "${output}" PARENT_SCOPE)
endfunction()
# expect(TEXT RESULT OUTPUT WANTED): an error unless the project was configured (WANTED 0) or not (1), and said TEXT.
function(expect text result output wanted)
  string(REGEX REPLACE "[ \n]+" " " line "${output}")  # CMake wraps messages
  string(FIND "${line}" "${text}" at)
  if((wanted EQUAL 0 AND NOT result EQUAL 0) OR (wanted EQUAL 1 AND result EQUAL 0) OR at EQUAL -1)
    message(FATAL_ERROR "expected \"${text}\", got result ${result} and\n${output}")
  endif()
endfunction()
function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

file(GLOB_RECURSE distributed ${prefix}/*reel-distributed-targets*.cmake)
if(distributed)
  configure(with result output -D COMPONENTS=distributed)
  expect("reel_distributed_FOUND is TRUE" "${result}" "${output}" 0)
  run(${CMAKE_COMMAND} --build ${FOLDER}/with)
  run(${FOLDER}/with/alone)
  run(${FOLDER}/with/ranks)
  if(MPIRUN)
    run(${MPIRUN} -n 2 --oversubscribe ${FOLDER}/with/ranks)
  endif()
  # MPI is missing where the library is used.
  set(no_mpi -D CMAKE_DISABLE_FIND_PACKAGE_MPI=ON)
  configure(no_mpi result output ${no_mpi} -D COMPONENTS=distributed)
  expect("its component distributed needs an MPI for C (Debian: libopenmpi-dev openmpi-bin), which was not found"
    "${result}" "${output}" 1)
  configure(no_mpi_optional result output ${no_mpi} -D OPTIONAL_COMPONENTS=distributed)
  expect("reel_distributed_FOUND is FALSE" "${result}" "${output}" 0)
  # An installation of a build without MPI lacks these files.
  file(REMOVE ${distributed})
endif()
file(GLOB_RECURSE onnx ${prefix}/*reel-onnx-targets*.cmake)
if(onnx)
  configure(onnx result output -D COMPONENTS=onnx)
  expect("reel_onnx_FOUND is TRUE" "${result}" "${output}" 0)
  configure(no_onnx result output -D CMAKE_DISABLE_FIND_PACKAGE_ONNX=ON -D COMPONENTS=onnx)
  expect("its component onnx needs ONNX (Debian: libonnx-dev), which was not found" "${result}" "${output}" 1)
  file(REMOVE ${onnx})
endif()
configure(lacking_onnx result output -D COMPONENTS=onnx)
expect("it was built without its component onnx: there was no ONNX (Debian: libonnx-dev)" "${result}" "${output}" 1)
configure(lacking result output -D COMPONENTS=distributed)
expect("it was built without its component distributed: there was no MPI for C (Debian: libopenmpi-dev openmpi-bin)"
  "${result}" "${output}" 1)
configure(other result output -D COMPONENTS=tensors)
expect("it has no component tensors; there are distributed and onnx" "${result}" "${output}" 1)
configure(without result output)
expect("reel_distributed_FOUND is" "${result}" "${output}" 0)
