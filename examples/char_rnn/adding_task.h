// adding_task.h — the adding problem, which needs no data: numbers of which two are marked, and
// their sum.
#pragma once

#include <memory>

#include "training.h"

/// Source: Hochreiter & Schmidhuber (1997), experiment 4. Who always answers 1 has a mean squared
/// error of 1/6.
std::unique_ptr<Task> make_adding_task(const Options& options);
