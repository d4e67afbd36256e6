// Writes the models with which the fuzzing of fuzz_models begins.
//
//   make_model_corpus FOLDER DATA...   DATA: folders of ONNX's test data
#include <filesystem>
#include <fstream>
#include <iostream>

#include "reel/tests/onnx/model_seeds.h"

int main(int count, char** arguments) {
  if (count < 3) {
    std::cerr << "usage: make_model_corpus FOLDER DATA...\n";
    return 2;
  }
  const std::filesystem::path folder = arguments[1];
  std::filesystem::create_directories(folder);
  for (int i = 2; i < count; ++i)
    for (const std::string& seed : reel::model_seeds(arguments[i]))
      std::ofstream(folder / std::to_string(std::hash<std::string>()(seed)), std::ios::binary)
          << seed;
}
