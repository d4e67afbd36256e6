# cmake -D NM=... -D LIBRARY=... -P CheckDefinitions.cmake
#
# Fails if a function has an inline definition in a header and another definition in a .cpp file. The linker then keeps
# either of them, so a call does one thing where it is inlined and another where it is not.
cmake_minimum_required(VERSION 3.25)

execute_process(COMMAND ${NM} --defined-only ${LIBRARY} OUTPUT_VARIABLE symbols COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL " [WVu] _ZNK?4reel[A-Za-z0-9_]*" inline_definitions "${symbols}")
if(NOT inline_definitions)
  message(FATAL_ERROR "${LIBRARY} has no inline functions of reel")
endif()
foreach(definition IN LISTS inline_definitions)
  string(SUBSTRING ${definition} 3 -1 name)
  set(is_inline_${name} TRUE)
endforeach()
string(REGEX MATCHALL " T _ZNK?4reel[A-Za-z0-9_]*" definitions "${symbols}")
foreach(definition IN LISTS definitions)
  string(SUBSTRING ${definition} 3 -1 name)
  if(is_inline_${name})
    message(SEND_ERROR "defined inline and in a .cpp file: ${name} (c++filt shows the name)")
  endif()
endforeach()
