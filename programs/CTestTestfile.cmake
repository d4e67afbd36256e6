# CMake generated Testfile for 
# Source directory: /work/shared/contract
# Build directory: /work/main/programs
# 
# This file includes the relevant testing commands required for 
# testing this directory and lists subdirectories to be tested as well.
add_test([=[contract.quickstart]=] "/work/main/programs/quickstart")
set_tests_properties([=[contract.quickstart]=] PROPERTIES  _BACKTRACE_TRIPLES "/work/shared/contract/CMakeLists.txt;11;add_test;/work/shared/contract/CMakeLists.txt;0;")
add_test([=[contract.while_loop]=] "/work/main/programs/while_loop")
set_tests_properties([=[contract.while_loop]=] PROPERTIES  _BACKTRACE_TRIPLES "/work/shared/contract/CMakeLists.txt;11;add_test;/work/shared/contract/CMakeLists.txt;0;")
add_test([=[contract.scan]=] "/work/main/programs/scan")
set_tests_properties([=[contract.scan]=] PROPERTIES  _BACKTRACE_TRIPLES "/work/shared/contract/CMakeLists.txt;11;add_test;/work/shared/contract/CMakeLists.txt;0;")
add_test([=[contract.ragged_batches]=] "/work/main/programs/ragged_batches")
set_tests_properties([=[contract.ragged_batches]=] PROPERTIES  _BACKTRACE_TRIPLES "/work/shared/contract/CMakeLists.txt;11;add_test;/work/shared/contract/CMakeLists.txt;0;")
add_test([=[contract.tensor_array]=] "/work/main/programs/tensor_array")
set_tests_properties([=[contract.tensor_array]=] PROPERTIES  _BACKTRACE_TRIPLES "/work/shared/contract/CMakeLists.txt;11;add_test;/work/shared/contract/CMakeLists.txt;0;")
add_test([=[contract.errors]=] "/work/main/programs/errors")
set_tests_properties([=[contract.errors]=] PROPERTIES  _BACKTRACE_TRIPLES "/work/shared/contract/CMakeLists.txt;11;add_test;/work/shared/contract/CMakeLists.txt;0;")
