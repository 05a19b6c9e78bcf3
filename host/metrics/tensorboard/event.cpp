#include "metrics/tensorboard/event.h"

#include <isa-l/crc.h>

#include <exception>

#include <protozero/pbf_reader.hpp>
#include <protozero/pbf_writer.hpp>

#include "core/error.h"
#include "core/text.h"

namespace kf::tensorboard {
namespace {

using config::Node;
using protozero::pbf_writer;

// Numbers of fields, by message.
namespace event {
constexpr int wall_time = 1, step = 2, file_version = 3, summary = 5, session_log = 7;
}
namespace session_log {
constexpr int status = 1, start = 1;  // SessionStatus
}
namespace summary {
constexpr int value = 1;
}
namespace value {
constexpr int tag = 1, simple_value = 2, histo = 5, tensor = 8, metadata = 9;
}
namespace histo {
constexpr int min = 1, max = 2, num = 3, sum = 4, sum_squares = 5, bucket_limit = 6, bucket = 7;
}
namespace metadata {
constexpr int plugin_data = 1, data_class = 4, tensor_class = 2;  // DataClass
}
namespace plugin_data {
constexpr int plugin_name = 1, content = 2;
}
namespace tensor {
constexpr int dtype = 1, shape = 2, float_val = 5, string_val = 8;
constexpr int float_type = 1, string_type = 7;  // DataType
}  // namespace tensor
namespace hparams {  // HParamsPluginData and its parts
constexpr int start_info = 3, end_info = 4;
constexpr int settings = 1, group_name = 4, start_time = 5;
constexpr int key = 1, mapped = 2;
constexpr int number = 2, text = 3, boolean = 4;  // google.protobuf.Value
constexpr int status = 1, success = 1, end_time = 2;
}  // namespace hparams

constexpr const char* kVersion = "brain.Event:2";  // readers honour start_record from version 2 on

void append_number(std::string& out, std::uint64_t number, int bytes) {
  for (int i = 0; i < bytes; ++i) {
    out += static_cast<char>(number >> (8 * i));
  }
}

std::uint64_t number_at(std::string_view text, std::size_t at, std::size_t bytes) {
  std::uint64_t out = 0;
  for (std::size_t i = 0; i < bytes; ++i) {
    out |= static_cast<std::uint64_t>(static_cast<unsigned char>(text[at + i])) << (8 * i);
  }
  return out;
}

/// How long the framed record at `at` is; 0 where there is no whole one.
std::size_t length_at(std::string_view file, std::size_t at) {
  constexpr std::size_t head = 12;
  constexpr std::size_t frame = head + 4;
  if (file.size() - at < frame || number_at(file, at + 8, 4) != masked_crc(file.substr(at, 8))) {
    return 0;
  }
  const std::uint64_t length = number_at(file, at, 8);
  if (length > file.size() - at - frame) {
    return 0;
  }
  const auto size = static_cast<std::size_t>(length);
  return number_at(file, at + head + size, 4) == masked_crc(file.substr(at + head, size)) ? frame + size : 0;
}

/// Whether the Event has values of step `first` or a later one.
bool has_values_from(std::string_view message, std::int64_t first) {
  using protozero::pbf_wire_type;
  using protozero::tag_and_type;
  std::int64_t step = 0;
  bool values = false;
  try {
    for (protozero::pbf_reader reader(message.data(), message.size()); reader.next();) {
      if (reader.tag_and_type() == tag_and_type(event::step, pbf_wire_type::varint)) {
        step = reader.get_int64();
      } else {
        values = values || reader.tag() == event::summary;
        reader.skip();
      }
    }
  } catch (const std::exception&) {  // protozero's: it is no Event, and nobody can read it
    return true;
  }
  return values && step >= first;
}

std::string framed(const std::string& message) {
  std::string out;
  out.reserve(message.size() + 16);
  append_number(out, message.size(), 8);
  append_number(out, masked_crc(out), 4);
  out += message;
  append_number(out, masked_crc(message), 4);
  return out;
}

/// A framed Event; `fill` adds what it is about.
template <class Fill>
std::string record(double wall, std::int64_t step, const Fill& fill) {
  std::string message;
  pbf_writer writer(message);
  writer.add_double(event::wall_time, wall);
  writer.add_int64(event::step, step);
  fill(writer);
  return framed(message);
}

/// An Event with one value of a plugin; `fill` adds the value's own fields.
template <class Fill>
std::string plugin_record(double wall, std::int64_t step, const std::string& tag, const char* plugin, const std::string& content,
                          const Fill& fill) {
  return record(wall, step, [&](pbf_writer& writer) {
    pbf_writer values(writer, event::summary);
    pbf_writer one(values, summary::value);
    one.add_string(value::tag, tag);
    fill(one);
    pbf_writer about(one, value::metadata);
    {
      pbf_writer data(about, metadata::plugin_data);
      data.add_string(plugin_data::plugin_name, plugin);
      data.add_bytes(plugin_data::content, content);
    }
    about.add_enum(metadata::data_class, metadata::tensor_class);
  });
}

void add_histogram(pbf_writer& values, const Histogram& histogram) {
  const Bars bars = bars_of(histogram);
  if (bars.counts.empty()) {
    return;  // NaN alone
  }
  double count = 0;
  for (const double one : bars.counts) {
    count += one;
  }
  pbf_writer one(values, summary::value);
  one.add_string(value::tag, histogram.name);
  pbf_writer out(one, value::histo);
  out.add_double(histo::min, histogram.min);
  out.add_double(histo::max, histogram.max);
  out.add_double(histo::num, count);
  out.add_double(histo::sum, histogram.sum);
  out.add_double(histo::sum_squares, histogram.sum_squares);
  out.add_packed_double(histo::bucket_limit, bars.edges.begin() + 1, bars.edges.end());  // readers take min for where the first one begins
  out.add_packed_double(histo::bucket, bars.counts.begin(), bars.counts.end());
}

void add_setting(pbf_writer& settings, const std::string& key, const Node& node) {
  pbf_writer entry(settings, hparams::settings);
  entry.add_string(hparams::key, key);
  pbf_writer mapped(entry, hparams::mapped);
  if (const auto* const boolean = std::get_if<bool>(&node.value)) {
    mapped.add_bool(hparams::boolean, *boolean);
  } else if (const auto* const integer = std::get_if<std::int64_t>(&node.value)) {
    mapped.add_double(hparams::number, static_cast<double>(*integer));
  } else if (const auto* const real = std::get_if<double>(&node.value)) {
    mapped.add_double(hparams::number, *real);
  } else if (const auto* const text = std::get_if<std::string>(&node.value)) {
    mapped.add_string(hparams::text, *text);
  }
}

std::string hparams_record(double wall, const std::string& tag, const std::string& content) {
  return plugin_record(wall, 0, tag, "hparams", content, [](pbf_writer& one) {  // one number, since readers leave out values without any
    pbf_writer nothing(one, value::tensor);
    nothing.add_enum(tensor::dtype, tensor::float_type);
    nothing.add_message(tensor::shape, std::string());
    nothing.add_float(tensor::float_val, 0);
  });
}

}  // namespace

std::uint32_t masked_crc(std::string_view bytes) {
  KF_CHECK(bytes.size() <= std::size_t{1} << 30U, Code::other, "a record of {} bytes for TensorBoard; 1 GiB is the most", bytes.size());
  auto* const begin = reinterpret_cast<unsigned char*>(const_cast<char*>(bytes.data()));  // it only reads
  const std::uint32_t crc = ~crc32_iscsi(begin, static_cast<int>(bytes.size()), 0xffffffffU);
  return ((crc >> 15U) | (crc << 17U)) + 0xa282ead8U;
}

std::string version_record(double wall) {
  return record(wall, 0, [](pbf_writer& writer) { writer.add_string(event::file_version, kVersion); });
}

std::string start_record(double wall, std::int64_t step) {
  return record(wall, step, [](pbf_writer& writer) {
    pbf_writer log(writer, event::session_log);
    log.add_enum(session_log::status, session_log::start);
  });
}

std::string records_before(std::string_view file, std::int64_t first) {
  std::string out;
  std::size_t at = 0;
  for (std::size_t length = 0; at < file.size() && (length = length_at(file, at)) > 0; at += length) {
    if (!has_values_from(file.substr(at + 12, length - 16), first)) {
      out += file.substr(at, length);
    }
  }
  return out;
}

std::string scalars_record(double wall, std::int64_t step, const Values& values) {
  return record(wall, step, [&](pbf_writer& writer) {
    pbf_writer all(writer, event::summary);
    for (const auto& [name, number] : values) {
      pbf_writer one(all, summary::value);
      one.add_string(value::tag, name);
      one.add_float(value::simple_value, static_cast<float>(number));
    }
  });
}

std::string histograms_record(double wall, const Histograms& all) {
  return record(wall, all.step, [&](pbf_writer& writer) {
    pbf_writer values(writer, event::summary);
    for (const Histogram& histogram : all.all) {
      add_histogram(values, histogram);
    }
  });
}

std::string text_record(double wall, std::int64_t step, const std::string& tag, const std::string& text) {
  return plugin_record(wall, step, tag, "text", "", [&](pbf_writer& one) {
    pbf_writer words(one, value::tensor);
    words.add_enum(tensor::dtype, tensor::string_type);
    words.add_message(tensor::shape, std::string());
    words.add_bytes(tensor::string_val, "    " + join(split(text, '\n'), "\n    "));
  });
}

std::string settings_record(double wall, const std::string& group, const std::vector<std::pair<std::string, Node>>& settings) {
  std::string content;
  {
    pbf_writer data(content);
    pbf_writer info(data, hparams::start_info);
    for (const auto& [key, node] : settings) {
      add_setting(info, key, node);
    }
    info.add_string(hparams::group_name, group);
    info.add_double(hparams::start_time, wall);
  }
  return hparams_record(wall, "_hparams_/session_start_info", content);
}

std::string complete_record(double wall) {
  std::string content;
  {
    pbf_writer data(content);
    pbf_writer info(data, hparams::end_info);
    info.add_enum(hparams::status, hparams::success);
    info.add_double(hparams::end_time, wall);
  }
  return hparams_record(wall, "_hparams_/session_end_info", content);
}

}  // namespace kf::tensorboard
