// trace/inspection.h — plans with their profiles, and recorded runs, for pictures and events. They
// include no other header of trace.
//
//   planned_graph(graph)          the plan of the last run: its graph and its Profile
//   Profile, LoopProfile          calls and times by record, and the tree of a loop's plans
//   known_steps(graph, record)    the trip count of a loop, if its graph tells it
//   lower(graph), LoweredGraph    nodes and frames of the dataflow executor
//   RecordedRun, shortened(run)   the activations and iterations of one run
#pragma once

#include "reel/trace/executors/checkpoints/known_steps.h"
#include "reel/trace/executors/dataflow/recorded_run.h"
#include "reel/trace/executors/dataflow/run_dataflow.h"
#include "reel/trace/executors/dataflow/run_recorder.h"
#include "reel/trace/executors/plan/base/loop_profile.h"
#include "reel/trace/run_plan.h"
