# Installs the headers, the library, and the files of find_package(reel).
include(CMakePackageConfigHelpers)

install(FILES reel.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/reel)
foreach(folder core eager trace autodiff frontend)
  install(DIRECTORY ${folder} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/reel FILES_MATCHING PATTERN "*.h")
endforeach()

if(REEL_HAS_DISTRIBUTED)
  install(FILES distributed.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/reel)
  install(DIRECTORY distributed DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/reel FILES_MATCHING PATTERN "*.h")
endif()

if(REEL_HAS_ONNX)
  install(FILES onnx.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/reel)
  install(FILES onnx/model.h onnx/onnx_error.h onnx/save_onnx.h onnx/save_options.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/reel/onnx)
endif()

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/reel)
install(TARGETS reel EXPORT reel-targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(REEL_HAS_DISTRIBUTED)
  # A set of its own: only find_package(reel COMPONENTS distributed) looks for MPI.
  install(TARGETS reel_distributed EXPORT reel-distributed-targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(EXPORT reel-distributed-targets NAMESPACE reel:: DESTINATION ${package})
endif()
if(REEL_HAS_ONNX)
  # A set of its own: only find_package(reel COMPONENTS onnx) looks for the libraries of ONNX.
  install(TARGETS reel_onnx EXPORT reel-onnx-targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(EXPORT reel-onnx-targets NAMESPACE reel:: DESTINATION ${package})
endif()
install(EXPORT reel-targets NAMESPACE reel:: DESTINATION ${package})
configure_package_config_file(cmake/reel-config.cmake.in ${PROJECT_BINARY_DIR}/reel-config.cmake
  INSTALL_DESTINATION ${package})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/reel-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/reel-config.cmake ${PROJECT_BINARY_DIR}/reel-config-version.cmake
  DESTINATION ${package})
# Pages that the library writes contain elkjs.
install(FILES third_party/elkjs/LICENSE.md third_party/elkjs/NOTICE DESTINATION ${CMAKE_INSTALL_DOCDIR}/elkjs)
