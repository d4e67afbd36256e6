# Settings of all targets: build type, ccache, the reel/ include prefix, warnings, packages' flags.
include(GNUInstallDirs)

get_property(is_multi_config GLOBAL PROPERTY GENERATOR_IS_MULTI_CONFIG)
if(NOT is_multi_config AND NOT CMAKE_BUILD_TYPE)
  if(PROJECT_IS_TOP_LEVEL)
    set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
  elseif(NOT CMAKE_CXX_FLAGS MATCHES "-O")
    # Without optimisation Reel is tens of times slower. These variables hold in this folder only: the flags of the
    # project that contains it stay as they are.
    message(STATUS "reel: CMAKE_BUILD_TYPE is not set; Reel itself is compiled as Release")
    set(CMAKE_BUILD_TYPE Release)
    set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
  endif()
endif()

if(PROJECT_IS_TOP_LEVEL)
  find_program(CCACHE_PROGRAM ccache)
  if(CCACHE_PROGRAM AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
    # With the base directory, clones in other folders share the cache. Without the sloppiness, files that use a
    # precompiled header would not be cached.
    set(CMAKE_CXX_COMPILER_LAUNCHER
      ${CMAKE_COMMAND} -E env
      CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
      ${CCACHE_PROGRAM})
  endif()
  # GCC spends an eighth of its time on garbage collection if a file has many templates. With half a GiB, most need none.
  add_compile_options($<$<CXX_COMPILER_ID:GNU>:--param=ggc-min-heapsize=524288>)
endif()

# Sources include "reel/core/types/tensor.h" as users do; in the build tree, `reel` is a link to the checkout.
set(link ${PROJECT_BINARY_DIR}/include/reel)
if(NOT IS_SYMLINK ${link})
  file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/include)
  file(CREATE_LINK ${PROJECT_SOURCE_DIR} ${link} SYMBOLIC)
endif()

# Compile requirements of every folder's target.
add_library(reel_headers INTERFACE)
add_library(reel::headers ALIAS reel_headers)
target_compile_features(reel_headers INTERFACE cxx_std_20)
target_include_directories(reel_headers INTERFACE ${PROJECT_BINARY_DIR}/include)

# A shared library exports the names that core/base/visibility.h marks. A static one is made of the same object files, so
# that its internal names, too, are called directly and can be inlined.
set(reel_visibility -fvisibility=hidden -fvisibility-inlines-hidden -fno-semantic-interposition)
target_compile_options(reel_headers INTERFACE ${reel_visibility})

# Packages of one commit have the same bytes wherever they are built.
set(REEL_SOURCE_NAME "" CACHE STRING "Name of the source folder in the libraries, instead of its path")
set(reel_source_name ${PROJECT_SOURCE_DIR})
if(REEL_SOURCE_NAME)
  set(reel_source_name ${REEL_SOURCE_NAME})
  add_compile_options(-ffile-prefix-map=${PROJECT_SOURCE_DIR}=${REEL_SOURCE_NAME})
endif()

# reel_source_roots(FILE): tells core/base/source_lines.cpp where Reel's own sources lie. ccache makes paths below the
# source folder relative to the build folder.
function(reel_source_roots file)
  cmake_path(RELATIVE_PATH PROJECT_SOURCE_DIR BASE_DIRECTORY ${CMAKE_BINARY_DIR} OUTPUT_VARIABLE relative_root)
  set_property(SOURCE ${file} APPEND PROPERTY COMPILE_DEFINITIONS
    "REEL_SOURCE_ROOT=\"${reel_source_name}\"" "REEL_RELATIVE_ROOT=\"${relative_root}\"")
endfunction()

# reel_library(TARGET COMPONENT): common properties of the libraries that are installed.
function(reel_library target component)
  target_compile_options(${target} PRIVATE ${reel_visibility} $<TARGET_PROPERTY:reel_warnings,INTERFACE_COMPILE_OPTIONS>)
  # libbacktrace is a static library: its names, too, stay inside.
  target_link_options(${target} PRIVATE -Wl,--no-undefined -Wl,--exclude-libs,ALL)
  # Without a definition of its own, object files of shared and static libraries are the same for a compiler cache.
  set_target_properties(${target} PROPERTIES DEFINE_SYMBOL ""
    EXPORT_NAME ${component} VERSION ${PROJECT_VERSION} SOVERSION ${reel_soversion})
endfunction()

# Until 1.0 a minor version may change functions: each is a library of its own, so that two can be installed.
set(reel_soversion ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})

add_library(reel_warnings INTERFACE)
add_library(reel::warnings ALIAS reel_warnings)
target_compile_options(reel_warnings INTERFACE -Wall -Wextra
  # Hints for GCC's vectoriser, and GCC's names of warnings. Clang vectorises without them.
  "$<$<CXX_COMPILER_ID:Clang>:-Wno-unknown-attributes;-Wno-unknown-pragmas;-Wno-unknown-warning-option>")

# A unity build includes .cpp files: GCC then takes their anonymous namespaces for those of headers.
if(CMAKE_UNITY_BUILD)
  add_compile_options($<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
endif()

# reel_unity_groups(TARGET): a unity build compiles the files of a folder as one, so that names of anonymous namespaces
# need only differ within a folder.
function(reel_unity_groups target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD_MODE GROUP)
  get_target_property(sources ${target} SOURCES)
  foreach(source IN LISTS sources)
    cmake_path(GET source PARENT_PATH folder)
    string(MAKE_C_IDENTIFIER "${target}/${folder}" group)
    set_property(SOURCE ${source} PROPERTY UNITY_GROUP ${group})
  endforeach()
endfunction()

set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
