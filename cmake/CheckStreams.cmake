# cmake -D ROOT=... -P CheckStreams.cmake: checks that the library prints and reads numbers independently of the locale,
# by TextStream and str() of core/base/str.h, std::to_chars and std::from_chars.
cmake_minimum_required(VERSION 3.25)

set(depends_on_locale
  "[io]?stringstream|[io]?fstream>|std::[io]fstream|printf *\\(|std::to_string|[^a-z_]strto(d|f|ld|l|ll|ul|ull) *\\(|\
std::sto(d|f|ld|i|l|ll|ul|ull) *\\(|[^a-z_]ato(f|i|l|ll) *\\(|[^a-z_]sscanf *\\(|strerror *\\(|setlocale|std::put_|std::get_time|strftime")
foreach(folder core eager trace autodiff frontend)
  file(GLOB_RECURSE files ${ROOT}/${folder}/*.h ${ROOT}/${folder}/*.cpp)
  list(REMOVE_ITEM files ${ROOT}/core/base/str.h)
  foreach(file IN LISTS files)
    file(STRINGS ${file} lines REGEX "${depends_on_locale}")
    foreach(line IN LISTS lines)
      if(NOT line MATCHES "^ *//")
        message(SEND_ERROR "${file}: depends on the program's locale; use str() or TextStream of core/base/str.h, "
          "std::to_chars or std::from_chars: ${line}")
      endif()
    endforeach()
  endforeach()
endforeach()
