# Installs the public headers, the libraries, their licences, and the files of find_package(reel) and pkg-config. Each library has
# two components, as it has two packages: `runtime` is what a program with shared libraries needs, `development` the rest; of
# reel::onnx they are `onnx` and `onnx-development`, of reel::distributed `distributed` and `distributed-development`.
include(CMakePackageConfigHelpers)
include(PublicHeaders)

set(libraries reel)
if(REEL_HAS_DISTRIBUTED)
  list(APPEND libraries reel_distributed)
endif()
if(REEL_HAS_ONNX)
  list(APPEND libraries reel_onnx)
endif()
# reel_install_headers(COMPONENT [HEADER...]): installs what HEADERs include beyond the headers of reel::reel; without HEADERs, those.
# Includes are read when the library is installed, so a new one needs no new configuration.
function(reel_install_headers component)
  list(JOIN ARGN " " roots)
  install(CODE "
  include(\"${PROJECT_SOURCE_DIR}/cmake/PublicHeaders.cmake\")
  # xtensor.h is for users who have xtensor; no other header includes it.
  reel_public_headers(\"${PROJECT_SOURCE_DIR}\" headers reel.h frontend/xtensor.h)
  set(roots ${roots})
  if(roots)
    reel_public_headers(\"${PROJECT_SOURCE_DIR}\" reached \${roots})
    list(REMOVE_ITEM reached \${headers})
    set(headers \${reached})
  endif()
  foreach(header IN LISTS headers)
    cmake_path(GET header PARENT_PATH folder)
    file(INSTALL \"${PROJECT_SOURCE_DIR}/\${header}\" DESTINATION
      \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_INCLUDEDIR}/reel/\${folder}\")
  endforeach()" COMPONENT ${component})
endfunction()
reel_install_headers(development)

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/reel)
# find_package(reel COMPONENTS distributed) alone looks for MPI, and its component onnx for ONNX's libraries, so each library
# is a set of its own.
foreach(library IN LISTS libraries)
  string(REPLACE _ - name ${library})
  if(library STREQUAL reel)
    set(runtime runtime)
    set(development development)
  else()
    string(REPLACE reel_ "" runtime ${library})
    set(development ${runtime}-development)
    reel_install_headers(${development} ${runtime}.h)
  endif()
  install(TARGETS ${library} EXPORT ${name}-targets
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT ${development}
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT ${runtime} NAMELINK_COMPONENT ${development})
  install(EXPORT ${name}-targets NAMESPACE reel:: DESTINATION ${package} COMPONENT ${development})
endforeach()

configure_package_config_file(cmake/reel-config.cmake.in ${PROJECT_BINARY_DIR}/reel-config.cmake
  INSTALL_DESTINATION ${package})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/reel-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/reel-config.cmake ${PROJECT_BINARY_DIR}/reel-config-version.cmake
  DESTINATION ${package} COMPONENT development)

# reel_install_pkg_config(NAME DESCRIPTION [COMPONENT ...] [REQUIRES ...] [CFLAGS ...] [LIBRARIES ...]): NAME.pc. LIBRARIES are what the library
# links, which programs link only if it is static.
set(pkg_config ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX BASE_DIRECTORY ${CMAKE_INSTALL_PREFIX}/${pkg_config} OUTPUT_VARIABLE to_prefix)
function(reel_install_pkg_config name description)
  cmake_parse_arguments(PARSE_ARGV 2 PC "" "COMPONENT" "REQUIRES;CFLAGS;LIBRARIES")
  list(JOIN PC_REQUIRES ", " requires)
  list(JOIN PC_CFLAGS " " cflags)
  list(JOIN PC_LIBRARIES " " libraries)
  string(REPLACE - _ library ${name})
  if(BUILD_SHARED_LIBS)
    set(lines "Libs: -L\${libdir} -l${library}\n")
  else()
    set(lines "Libs: -L\${libdir} -l${library} ${libraries}\n")
  endif()
  # Places follow the file, so the installed folder may be moved.
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/${name}.pc @ONLY NEWLINE_STYLE UNIX CONTENT
"prefix=\${pcfiledir}/@to_prefix@
libdir=\${prefix}/@CMAKE_INSTALL_LIBDIR@
includedir=\${prefix}/@CMAKE_INSTALL_INCLUDEDIR@

Name: @name@
Description: @description@
Version: @PROJECT_VERSION@
Requires: @requires@
Cflags: -I\${includedir} @cflags@
@lines@")
  install(FILES ${PROJECT_BINARY_DIR}/${name}.pc DESTINATION ${pkg_config} COMPONENT ${PC_COMPONENT})
endfunction()

# Reel needs C++20, which is not the default of the compilers that it supports.
set(cflags -std=c++20)
get_target_property(boost Boost::headers INTERFACE_INCLUDE_DIRECTORIES)
foreach(folder IN LISTS boost)
  if(NOT folder IN_LIST CMAKE_CXX_IMPLICIT_INCLUDE_DIRECTORIES)
    list(APPEND cflags -I${folder})
  endif()
endforeach()
set(linked -ltbb -ltbbmalloc -pthread ${CMAKE_DL_LIBS})
if(REEL_HAS_ONEDNN)
  list(APPEND linked -ldnnl)
endif()
list(TRANSFORM linked REPLACE "^([a-z]+)$" "-l\\1")
if(REEL_HAS_BACKTRACE)
  list(APPEND linked -lbacktrace)
endif()
if(REEL_HAS_CSV)
  list(APPEND linked -lcsv)
endif()
if(REEL_HAS_SNDFILE)
  list(APPEND linked -lsndfile)
endif()
reel_install_pkg_config(reel "${PROJECT_DESCRIPTION}" COMPONENT development CFLAGS ${cflags} LIBRARIES ${linked})
if(REEL_HAS_DISTRIBUTED)
  reel_install_pkg_config(reel-distributed "Reel on several machines" COMPONENT distributed-development
    REQUIRES "reel = ${PROJECT_VERSION}" LIBRARIES ${MPI_C_LIBRARIES})
endif()
if(REEL_HAS_ONNX)
  reel_install_pkg_config(reel-onnx "Models in the format of ONNX as functions of Reel" COMPONENT onnx-development
    REQUIRES "reel = ${PROJECT_VERSION}" LIBRARIES -lonnx -lonnx_proto -lprotobuf)
endif()

# gdb loads the second copy by itself with a library that lies in CMAKE_INSTALL_FULL_LIBDIR.
install(FILES core/debugger/reel_debugger.py DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/reel COMPONENT development)
if(BUILD_SHARED_LIBS)
  install(FILES core/debugger/reel_debugger.py RENAME $<TARGET_FILE_NAME:reel>-gdb.py COMPONENT development
    DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/gdb/auto-load${CMAKE_INSTALL_FULL_LIBDIR})
endif()

if(NOT REEL_PACKAGES)  # whose files of copyrights have these texts
  install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT runtime)
  # Code of others in the libraries.
  install(FILES third_party/NOTICES.md DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT runtime)
  install(FILES third_party/licenses/Apache-2.0.txt DESTINATION ${CMAKE_INSTALL_DOCDIR}/licenses COMPONENT runtime)
  install(FILES third_party/elkjs/LICENSE.md third_party/elkjs/NOTICE DESTINATION ${CMAKE_INSTALL_DOCDIR}/elkjs COMPONENT runtime)
endif()
