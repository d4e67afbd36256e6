// onnx/save_onnx.h — save_onnx: writes a function on tensors as a model in the format of ONNX.
#pragma once

#include <array>
#include <string>
#include <tuple>
#include <type_traits>
#include <typeindex>
#include <typeinfo>
#include <utility>
#include <vector>

#include "reel/core/base/visibility.h"
#include "reel/frontend/jit.h"
#include "reel/frontend/tree/taken_leaves.h"
#include "reel/frontend/tree/tree.h"
#include "reel/onnx/onnx_error.h"
#include "reel/onnx/save_options.h"
#include "reel/trace/traced_function.h"

REEL_API_BEGIN
namespace reel {

namespace detail {

/// True for the arguments of a function; any other type is its only argument.
template <class T>
inline constexpr bool kIsArguments = false;
template <class... T>
inline constexpr bool kIsArguments<std::tuple<T...>> = true;
/// True if the results of a function are several.
template <class T>
inline constexpr bool kIsTuple = kIsArguments<T>;
template <class A, class B>
inline constexpr bool kIsTuple<std::pair<A, B>> = true;

/// A function to be written, and its arguments as leaves.
struct FunctionToSave {
  std::type_index type;
  TreeLeaves arguments;
  std::size_t argument_count = 0;
  bool has_tuple_result = false;
  TracedFunction::Function function;
  DynamicSizes dynamic;
};
/// Returns the bytes of the model.
std::string bytes_of_function(FunctionToSave function, const SaveOnnxOptions& options);
/// Writes the model to a file, and large tensors to a second one.
void save_function(const std::string& path, FunctionToSave function,
                   const SaveOnnxOptions& options);

/// True if a function takes arguments of these types and returns its results.
template <class F, class... Args>
constexpr bool can_be_saved() {
  constexpr bool kTakesExamples = std::is_invocable_v<const F&, const Args&...>;
  static_assert(kTakesExamples,
                "save_onnx and onnx_bytes take an example for each argument of f, a std::tuple of "
                "them or the only one; f takes them by value or by const reference");
  if constexpr (kTakesExamples) {
    constexpr bool kReturns = !std::is_void_v<std::invoke_result_t<const F&, const Args&...>>;
    static_assert(kReturns,
                  "save_onnx and onnx_bytes write what f returns, a tree of tensors, not void");
    return kReturns;
  } else {
    return false;
  }
}

template <class F, class... Args>
FunctionToSave function_to_save(const F& f, const std::tuple<Args...>& arguments,
                                const SaveOnnxOptions& options) {
  using Tuple = std::tuple<std::decay_t<Args>...>;
  if constexpr (can_be_saved<F, std::decay_t<Args>...>()) {
    using R = std::decay_t<std::invoke_result_t<const F&, const std::decay_t<Args>&...>>;
    const auto function = [&f, &arguments](const TreeLeaves& promises) {
      const R result = std::apply(f, unflatten(Tuple(arguments), promises));
      return TracedFunction::Recorded{
          {flatten(result), prototype_of(result)}, leaf_paths(arguments), leaf_paths(result)};
    };
    const auto dynamic = [&](const Args&... each) {
      const std::array<Argument, sizeof...(Args)> examples{Argument{TreeRef(each)}...};
      return dynamic_sizes(TakenLeaves(examples, 0), options.any_length, options.dynamic);
    };
    return {typeid(Tuple), flatten(arguments), sizeof...(Args),
            kIsTuple<R>,   function,           std::apply(dynamic, arguments)};
  } else {
    return {typeid(Tuple), {}, 0, false, {}, {}};  // does not compile
  }
}

}  // namespace detail

/// Returns the bytes of an ONNX model that computes f, of the op set that the options
/// name.
///
/// f: takes and returns trees of tensors; it may be the result of grad, value_and_grad, vmap or
/// jit. It is recorded once, for arguments like these, and runs once on them.
/// arguments: a std::tuple with an example for each argument of f, or the only argument. A model
/// holds for arguments of the same structure, dtypes and static sizes. Dims with a size or length
/// that a trace does not know become symbolic sizes; the lengths of a ragged Dim "time" are the
/// input "time_lengths".
///
/// Inputs and outputs are named after the leaves (SaveOnnxOptions). Tensors that f captures are
/// initializers. Loops become Loop, conds If. Prints and checks of values are left out.
///
/// Throws OnnxError if ONNX cannot express some ops: one error lists all of them with their lines.
/// Throws OnnxError if tensors take more than SaveOnnxOptions::max_file_bytes. Throws ArgumentError
/// for positions or names beyond the arguments; the errors of f.
template <class F, class Arguments>
std::string onnx_bytes(const F& f, const Arguments& arguments,
                       const SaveOnnxOptions& options = {}) {
  if constexpr (detail::kIsArguments<Arguments>)
    return detail::bytes_of_function(detail::function_to_save(f, arguments, options), options);
  else
    return onnx_bytes(f, std::tuple<Arguments>(arguments), options);
}

/// Writes the model to a file. Throws IoError, and leaves the file unchanged, if that fails.
///
/// If parameters and captured tensors take more than SaveOnnxOptions::max_file_bytes, they go to a
/// second file in the same folder, MODEL.data-1, or -2 and so on if that exists. It is written
/// before the model. Then second files of a model that was replaced are removed.
template <class F, class Arguments>
void save_onnx(const std::string& path, const F& f, const Arguments& arguments,
               const SaveOnnxOptions& options = {}) {
  if constexpr (detail::kIsArguments<Arguments>)
    detail::save_function(path, detail::function_to_save(f, arguments, options), options);
  else
    save_onnx(path, f, std::tuple<Arguments>(arguments), options);
}

}  // namespace reel
REEL_API_END
