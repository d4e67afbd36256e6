// Event files, as readers that share no code with the writer see them.
#include "reel/frontend/events/event_writer.h"

#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <map>
#include <set>
#include <sstream>

#include "reel/frontend/events/record_file.h"
#include "reel/reel.h"
#include "reel/tests/check.h"
#include "reel/tests/own_folder.h"

namespace reel {
namespace {

/// A decoded message: contents of fields by number, in order.
struct Message {
  std::multimap<int, std::string> bytes;
  std::map<int, std::uint64_t> numbers;  ///< integers, and the bits of others

  std::string text(int field) const {
    const auto found = bytes.find(field);
    return found == bytes.end() ? "(none)" : found->second;
  }
  Message inside(int field) const { return decode(text(field)); }
  std::vector<Message> all(int field) const {
    std::vector<Message> result;
    for (auto [at, end] = bytes.equal_range(field); at != end; ++at)
      result.push_back(decode(at->second));
    return result;
  }
  double number(int field) const {
    return numbers.count(field) ? std::bit_cast<double>(numbers.at(field)) : 0;
  }
  std::vector<double> doubles(int field) const {
    const std::string packed = text(field);
    std::vector<double> result(packed.size() / sizeof(double));
    std::memcpy(result.data(), packed.data(), result.size() * sizeof(double));
    return result;
  }

  static Message decode(std::string_view rest) {
    Message result;
    const auto varint = [&] {
      std::uint64_t value = 0;
      for (int shift = 0; !rest.empty(); shift += 7) {
        const auto byte = static_cast<unsigned char>(rest[0]);
        rest.remove_prefix(1);
        value |= std::uint64_t{byte & 127u} << shift;
        if (byte < 128) break;
      }
      return value;
    };
    const auto fixed = [&](std::size_t size) {
      std::uint64_t value = 0;
      std::memcpy(&value, rest.data(), size);
      rest.remove_prefix(size);
      return value;
    };
    while (!rest.empty()) {
      const std::uint64_t tag = varint();
      const int field = static_cast<int>(tag >> 3);
      switch (tag & 7) {
        case 0:
          result.numbers[field] = varint();
          break;
        case 1:
          result.numbers[field] = fixed(8);
          break;
        case 5:
          result.numbers[field] = fixed(4);
          break;
        case 2: {
          const std::size_t size = varint();
          result.bytes.emplace(field, rest.substr(0, size));
          rest.remove_prefix(size);
          break;
        }
        default:
          ADD_FAILURE() << "wire type " << (tag & 7);
          return result;
      }
    }
    return result;
  }
};

/// The checksum as its definition has it: a division of polynomials, bit by bit.
std::uint32_t crc_of(std::string_view bytes) {
  std::uint32_t crc = ~0u;
  for (const char byte : bytes) {
    crc ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0x82F63B78u : 0);
  }
  return ~crc;
}
std::uint32_t masked_crc_of(std::string_view bytes) {
  const std::uint32_t crc = crc_of(bytes);
  return (crc >> 15 | crc << 17) + 0xA282EAD8u;
}

class EventWriterTest : public InOwnFolder {
 protected:
  EventWriterTest() : InOwnFolder("runs/first") {}

  EventWriter writer() const {
    return EventWriter(path, {.clock = [] { return 1700000000.5; }});
  }
  /// Returns the events of a file. Expects right lengths and checksums.
  static std::vector<Message> events_of(const EventWriter& writer) {
    const std::string all = bytes_of(writer.path());
    std::vector<Message> result;
    for (std::string_view rest = all; !rest.empty();) {
      std::uint64_t size = 0;
      std::uint32_t of_size = 0, of_data = 0;
      std::memcpy(&size, rest.data(), 8);
      std::memcpy(&of_size, rest.data() + 8, 4);
      EXPECT_EQ(of_size, masked_crc_of(rest.substr(0, 8)));
      const std::string_view data = rest.substr(12, size);
      std::memcpy(&of_data, rest.data() + 12 + size, 4);
      EXPECT_EQ(of_data, masked_crc_of(data));
      result.push_back(Message::decode(data));
      rest.remove_prefix(16 + size);
    }
    return result;
  }
  /// Returns the value in a summary event.
  static Message value_of(const Message& event) { return event.inside(5).inside(1); }
  static std::string plugin_of(const Message& value) { return value.inside(9).inside(1).text(1); }
};

TEST(Crc32cTest, HasTheValuesOfItsStandard) {
  EXPECT_EQ(crc32c(""), 0u);
  EXPECT_EQ(crc32c("123456789"), 0xE3069283u);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8A9136AAu);  // RFC 3720, B.4
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62A8AB43u);
}

TEST_F(EventWriterTest, ScalarsHaveTagStepAndTime) {
  EventWriter events = writer();
  events.scalar("loss/train", 7, 0.25);
  events.scalar("count", 1234567890123, scalar(3));
  const std::vector<Message> read = events_of(events);
  ASSERT_EQ(read.size(), 3u);
  EXPECT_EQ(read[0].text(3), "brain.Event:2");
  EXPECT_EQ(read[1].number(1), 1700000000.5);
  EXPECT_EQ(read[1].numbers.at(2), 7u);
  EXPECT_EQ(value_of(read[1]).text(1), "loss/train");
  EXPECT_EQ(std::bit_cast<float>(static_cast<std::uint32_t>(value_of(read[1]).numbers.at(2))),
            0.25f);
  EXPECT_EQ(plugin_of(value_of(read[1])), "scalars");
  EXPECT_EQ(read[2].numbers.at(2), 1234567890123u);
}

TEST_F(EventWriterTest, AHistogramCountsTheElementsThatAreNoPadding) {
  EventWriter events = writer();
  const Dim batch("batch", 2), time("time", tensor({1, 3}, {batch}));
  const float nan = std::numeric_limits<float>::quiet_NaN();
  events.histogram("h", 1, tensor({{0., nan, 99.}, {30., 1., 2.}}, {batch, time}));
  events.histogram("equal", 2, tensor({4, 4, 4}));
  events.histogram("none", 3, zeros({0}));
  const std::vector<Message> read = events_of(events);
  const Message h = value_of(read[1]).inside(5);
  EXPECT_EQ(plugin_of(value_of(read[1])), "histograms");
  EXPECT_EQ(h.number(1), 0);
  EXPECT_EQ(h.number(2), 30);
  EXPECT_EQ(h.number(3), 4);
  EXPECT_EQ(h.number(4), 33);
  EXPECT_EQ(h.number(5), 905);
  const std::vector<double> limits = h.doubles(6), buckets = h.doubles(7);
  ASSERT_EQ(limits.size(), 30u);
  ASSERT_EQ(buckets.size(), 30u);
  EXPECT_EQ(limits[0], 1);
  EXPECT_EQ(limits[29], 30);
  EXPECT_EQ(buckets[0], 1);
  EXPECT_EQ(buckets[1], 1);
  EXPECT_EQ(buckets[2], 1);
  EXPECT_EQ(buckets[29], 1);
  EXPECT_EQ(value_of(read[2]).inside(5).doubles(7), std::vector<double>{3});
  EXPECT_EQ(value_of(read[3]).inside(5).number(3), 0);
}

TEST_F(EventWriterTest, TextsAreTensorsOfStrings) {
  EventWriter events = writer();
  events.text("sample", 5, "**Genesis** 1\nIn the beginning");
  const Message value = value_of(events_of(events)[1]);
  EXPECT_EQ(value.text(1), "sample");
  EXPECT_EQ(value.inside(8).numbers.at(1), 7u);  // DT_STRING
  EXPECT_EQ(value.inside(8).text(8), "**Genesis** 1\nIn the beginning");
  EXPECT_EQ(plugin_of(value), "text");
}

/// Every input of a node is a node, and nodes of the loop are in its scope.
TEST_F(EventWriterTest, AGraphHasItsLoopsAsScopes) {
  const auto f = jit([](const Tensor& x) {
    return while_loop([](const Tensor& s) { return s < 10.0; },
                      [](const Tensor& s) { return s * 2.0 + 1.0; }, x, {.name = "grow"});
  });
  f(scalar(1.0));
  EventWriter events = writer();
  events.graph(f.graph());
  const Message graph = Message::decode(events_of(events)[1].text(4));
  EXPECT_EQ(graph.inside(4).numbers.at(1), 22u);
  std::map<std::string, std::string> op_of;
  for (const Message& node : graph.all(1))
    EXPECT_TRUE(op_of.emplace(node.text(1), node.text(2)).second) << node.text(1);
  int in_loop = 0;
  for (const auto& [name, op] : op_of)
    in_loop += name.find("grow") != std::string::npos && op == "mul";
  EXPECT_EQ(in_loop, 1);
  for (const Message& node : graph.all(1))
    for (auto [input, end] = node.bytes.equal_range(3); input != end; ++input) {
      std::string from = input->second;
      if (from[0] == '^') from.erase(0, 1);
      EXPECT_TRUE(op_of.count(from.substr(0, from.find(':')))) << node.text(1) << " reads " << from;
    }
}

/// From the step of a START on, TensorBoard drops the values of earlier files.
TEST_F(EventWriterTest, AResumedRunPurgesTheStepsThatItRepeats) {
  EventWriter events(path, {.clock = [] { return 1700000000.5; }, .purge_step = 41});
  events.scalar("loss", 41, 0.25);
  const std::vector<Message> read = events_of(events);
  ASSERT_EQ(read.size(), 3u);
  EXPECT_EQ(read[0].text(3), "brain.Event:2");
  EXPECT_EQ(read[0].numbers.at(2), 41u);
  EXPECT_EQ(read[1].numbers.at(2), 41u);
  EXPECT_EQ(read[1].inside(7).numbers.at(1), 1u);  // SessionLog.START
  EXPECT_EQ(read[2].numbers.at(2), 41u);
  EXPECT_EQ(events_of(writer()).size(), 1u);
}

TEST_F(EventWriterTest, EveryWriterHasAFileOfItsOwn) {
  const EventWriter a = writer(), b = writer();
  EXPECT_NE(a.path(), b.path());
  EXPECT_NE(a.path().find("/events.out.tfevents.1700000000."), std::string::npos) << a.path();
}

TEST_F(EventWriterTest, ErrorsNameFolderAndTensor) {
  write(path = (folder_ / "file").string(), "no folder");
  EXPECT_EQ(message_of<IoError>([&] { EventWriter(path + "/runs"); }),
            "EventWriter: cannot make the folder " + path + "/runs: Not a directory");
  EventWriter events((folder_ / "runs").string());
  EXPECT_EQ(message_of<ShapeError>([&] { events.scalar("x", 1, ones({2})); }),
            "EventWriter::scalar: f32[2] is not one number; give it a mean, or call histogram");
}

/// Returns the output of a command.
std::string output_of(const std::string& command) {
  std::string result;
  std::FILE* const pipe = ::popen((command + " 2>&1").c_str(), "r");
  char part[4096];
  for (std::size_t count; (count = std::fread(part, 1, sizeof part, pipe)) > 0;)
    result.append(part, count);
  EXPECT_EQ(::pclose(pipe), 0) << result;
  return result;
}

/// protoc knows the messages by their names.
TEST_F(EventWriterTest, ProtocDecodesEveryEvent) {
#ifdef REEL_PROTOC
  EventWriter events(path, {.purge_step = 3});
  events.scalar("loss", 3, 0.5);
  events.histogram("h", 3, tensor({1., 2.}));
  events.text("t", 3, "words");
  const auto f = jit([](const Tensor& x) { return square(x); });
  f(scalar(1.0));
  events.graph(f.graph());
  const std::string all = bytes_of(events.path());
  std::string decoded;
  for (std::size_t at = 0; at < all.size();) {
    std::uint64_t size = 0;
    std::memcpy(&size, all.data() + at, 8);
    const std::string one = (folder_ / "event").string();
    write(one, all.substr(at + 12, size));
    decoded += output_of(std::string(REEL_PROTOC) + " --proto_path=" + REEL_EVENT_PROTO_FOLDER +
                         " --decode=tensorflow.Event event.proto < " + one);
    at += size + 16;
  }
  for (const char* part :
       {"file_version: \"brain.Event:2\"", "simple_value: 0.5", "num: 2", "string_val: \"words\"",
        "op: \"square\"", "status: START", "plugin_name: \"histograms\""})
    EXPECT_NE(decoded.find(part), std::string::npos) << part << "\n" << decoded;
  // protoc shows fields that it does not know as numbers at the beginning of a line.
  std::istringstream lines(decoded);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t first = line.find_first_not_of(' ');
    EXPECT_FALSE(std::isdigit(static_cast<unsigned char>(line[first]))) << line;
  }
#else
  GTEST_SKIP() << "there is no protoc: Debian's package is protobuf-compiler";
#endif
}

/// The package tfrecord reads TensorFlow's files, and checks both checksums of each record.
TEST_F(EventWriterTest, NodeReadsEveryRecord) {
  const char* const modules = std::getenv("REEL_NODE_MODULES");
  if (!modules)
    GTEST_SKIP() << "REEL_NODE_MODULES names no folder with the package tfrecord "
                    "(npm install tfrecord)";
  EventWriter events = writer();
  for (int i = 0; i < 20; ++i) events.scalar("loss", i, 1.0 / (1 + i));
  events.text("t", 3, std::string(3000, 'x'));
  const std::string script = (folder_ / "read.js").string();
  write(script, std::string("const {RecordReader} = require('") + modules +
                    "/tfrecord/lib/record_reader.js');\n"
                    "(async () => {\n"
                    "  const reader = await RecordReader.create(process.argv[2]);\n"
                    "  let count = 0;\n"
                    "  while (await reader.readRecord()) ++count;\n"
                    "  console.log(count);\n"
                    "})();\n");
  EXPECT_EQ(output_of("node " + script + ' ' + events.path()), "22\n");
}

}  // namespace
}  // namespace reel
