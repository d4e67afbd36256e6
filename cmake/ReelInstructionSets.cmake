# reel_add_isa_sources(TARGET SOURCE...): compiles each source into the target once per instruction set.
#
# REEL_ISA is the set's name, which the source uses as its namespace. The program selects a set when it starts.
#
# g++ is told to vectorise plain loops. At -O2, g++ 12 vectorises only loops whose number of iterations is a known
# multiple of a vector, and g++ 11 none; so loops over integers and booleans, comparisons, casts and `where` were scalar
# code. Clang vectorises them at -O2.
function(reel_add_isa_sources target)
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    set(vectorise -ftree-vectorize -fvect-cost-model=dynamic)
  endif()
  set(flags_sse42 -msse4.2)
  set(flags_avx2 -mavx2 -mfma)
  set(flags_avx512 -mavx512f -mavx512dq -mavx512bw -mavx512vl -mfma)
  foreach(source IN LISTS ARGN)
    cmake_path(ABSOLUTE_PATH source OUTPUT_VARIABLE absolute)
    cmake_path(RELATIVE_PATH absolute BASE_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE in_project)
    cmake_path(GET source STEM stem)
    foreach(isa sse42 avx2 avx512)
      # A target cannot list a source twice with different flags, but it can list files that include it.
      set(copy ${CMAKE_CURRENT_BINARY_DIR}/${stem}.${isa}.cpp)
      file(CONFIGURE OUTPUT ${copy} CONTENT "#include \"reel/${in_project}\"\n")
      set_source_files_properties(${copy} PROPERTIES
        COMPILE_DEFINITIONS REEL_ISA=${isa}
        COMPILE_OPTIONS "${flags_${isa}};${vectorise}")
      target_sources(${target} PRIVATE ${copy})
    endforeach()
  endforeach()
endfunction()
