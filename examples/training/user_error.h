// user_error.h — UserError, what a user can put right.
#pragma once

#include <stdexcept>

/// run_program prints it as one line.
class UserError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};
