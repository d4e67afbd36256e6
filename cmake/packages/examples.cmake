# Builds the examples with an installed Reel: cmake -S . -B build -D CMAKE_BUILD_TYPE=Release && cmake --build build
cmake_minimum_required(VERSION 3.25)
project(reel_examples LANGUAGES CXX)

find_package(reel REQUIRED)
file(GLOB programs CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
foreach(file IN LISTS programs)
  cmake_path(GET file STEM program)
  add_executable(${program} ${file})
  target_link_libraries(${program} PRIVATE reel::reel)
endforeach()
