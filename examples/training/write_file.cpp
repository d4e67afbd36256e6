#include "write_file.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "user_error.h"

void write_file(const std::string& path, const std::string& content) {
  std::FILE* file = std::fopen(path.c_str(), "w");
  int error = file ? 0 : errno;
  if (file && std::fwrite(content.data(), 1, content.size(), file) != content.size()) error = errno;
  if (file && std::fclose(file) != 0 && !error) error = errno;
  if (error) throw UserError("cannot write " + path + ": " + std::strerror(error));
}

void check_folder_of(const std::string& path) {
  std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (folder.empty()) folder = ".";
  if (::access(folder.c_str(), W_OK | X_OK) != 0)
    throw UserError("cannot write " + path + ": " + std::strerror(errno));
}
