#include "options.h"

#include <filesystem>
#include <limits>
#include <sstream>

namespace {

namespace fs = std::filesystem;

/// What a setting belongs to: what belongs to the model is the same in all runs of it; what belongs
/// to its training when that goes on; the others may change. What only --sample does is told by its
/// own flags.
enum class Of { model, training, run, writing };

/// Calls fn(flag, member, of) for every setting.
template <class Fn>
void for_each_setting(Fn&& fn) {
  fn("task", &Options::task, Of::model);
  fn("cell", &Options::cell, Of::model);
  fn("layers", &Options::layers, Of::model);
  fn("hidden", &Options::hidden, Of::model);
  fn("batch", &Options::batch, Of::training);
  fn("length", &Options::length, Of::training);
  fn("seed", &Options::seed, Of::training);
  fn("data", &Options::data, Of::run);
  fn("mode", &Options::mode, Of::run);
  fn("steps", &Options::steps, Of::run);
  fn("checkpoint-every", &Options::checkpoint_every, Of::run);
  fn("losses", &Options::losses, Of::run);
  fn("plot", &Options::plot, Of::run);
  fn("characters", &Options::characters, Of::writing);
  fn("temperature", &Options::temperature, Of::writing);
}

bool is_output(const std::string& flag) { return flag == "losses" || flag == "plot"; }

/// A run's folder may be moved with all that is in it, and what lies elsewhere stays there.
std::string seen_from(const fs::path& checkpoint, const std::string& file) {
  if (file.empty()) return file;
  const fs::path path = fs::absolute(file).lexically_normal();
  const fs::path inside =
      path.lexically_relative(fs::absolute(checkpoint).lexically_normal().parent_path());
  return (inside.empty() || *inside.begin() == ".." ? path : inside).string();
}
std::string found_from(const fs::path& checkpoint, const std::string& file) {
  return file.empty() ? file : (checkpoint.parent_path() / file).string();
}

std::string print(const std::string& value) { return value; }
/// All digits of a fraction.
template <class Number>
std::string print(Number value) {
  std::ostringstream out;
  out.precision(std::numeric_limits<double>::max_digits10);
  out << value;
  return out.str();
}

bool parse(const std::string& text, std::string& value) {
  value = text;
  return true;
}
template <class Number>
bool parse(const std::string& text, Number& value) {
  std::istringstream in(text);
  return (in >> value) && in.peek() == std::istringstream::traits_type::eof();
}

}  // namespace

reel::Metadata settings_of(const Options& options) {
  reel::Metadata result;
  for_each_setting([&](const std::string& flag, auto member, Of) {
    result[flag] = print(options.*member);
    if (is_output(flag)) result[flag] = seen_from(options.checkpoint, result[flag]);
  });
  return result;
}

void take_settings(Options& options, const std::set<std::string>& given,
                   const reel::Metadata& stored) {
  std::string differences;
  for_each_setting([&](const std::string& flag, auto member, Of of) {
    const auto found = stored.find(flag);
    auto value = options.*member;
    if (found == stored.end() ||
        !parse(is_output(flag) ? found_from(options.checkpoint, found->second) : found->second,
               value))
      throw UserError(options.checkpoint + " is no checkpoint of char_rnn: it says no " + flag);
    // A model that only writes draws its own random numbers, and as much as it is told now.
    if (options.sample && (flag == "seed" || of == Of::writing)) return;
    const bool is_asked_for = given.count(flag) && !(options.sample && of == Of::training);
    if (!is_asked_for) {
      options.*member = value;
    } else if ((of == Of::model || of == Of::training) && options.*member != value) {
      differences += (differences.empty() ? "--" : ", --") + flag + ' ' + print(value) + ", not " +
                     print(options.*member);
    }
  });
  if (!differences.empty())
    throw UserError(options.checkpoint + " holds another model: it was made with " + differences);
}
