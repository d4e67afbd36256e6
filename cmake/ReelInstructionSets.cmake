# Kernels per instruction set, and sources per architecture.
#
# REEL_ARCHITECTURE names files such as pointwise_code_x86_64.cpp. REEL_INSTRUCTION_SETS are the sets of
# core/runtime/isa_list.h, and flags_SET the compiler's flags of one. REEL_HAS_ONEDNN: oneDNN computes some products.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
  set(REEL_ARCHITECTURE x86_64)
  set(REEL_INSTRUCTION_SETS sse42 avx2 avx512)
  set(flags_sse42 -msse4.2)
  set(flags_avx2 -mavx2 -mfma)
  set(flags_avx512 -mavx512f -mavx512cd -mavx512dq -mavx512bw -mavx512vl -mfma)
  set(REEL_HAS_ONEDNN ON)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64|ARM64)$")
  set(REEL_ARCHITECTURE aarch64)
  set(REEL_INSTRUCTION_SETS neon)
  # Kernels may fuse products and sums, as those of AVX2 may. All other code may not, as on x86-64 without FMA: equal
  # computations in two places, eager and traced, would differ by roundings.
  set(flags_neon -ffp-contract=fast)
  add_compile_options(-ffp-contract=off)
  set(REEL_HAS_ONEDNN OFF)
else()
  message(FATAL_ERROR "Reel has kernels for x86-64 and aarch64, not for ${CMAKE_SYSTEM_PROCESSOR}")
endif()

# reel_add_isa_sources(TARGET [SETS SET...] SOURCES SOURCE...): compiles each source into the target once per instruction
# set, or for the given ones only.
#
# REEL_ISA is the set's name, which the source uses as its namespace. The program selects a set when it starts.
#
# g++ is told to vectorise plain loops. At -O2, g++ 12 vectorises only loops whose number of iterations is a known
# multiple of a vector, and g++ 11 none; so loops over integers and booleans, comparisons, casts and `where` were scalar
# code. Clang vectorises them at -O2.
#
# Kernels are optimised in debug builds too: compilers fuse products and sums at -O2 alone, and the code that plans
# assemble has the bits of these kernels.
function(reel_add_isa_sources target)
  cmake_parse_arguments(PARSE_ARGV 1 ISA "" "" "SETS;SOURCES")
  if(NOT ISA_SETS)
    set(ISA_SETS ${REEL_INSTRUCTION_SETS})
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    set(vectorise -ftree-vectorize -fvect-cost-model=dynamic)
  endif()
  foreach(source IN LISTS ISA_SOURCES)
    cmake_path(ABSOLUTE_PATH source OUTPUT_VARIABLE absolute)
    cmake_path(RELATIVE_PATH absolute BASE_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE in_project)
    cmake_path(GET source STEM stem)
    foreach(isa IN LISTS ISA_SETS)
      # A target cannot list a source twice with different flags, but it can list files that include it.
      set(copy ${CMAKE_CURRENT_BINARY_DIR}/${stem}.${isa}.cpp)
      file(CONFIGURE OUTPUT ${copy} CONTENT "#include \"reel/${in_project}\"\n")
      set_source_files_properties(${copy} PROPERTIES
        COMPILE_DEFINITIONS REEL_ISA=${isa}
        COMPILE_OPTIONS "${flags_${isa}};${vectorise};$<$<CONFIG:Debug>:-O2>")
      target_sources(${target} PRIVATE ${copy})
    endforeach()
  endforeach()
endfunction()
