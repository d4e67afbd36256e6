#include "settings.h"

#include <filesystem>
#include <limits>
#include <sstream>

#include "user_error.h"

namespace {

namespace fs = std::filesystem;

/// A run's folder may be moved as a whole; files elsewhere stay where they are.
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
/// Prints all digits of a fraction.
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

void Settings::add_all(TrainingOptions& options) {
  add("cell", &options.cell, Of::model);
  add("layers", &options.layers, Of::model);
  add("hidden", &options.hidden, Of::model);
  add("batch", &options.batch, Of::training);
  add("seed", &options.seed, Of::training);
  add("mode", &options.mode, Of::run);
  add("steps", &options.steps, Of::run);
  add("checkpoint-every", &options.checkpoint_every, Of::run);
  add_file("losses", options.losses);
  add_file("plot", options.plot);
}

reel::Metadata Settings::to_metadata(const std::string& checkpoint) const {
  reel::Metadata result;
  for (const Setting& setting : all_) {
    std::string& text = result[setting.flag];
    text = std::visit([](const auto* value) { return print(*value); }, setting.value);
    if (setting.is_file) text = seen_from(checkpoint, text);
  }
  return result;
}

void Settings::take(const reel::SafetensorsFile& file, const std::set<std::string>& given,
                    bool goes_on, const std::string& program) const {
  const reel::Metadata& stored = file.metadata();
  const std::string& checkpoint = file.path();
  std::string differences;
  for (const Setting& setting : all_) {
    const auto found = stored.find(setting.flag);
    const bool is_asked_for = given.count(setting.flag) && (goes_on || setting.of != Of::training);
    const auto take_one = [&](auto* value) {
      auto then = *value;
      if (found == stored.end() ||
          !parse(setting.is_file ? found_from(checkpoint, found->second) : found->second, then))
        throw UserError(checkpoint + " is no checkpoint of " + program + ": it has no value for " +
                        setting.flag);
      if (!goes_on && setting.of == Of::show) return;
      if (!is_asked_for)
        *value = then;
      else if ((setting.of == Of::model || setting.of == Of::training) && *value != then)
        differences += (differences.empty() ? "--" : ", --") + setting.flag + ' ' + print(then) +
                       ", not " + print(*value);
    };
    std::visit(take_one, setting.value);
  }
  if (!differences.empty())
    throw UserError(checkpoint + " holds another model: it was made with " + differences);
}

std::optional<reel::SafetensorsFile> open_resumed(TrainingOptions& options) {
  if (!options.resume) return std::nullopt;
  const reel::SafetensorsFile file(options.checkpoint);
  const auto loss = file.metadata().find("loss");
  if (loss != file.metadata().end()) options.last_loss = loss->second;
  return file;
}
