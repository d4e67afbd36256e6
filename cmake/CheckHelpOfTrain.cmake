# Checks that scripts/train.help begins with the help of char_rnn: scripts/train prints it without building the program.
# Spaces and line breaks may differ.
# Usage: cmake -D ROOT=… -D PROGRAM=… -P CheckHelpOfTrain.cmake
execute_process(COMMAND ${PROGRAM} --help OUTPUT_VARIABLE help COMMAND_ERROR_IS_FATAL ANY)
file(READ ${ROOT}/scripts/train.help printed)
string(REPLACE "Usage: char_rnn" "Usage: scripts/train" help "${help}")
foreach(text help printed)
  string(REGEX REPLACE "[ \n]+" " " ${text} "${${text}}")
  string(STRIP "${${text}}" ${text})
endforeach()
string(FIND "${printed}" "${help} --export FILE " place)
if(NOT place EQUAL 0)
  message(FATAL_ERROR "scripts/train.help is not the help of char_rnn, followed by --export. Expected:\n${help} --export FILE ...")
endif()
