#include "metrics/wandb/record.h"

#include <cmath>
#include <exception>

#include <protozero/pbf_reader.hpp>
#include <protozero/pbf_writer.hpp>

namespace kf::wandb {
namespace {

using protozero::pbf_reader;
using protozero::pbf_wire_type;
using protozero::pbf_writer;
using protozero::tag_and_type;  // a field of another type than ours is passed over

// Numbers of fields, by message.
namespace record {
constexpr int num = 1, history = 2, summary = 3, run = 17, exit = 18, final = 20;
}
namespace run {
constexpr int run_id = 1, project = 3, config = 4, display_name = 8, tags = 10, host = 13, start_time = 17;
}
namespace item {  // of config, history and summary
constexpr int key = 1, value_json = 16;
}
namespace list {  // ConfigRecord and SummaryRecord: update; HistoryRecord: item
constexpr int items = 1;
}
namespace history {
constexpr int step = 2, num = 1;  // HistoryStep
}
namespace timestamp {
constexpr int seconds = 1, nanos = 2;
}
namespace run_exit {
constexpr int exit_code = 1, runtime = 2;
}

void add_items(pbf_writer& writer, const Items& items) {
  for (const auto& [key, json] : items) {
    pbf_writer one(writer, list::items);
    one.add_string(item::key, key);
    one.add_string(item::value_json, json);
  }
}

std::pair<std::string, std::string> read_item(pbf_reader reader) {
  std::pair<std::string, std::string> out;
  while (reader.next()) {
    switch (reader.tag_and_type()) {
      case tag_and_type(item::key, pbf_wire_type::length_delimited): out.first = reader.get_string(); break;
      case tag_and_type(item::value_json, pbf_wire_type::length_delimited): out.second = reader.get_string(); break;
      default: reader.skip();
    }
  }
  return out;
}

History read_history(pbf_reader reader) {
  History out;
  while (reader.next()) {
    switch (reader.tag_and_type()) {
      case tag_and_type(list::items, pbf_wire_type::length_delimited): out.items.push_back(read_item(reader.get_message())); break;
      case tag_and_type(history::step, pbf_wire_type::length_delimited): {
        pbf_reader step = reader.get_message();
        while (step.next(history::num, pbf_wire_type::varint)) {
          out.step = step.get_int64();
        }
        break;
      }
      default: reader.skip();
    }
  }
  return out;
}

std::optional<double> read_start(pbf_reader reader) {
  if (!reader.next(run::start_time, pbf_wire_type::length_delimited)) {
    return std::nullopt;
  }
  pbf_reader time = reader.get_message();
  double out = 0;
  while (time.next()) {
    switch (time.tag_and_type()) {
      case tag_and_type(timestamp::seconds, pbf_wire_type::varint): out += static_cast<double>(time.get_int64()); break;
      case tag_and_type(timestamp::nanos, pbf_wire_type::varint): out += 1e-9 * time.get_int32(); break;
      default: time.skip();
    }
  }
  return out;
}

}  // namespace

std::string run_record(const RunHead& head) {
  std::string out;
  {
    pbf_writer writer(out);
    pbf_writer one(writer, record::run);
    one.add_string(run::run_id, head.id);
    one.add_string(run::project, head.project);
    {
      pbf_writer config(one, run::config);
      add_items(config, head.config);
    }
    one.add_string(run::display_name, head.name);
    for (const std::string& tag : head.tags) {
      one.add_string(run::tags, tag);
    }
    one.add_string(run::host, head.host);
    pbf_writer time(one, run::start_time);
    const double seconds = std::floor(head.start);
    time.add_int64(timestamp::seconds, static_cast<std::int64_t>(seconds));
    time.add_int32(timestamp::nanos, static_cast<std::int32_t>(1e9 * (head.start - seconds)));
  }
  return out;
}

std::string history_record(std::int64_t step, const Items& items) {
  std::string out;
  {
    pbf_writer writer(out);
    pbf_writer one(writer, record::history);
    add_items(one, items);
    pbf_writer number(one, history::step);
    number.add_int64(history::num, step);
  }
  return out;
}

std::string summary_record(const Items& items) {
  std::string out;
  {
    pbf_writer writer(out);
    pbf_writer one(writer, record::summary);
    add_items(one, items);
  }
  return out;
}

std::string exit_record(double seconds) {
  std::string out;
  {
    pbf_writer writer(out);
    pbf_writer one(writer, record::exit);
    one.add_int32(run_exit::exit_code, 0);
    one.add_int32(run_exit::runtime, static_cast<std::int32_t>(seconds));
  }
  return out;
}

std::string final_record() {
  std::string out;
  pbf_writer(out).add_message(record::final, std::string());
  return out;
}

std::string numbered(std::int64_t number, std::string_view record) {
  std::string out;
  pbf_writer(out).add_int64(record::num, number);
  return out.append(record);
}

std::string unnumbered(std::string_view whole) {
  pbf_reader reader(whole.data(), whole.size());
  if (reader.next() && reader.tag_and_type() == tag_and_type(record::num, pbf_wire_type::varint)) {
    reader.skip();
    return std::string(whole.substr(whole.size() - reader.length()));
  }
  return std::string(whole);
}

std::optional<History> history_of(std::string_view whole) {
  try {
    pbf_reader reader(whole.data(), whole.size());
    if (reader.next(record::history, pbf_wire_type::length_delimited)) {
      return read_history(reader.get_message());
    }
  } catch (const std::exception&) {  // protozero's: it is no message
  }
  return std::nullopt;
}

std::optional<double> start_of(std::string_view whole) {
  try {
    pbf_reader reader(whole.data(), whole.size());
    if (reader.next(record::run, pbf_wire_type::length_delimited)) {
      return read_start(reader.get_message());
    }
  } catch (const std::exception&) {  // likewise
  }
  return std::nullopt;
}

}  // namespace kf::wandb
