#include "reel/frontend/events/event_writer.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <string_view>
#include <utility>
#include <vector>

#include "reel/core/base/errors.h"
#include "reel/core/base/held.h"
#include "reel/core/base/str.h"
#include "reel/core/base/write_target.h"
#include "reel/core/types/valid_elements.h"
#include "reel/frontend/events/event_graph.h"
#include "reel/frontend/events/protobuf_writer.h"
#include "reel/frontend/events/record_file.h"

namespace reel {
namespace {

constexpr const char* kWriterName = "EventWriter";

// Fields of the messages, from tensorflow/core/util/event.proto and tensorflow/core/framework/
// {summary,histogram,tensor,tensor_shape}.proto.
namespace event {
constexpr int kWallTime = 1, kStep = 2, kFileVersion = 3, kGraph = 4, kSummary = 5, kSessionLog = 7;
}
namespace session_log {
constexpr int kStatus = 1, kStart = 1;
}
namespace summary {
constexpr int kValue = 1;
}
namespace value {
constexpr int kTag = 1, kSimpleValue = 2, kHistogram = 5, kTensor = 8, kMetadata = 9;
}
namespace metadata {
constexpr int kPlugin = 1, kPluginName = 1;
}
namespace histogram {
constexpr int kMin = 1, kMax = 2, kCount = 3, kSum = 4, kSumOfSquares = 5, kLimits = 6,
              kBuckets = 7;
}
namespace tensor_message {
constexpr int kDtype = 1, kShape = 2, kStrings = 8, kDtypeString = 7;
}

double system_clock_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// Returns a name that no other writer gives, of this process or of another one.
std::string file_name(double time) {
  static std::atomic<int> count = 0;
  char host[256] = "host";
  if (::gethostname(host, sizeof host - 1) != 0) host[0] = 'h', host[1] = 0;
  return str("events.out.tfevents.", static_cast<std::int64_t>(time), '.', host, '.', ::getpid(),
             '.', count++);
}

/// Returns the finite elements of a tensor that are no padding.
std::vector<double> finite_elements(const Tensor& tensor) {
  std::vector<double> result;
  const ValidElements is_valid(tensor.type(), {});
  const std::vector<std::int64_t>& sizes = tensor.type().sizes();
  std::vector<std::int64_t> index(sizes.size());
  visit(tensor.dtype(), [&](auto zero) {
    const auto x = tensor.to_vector<decltype(zero)>();
    result.reserve(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
      const auto element = static_cast<double>(x[i]);
      bool counts = std::isfinite(element);
      if (counts && !is_valid.are_all()) {
        auto rest = static_cast<std::int64_t>(i);
        for (std::size_t axis = sizes.size(); axis-- > 0; rest /= sizes[axis])
          index[axis] = rest % sizes[axis];
        counts = is_valid(index);
      }
      if (counts) result.push_back(element);
    }
  });
  return result;
}

std::string histogram_of(const std::vector<double>& elements) {
  constexpr std::size_t kMaxBuckets = 30;
  ProtobufWriter result;
  double least = 0, most = 0, sum = 0, sum_of_squares = 0;
  if (!elements.empty()) {
    const auto [min, max] = std::minmax_element(elements.begin(), elements.end());
    least = *min;
    most = *max;
  }
  const double width = (most - least) / kMaxBuckets;
  const bool has_width = width > 0 && std::isfinite(width);
  const std::size_t count = has_width ? kMaxBuckets : 1;
  std::vector<double> limits(count, most), buckets(count);
  for (std::size_t i = 0; i + 1 < count; ++i)
    limits[i] = least + width * static_cast<double>(i + 1);
  for (const double x : elements) {
    sum += x;
    sum_of_squares += x * x;
    const auto at = has_width ? static_cast<std::size_t>((x - least) / width) : 0;
    ++buckets[std::min(at, count - 1)];
  }
  result.number(histogram::kMin, least);
  result.number(histogram::kMax, most);
  result.number(histogram::kCount, static_cast<double>(elements.size()));
  result.number(histogram::kSum, sum);
  result.number(histogram::kSumOfSquares, sum_of_squares);
  result.numbers(histogram::kLimits, limits);
  result.numbers(histogram::kBuckets, buckets);
  return result.message();
}

double number_in(const Tensor& tensor) {
  check_defined("EventWriter::scalar", tensor);
  if (tensor.type().numel() != 1)
    throw ShapeError(str("EventWriter::scalar: ", tensor.type(),
                         " is not one number; give it a mean, or call histogram"));
  return visit(tensor.dtype(),
               [&](auto zero) { return static_cast<double>(tensor.item<decltype(zero)>()); });
}

}  // namespace

struct EventWriter::File {
  File(const std::string& folder, const EventWriterOptions& options)
      : clock(options.clock ? options.clock : system_clock_seconds),
        records(folder + '/' + file_name(clock()), "EventWriter") {
    ProtobufWriter version;
    version.number(event::kWallTime, clock());
    version.bytes(event::kFileVersion, "brain.Event:2");
    if (options.purge_step) version.integer(event::kStep, *options.purge_step);
    records.append(version.message());
    if (!options.purge_step) return;
    ProtobufWriter start;
    start.integer(session_log::kStatus, session_log::kStart);
    write(event::kSessionLog, *options.purge_step, start.message());
  }

  void write(int field, std::int64_t step, const std::string& content) {
    ProtobufWriter made;
    made.number(event::kWallTime, clock());
    made.integer(event::kStep, step);
    made.bytes(field, content);
    records.append(made.message());
  }
  /// plugin: the part of TensorBoard that shows the value.
  void write_value(const ProtobufWriter& content, std::int64_t step, std::string_view plugin) {
    ProtobufWriter name, about, all, list;
    name.bytes(metadata::kPluginName, plugin);
    about.bytes(metadata::kPlugin, name.message());
    all = content;
    all.bytes(value::kMetadata, about.message());
    list.bytes(summary::kValue, all.message());
    write(event::kSummary, step, list.message());
  }

  std::function<double()> clock;
  RecordFile records;
};

EventWriter::EventWriter(const std::string& folder, EventWriterOptions options) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error)
    throw IoError(str("EventWriter: cannot make the folder ", folder, ": ", error.message()));
  const std::filesystem::path path = folder;
  find_write_target((path.has_filename() ? path : path.parent_path()).string(), "EventWriter");
  file_ = std::make_unique<File>(folder, options);
}
EventWriter::~EventWriter() = default;
EventWriter::EventWriter(EventWriter&&) noexcept = default;
EventWriter& EventWriter::operator=(EventWriter&&) noexcept = default;

const std::string& EventWriter::path() const { return held(file_, kWriterName).records.path(); }

void EventWriter::scalar(const std::string& tag, std::int64_t step, double number) {
  ProtobufWriter made;
  made.bytes(value::kTag, tag);
  made.small_number(value::kSimpleValue, static_cast<float>(number));
  held(file_, kWriterName).write_value(made, step, "scalars");
}

void EventWriter::scalar(const std::string& tag, std::int64_t step, const Tensor& number) {
  scalar(tag, step, number_in(number));
}

void EventWriter::histogram(const std::string& tag, std::int64_t step, const Tensor& values) {
  check_defined("EventWriter::histogram", values);
  ProtobufWriter made;
  made.bytes(value::kTag, tag);
  made.bytes(value::kHistogram, histogram_of(finite_elements(values)));
  held(file_, kWriterName).write_value(made, step, "histograms");
}

void EventWriter::text(const std::string& tag, std::int64_t step, const std::string& text) {
  ProtobufWriter content, made;
  content.integer(tensor_message::kDtype, tensor_message::kDtypeString);
  content.bytes(tensor_message::kShape, "");
  content.bytes(tensor_message::kStrings, text);
  made.bytes(value::kTag, tag);
  made.bytes(value::kTensor, content.message());
  held(file_, kWriterName).write_value(made, step, "text");
}

void EventWriter::graph(const Graph& graph) {
  held(file_, kWriterName).write(event::kGraph, 0, graph_message(graph));
}

}  // namespace reel
