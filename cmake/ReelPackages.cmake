# Debian packages of an installation in /usr, by CPack: libreel0.2, libreel-dev, reel-doc and reel-examples, libreel-onnx0.2,
# libreel-onnx-dev, libreel-distributed0.2 and libreel-distributed-dev. Each library also has a package of debug symbols.
# scripts/package configures the build and makes the site that reel-doc holds.
set(REEL_PACKAGE_MAINTAINER "Reel authors <reel@localhost>" CACHE STRING "Name and address of the maintainer of packages")
string(TIMESTAMP now "%a, %d %b %Y %H:%M:%S +0000" UTC)
set(REEL_PACKAGE_DATE "${now}" CACHE STRING "Date of the packages' changelogs")

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME reel)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_VENDOR "Reel authors")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "")  # each package has its own
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_COMPONENTS_ALL runtime development documentation examples)
if(REEL_HAS_ONNX)
  list(APPEND CPACK_COMPONENTS_ALL onnx onnx-development)
endif()
if(REEL_HAS_DISTRIBUTED)
  list(APPEND CPACK_COMPONENTS_ALL distributed distributed-development)
endif()
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_STRIP_FILES OFF)  # CPack strips the files whose symbols go into packages of their own
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_MAINTAINER "${REEL_PACKAGE_MAINTAINER}")
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_SOURCE reel)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)

set(full_version ${PROJECT_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE})
set(about
  "Reel computes with tensors, differentiates programs by a tape, and runs them
eagerly or as traces. Loops with state are its centre: sequences of different
lengths, gradients through long loops, and nested loops.")

# reel_package(COMPONENT NAME SECTION SUMMARY DESCRIPTION): the fields and the files that every package has.
function(reel_package component name section summary description)
  string(TOUPPER ${component} upper)
  set(CPACK_DEBIAN_${upper}_PACKAGE_NAME ${name} PARENT_SCOPE)
  set(CPACK_DEBIAN_${upper}_PACKAGE_SECTION ${section} PARENT_SCOPE)
  set(CPACK_DEBIAN_${upper}_DESCRIPTION "${summary}\n${about}\n.\n${description}" PARENT_SCOPE)
  set(folder ${PROJECT_BINARY_DIR}/packages/${name})
  configure_file(cmake/packages/changelog.in ${folder}/changelog.Debian @ONLY)
  configure_file(CHANGELOG.md ${folder}/changelog COPYONLY)
  foreach(file changelog changelog.Debian)
    execute_process(COMMAND gzip -9nf ${folder}/${file} COMMAND_ERROR_IS_FATAL ANY)
  endforeach()
  # A machine-readable copyright file: the licences of Reel, of elkjs, which the library and the site hold, and of pocketfft.
  file(READ LICENSE mit)
  string(REGEX REPLACE "^.*(Permission is hereby)" "\\1" mit "${mit}")
  file(READ third_party/elkjs/LICENSE.md epl)
  file(READ third_party/pocketfft/LICENSE.md bsd)
  string(REGEX REPLACE "^.*(Redistribution and use)" "\\1" bsd "${bsd}")
  foreach(text mit epl bsd)
    string(STRIP "${${text}}" ${text})
    string(REGEX REPLACE "\n[ \t]*\n" "\n.\n" ${text} "${${text}}")
    string(REGEX REPLACE "\n" "\n " ${text} "${${text}}")
    string(REGEX REPLACE "[ \t]+\n" "\n" ${text} "${${text}}")
  endforeach()
  configure_file(cmake/packages/copyright.in ${folder}/copyright @ONLY)
  if(section STREQUAL libs)
    # Licences of code that is compiled into the libraries, not of files in the package.
    install(FILES third_party/NOTICES.md DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/doc/${name} COMPONENT ${component})
  endif()
  install(FILES ${folder}/copyright ${folder}/changelog.gz ${folder}/changelog.Debian.gz
    DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/doc/${name} COMPONENT ${component})
  file(READ cmake/packages/lintian-overrides overrides)
  if(section STREQUAL libs)
    file(READ cmake/packages/lintian-overrides-of-libraries more)
    string(APPEND overrides "${more}")
  endif()
  file(WRITE ${folder}/overrides "${overrides}")
  install(FILES ${folder}/overrides RENAME ${name}
    DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/lintian/overrides COMPONENT ${component})
endfunction()

# reel_library_package(COMPONENT NAME OF): the packages of a library: the shared one, its debug symbols, and development files.
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR})  # libreel.so, for the other libraries
file(WRITE ${PROJECT_BINARY_DIR}/packages/triggers "activate-noawait ldconfig\n")
macro(reel_library_package component name of)
  string(TOUPPER ${component} library)
  reel_package(${component} ${name}${reel_soversion} libs "tensors, gradients and loops (${of}shared library)"
    "This package has the ${of}shared library.")
  set(CPACK_DEBIAN_${library}_PACKAGE_SHLIBDEPS ON)
  set(CPACK_DEBIAN_${library}_DEBUGINFO_PACKAGE ON)
  set(CPACK_DEBIAN_${library}_PACKAGE_CONTROL_EXTRA ${PROJECT_BINARY_DIR}/packages/triggers)
endmacro()

reel_library_package(runtime libreel "")
foreach(part onnx distributed)
  string(TOUPPER ${part} upper)
  if(REEL_HAS_${upper})
    reel_library_package(${part} libreel-${part} "reel::${part}, ")
    set(CPACK_DEBIAN_${upper}_PACKAGE_DEPENDS "libreel${reel_soversion} (= ${full_version})")
    reel_package(${part}-development libreel-${part}-dev libdevel
      "tensors, gradients and loops (reel::${part}, development files)"
      "This package has the headers of reel::${part}, and the files of CMake's\nfind_package(reel COMPONENTS ${part}) and of pkg-config.")
    set(CPACK_DEBIAN_${upper}-DEVELOPMENT_PACKAGE_DEPENDS
      "libreel-${part}${reel_soversion} (= ${full_version}), libreel-dev (= ${full_version})")
  endif()
endforeach()

reel_package(development libreel-dev libdevel "tensors, gradients and loops (development files)"
  "This package has the headers, and the files of CMake's find_package(reel) and\nof pkg-config.")
# Boost: headers of Reel include Boost.PFR.
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "libreel${reel_soversion} (= ${full_version}), libboost1.81-dev | libboost1.83-dev | libboost1.88-dev")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SUGGESTS "reel-doc, reel-examples, libreel-onnx-dev, libreel-distributed-dev, libxtensor-dev")

reel_package(documentation reel-doc doc "tensors, gradients and loops (documentation)"
  "This package has the documentation as pages for a browser: guides, the\nreference of all functions, and an index with a search.")
set(CPACK_DEBIAN_DOCUMENTATION_PACKAGE_ARCHITECTURE all)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/build/site/html DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/doc/reel-doc
  COMPONENT documentation)

reel_package(examples reel-examples doc "tensors, gradients and loops (example programs)"
  "This package has the sources of example programs, and a CMakeLists.txt that\nbuilds them with libreel-dev.")
set(CPACK_DEBIAN_EXAMPLES_PACKAGE_ARCHITECTURE all)
set(CPACK_DEBIAN_EXAMPLES_PACKAGE_SUGGESTS libreel-dev)
set(examples ${CMAKE_INSTALL_DATAROOTDIR}/doc/reel-examples/examples)
file(GLOB programs CONFIGURE_DEPENDS examples/*.cpp)  # all programs of one page
install(FILES ${programs} DESTINATION ${examples} COMPONENT examples)
install(FILES cmake/packages/examples.cmake RENAME CMakeLists.txt DESTINATION ${examples} COMPONENT examples)

# Folders as dpkg wants them, whatever the umask.
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
  OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
include(CPack)
