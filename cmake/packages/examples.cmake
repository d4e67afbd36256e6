# Builds the examples with an installed Reel: cmake -S . -B build -D CMAKE_BUILD_TYPE=Release && cmake --build build
cmake_minimum_required(VERSION 3.25)
project(reel_examples LANGUAGES CXX)

find_package(reel REQUIRED)
foreach(program first_steps quickstart training forecaster crf_tagger adaptive_ode explain pictures)
  add_executable(${program} ${program}.cpp)
  target_link_libraries(${program} PRIVATE reel::reel)
endforeach()
