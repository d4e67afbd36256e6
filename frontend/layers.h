// frontend/layers.h — layers and recurrent cells: callable plain structs of parameters.
//
// Each is a tree, so it can be an argument of jit, grad and Adam, and a field of a model. `init`
// returns one with random parameters. Dims are named; init makes the dims that it is not given.
// Dims have an initial value, which is never used: Boost.PFR counts the fields of
// default-constructible structs much faster (for an LstmCell the compiler needs 5 MB more memory
// instead of 350).
#pragma once

#include "reel/frontend/layers/attention.h"
#include "reel/frontend/layers/batch_norm.h"
#include "reel/frontend/layers/bidirectional.h"
#include "reel/frontend/layers/bidirectional_stack.h"
#include "reel/frontend/layers/causal_conv.h"
#include "reel/frontend/layers/conv.h"
#include "reel/frontend/layers/dropout.h"
#include "reel/frontend/layers/dropout_cell.h"
#include "reel/frontend/layers/embedding.h"
#include "reel/frontend/layers/feed_forward.h"
#include "reel/frontend/layers/group_norm.h"
#include "reel/frontend/layers/gru_cell.h"
#include "reel/frontend/layers/initial_values.h"
#include "reel/frontend/layers/layer_norm.h"
#include "reel/frontend/layers/linear.h"
#include "reel/frontend/layers/linear_attention.h"
#include "reel/frontend/layers/lstm_cell.h"
#include "reel/frontend/layers/lstm_variants.h"
#include "reel/frontend/layers/mamba_block.h"
#include "reel/frontend/layers/min_gru_cell.h"
#include "reel/frontend/layers/multi_head_attention.h"
#include "reel/frontend/layers/positions.h"
#include "reel/frontend/layers/recur.h"
#include "reel/frontend/layers/rms_norm.h"
#include "reel/frontend/layers/rnn_cell.h"
#include "reel/frontend/layers/stacked_cells.h"
#include "reel/frontend/layers/transformer_blocks.h"
