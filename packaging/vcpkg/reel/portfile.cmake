# An overlay port of this checkout. Untried: see ../../README.md.
cmake_path(SET source NORMALIZE "${CMAKE_CURRENT_LIST_DIR}/../../..")
vcpkg_cmake_configure(SOURCE_PATH "${source}" OPTIONS
  -DREEL_BUILD_TESTS=OFF -DREEL_BUILD_BENCH=OFF -DREEL_BUILD_EXAMPLES=OFF -DREEL_BUILD_DISTRIBUTED=OFF -DREEL_BUILD_ONNX=OFF)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH lib/cmake/reel)
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include" "${CURRENT_PACKAGES_DIR}/debug/share")
vcpkg_install_copyright(FILE_LIST "${source}/LICENSE")
