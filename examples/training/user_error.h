// examples/training/user_error.h — UserError: an error that the user can correct.
#pragma once

#include <stdexcept>

/// run_program prints it as one line.
class UserError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};
