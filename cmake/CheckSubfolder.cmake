# Configures a user's project that has Reel as a subfolder, and reads the options that Reel and the project are compiled with.
#   cmake -D REEL=. -D PROJECT=tests/install -D FOLDER=... -P cmake/CheckSubfolder.cmake
cmake_minimum_required(VERSION 3.25)
file(REMOVE_RECURSE ${FOLDER})

# options(NAME OF_REEL OF_PROJECT argument...): the commands that compile a file of Reel and the project's own file.
function(options name of_reel_variable of_project_variable)
  execute_process(
    COMMAND ${CMAKE_COMMAND} -S ${PROJECT} -B ${FOLDER}/${name} -D REEL=${REEL} -D CMAKE_EXPORT_COMPILE_COMMANDS=ON ${ARGN}
    OUTPUT_QUIET ERROR_QUIET COMMAND_ERROR_IS_FATAL ANY)
  file(STRINGS ${FOLDER}/${name}/compile_commands.json commands REGEX "\"command\"")
  foreach(file gemm.cpp alone.cpp)
    set(found ${commands})
    list(FILTER found INCLUDE REGEX "/${file}")
    list(GET found 0 found)
    set(of_${file} "${found}")
  endforeach()
  set(${of_reel_variable} "${of_gemm.cpp}" PARENT_SCOPE)
  set(${of_project_variable} "${of_alone.cpp}" PARENT_SCOPE)
endfunction()
function(expect_options name command wanted unwanted)
  string(FIND "${command}" " ${wanted} " found)
  string(FIND "${command}" " ${unwanted} " too_much)
  if((wanted AND found EQUAL -1) OR (unwanted AND NOT too_much EQUAL -1))
    message(FATAL_ERROR "${name}: expected \"${wanted}\" and not \"${unwanted}\" in\n${command}")
  endif()
endfunction()

options(unset reel project)
expect_options("Reel without a build type" "${reel}" "-O2 -DNDEBUG" "")
expect_options("the project without a build type" "${project}" "" "-O2")
options(debug reel project -D CMAKE_BUILD_TYPE=Debug)
expect_options("Reel in a debug build" "${reel}" "-g" "-O2")
options(flags reel project -D CMAKE_CXX_FLAGS=-O1)
expect_options("Reel with flags for optimisation" "${reel}" "-O1" "-O2")
