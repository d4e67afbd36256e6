// frontend/layers.h — layers and recurrent cells: plain structs of parameters that can be called.
//
// Each is a tree, so it can be an argument of jit, grad and Adam, and a field of a model. `init`
// makes one with random parameters; dims are named, and those that it has not been given it makes.
// Dims have an initial value, of no use, because Boost.PFR counts the fields of a struct that can
// be made from nothing much faster (for an LstmCell the compiler needs 5 MB more memory, instead of
// 350).
#pragma once

#include "reel/frontend/layers/bidirectional.h"
#include "reel/frontend/layers/dropout.h"
#include "reel/frontend/layers/embedding.h"
#include "reel/frontend/layers/gru_cell.h"
#include "reel/frontend/layers/initial_values.h"
#include "reel/frontend/layers/layer_norm.h"
#include "reel/frontend/layers/linear.h"
#include "reel/frontend/layers/lstm_cell.h"
#include "reel/frontend/layers/recur.h"
#include "reel/frontend/layers/rnn_cell.h"
#include "reel/frontend/layers/stacked_cells.h"
