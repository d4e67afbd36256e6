#----------------------------------------------------------------
# Generated CMake target import file for configuration "Release".
#----------------------------------------------------------------

# Commands may need to know the format version.
set(CMAKE_IMPORT_FILE_VERSION 1)

# Import target "reel::reel" for configuration "Release"
set_property(TARGET reel::reel APPEND PROPERTY IMPORTED_CONFIGURATIONS RELEASE)
set_target_properties(reel::reel PROPERTIES
  IMPORTED_LINK_INTERFACE_LANGUAGES_RELEASE "CXX"
  IMPORTED_LOCATION_RELEASE "${_IMPORT_PREFIX}/lib/libreel.a"
  )

list(APPEND _cmake_import_check_targets reel::reel )
list(APPEND _cmake_import_check_files_for_reel::reel "${_IMPORT_PREFIX}/lib/libreel.a" )

# Commands beyond this point should not need to know the version.
set(CMAKE_IMPORT_FILE_VERSION)
