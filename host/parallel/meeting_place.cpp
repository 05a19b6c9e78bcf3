#include "parallel/meeting_place.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <iterator>
#include <thread>
#include <utility>

#include "core/error.h"
#include "core/fs.h"
#include "core/text.h"
#include "parallel/meeting_folder.h"
#include "parallel/meeting_store.h"
#include "parallel/own_address.h"

namespace kf {

void Pauses::wait() {
  std::this_thread::sleep_for(pause_);
  pause_ = std::min(pause_ * 2, std::chrono::milliseconds(250));
}

namespace {

constexpr std::int64_t kKept = 3;  // meetings whose texts stay

std::string own_process() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return format("{}:{}:{}", host_name(), static_cast<std::int64_t>(::getpid()),
                std::chrono::duration_cast<std::chrono::microseconds>(now).count());
}

std::int64_t number_of(const std::string& text, const std::string& name) {
  std::int64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, number);
  KF_CHECK(error == std::errc() && stopped == end && number >= 0, Code::communication, "{}: '{}' is no number", name, text);
  return number;
}

std::vector<std::string> words_of(const std::string& line, std::size_t count, const std::string& name) {
  std::vector<std::string> words = split(line, ' ');
  KF_CHECK(words.size() == count, Code::communication, "{}: '{}' is no line of a meeting", name, line);
  return words;
}

std::string name_of(const char* what, std::int64_t number) { return format("{}-{}", what, number); }

}  // namespace

std::string text_of(const Attendance& attendance) {
  const char* const kind = attendance.kind == Attendance::Kind::held ? "held" : attendance.kind == Attendance::Kind::few ? "few" : "left";
  std::string text = format("{} {} {}", kind, attendance.number, attendance.step);
  for (const Attendant& who : attendance.there) {
    text += format("\nthere {} {}", who.worker, who.process);
  }
  for (const Attendant& who : attendance.behind) {
    text += format("\nbehind {} {}", who.worker, who.process);
  }
  return text;
}

Attendance attendance_of(const std::string& text, const std::string& name) {
  Attendance out;
  bool first = true;
  for (const std::string& line : split(text, '\n')) {
    const std::vector<std::string> words = words_of(line, 3, name);
    const std::int64_t number = number_of(words[1], name);
    if (std::exchange(first, false)) {
      out.kind = words[0] == "held" ? Attendance::Kind::held : words[0] == "few" ? Attendance::Kind::few : Attendance::Kind::left;
      out.number = number;
      out.step = number_of(words[2], name);
    } else {
      (words[0] == "there" ? out.there : out.behind).push_back({number, words[2]});
    }
  }
  return out;
}

std::vector<Attendant> Attendance::all() const {
  std::vector<Attendant> out = there;
  out.insert(out.end(), behind.begin(), behind.end());
  return out;
}

std::string names_of(const std::vector<std::int64_t>& workers) {
  std::vector<std::string> texts;
  for (const std::int64_t worker : workers) {
    texts.push_back(to_text(worker));
  }
  return (workers.size() == 1 ? "worker " : "workers ") + join(texts, ", ");
}

std::string names_of(const std::vector<Attendant>& workers) {
  std::vector<std::int64_t> numbers;
  for (const Attendant& who : workers) {
    numbers.push_back(who.worker);
  }
  return names_of(numbers);
}

bool is_among(const Attendant& who, const std::vector<Attendant>& workers) {
  return std::find(workers.begin(), workers.end(), who) != workers.end();
}

MeetingPlace::MeetingPlace(std::int64_t worker) : self_{worker, own_process()} {}

std::optional<Attendant> MeetingPlace::living(std::int64_t worker) const {
  if (worker == self_.worker) {
    return self_;
  }
  const std::optional<std::string> process = process_of(worker);
  return process ? std::optional(Attendant{worker, *process}) : std::nullopt;
}

std::int64_t MeetingPlace::last() const {
  constexpr std::string_view kHeld = "held-";
  std::int64_t last = 0;
  for (const std::string& name : names()) {
    if (name.starts_with(kHeld) && name.find('.') == std::string::npos) {
      last = std::max(last, number_of(name.substr(kHeld.size()), name));
    }
  }
  return last;
}

void MeetingPlace::arrive(std::int64_t number, bool trains, const WorkerProgress& progress) {
  forget(number - kKept);
  put(format("come-{}-{}", number, self_.worker),
      format("{} {} {} {} {}", trains ? "trains" : "starts", self_.process, progress.step, progress.exchanges, progress.mark));
}

std::vector<Arrival> MeetingPlace::arrivals(std::int64_t number, std::int64_t workers) const {
  std::vector<Arrival> out;
  for (std::int64_t worker = 0; worker < workers; ++worker) {
    const std::string name = format("come-{}-{}", number, worker);
    const std::optional<std::string> text = read(name);
    if (!text) {
      continue;
    }
    const std::vector<std::string> words = words_of(*text, 5, name);
    const Attendant who{worker, words[1]};
    if (living(worker) == who) {  // not an earlier process of that worker
      out.push_back({who, words[0] == "trains", {number_of(words[2], name), number_of(words[3], name), number_of(words[4], name)}});
    }
  }
  return out;
}

std::optional<Attendance> MeetingPlace::attendance(std::int64_t number) const {
  const std::string name = name_of("held", number);
  const std::optional<std::string> text = read(name);
  return text ? std::optional(kf::attendance_of(*text, name)) : std::nullopt;
}

Attendance MeetingPlace::write(const Attendance& mine) {
  const std::string name = name_of("held", mine.number);
  return kf::attendance_of(first(name, text_of(mine)), name);
}

std::string MeetingPlace::await_ready(const std::string& what, std::int64_t number, const std::vector<Attendant>& members) {
  const auto name = [&](const Attendant& who) { return format("ready-{}-{}-{}", number, what, who.worker); };
  put(name(self_), self_.process);
  for (Pauses pauses;; pauses.wait()) {
    std::vector<Attendant> gone;
    const bool all = std::all_of(members.begin(), members.end(), [&](const Attendant& who) { return read(name(who)) == who.process; });
    std::copy_if(members.begin(), members.end(), std::back_inserter(gone), [&](const Attendant& who) { return living(who.worker) != who; });
    if (all || !gone.empty()) {
      return all ? "" : format("{} died", names_of(gone));
    }
  }
}

std::optional<bool> MeetingPlace::done(std::int64_t number) const {
  const std::optional<std::string> text = read(name_of("done", number));
  return text ? std::optional(*text == "yes") : std::nullopt;
}

bool MeetingPlace::settle(std::int64_t number, bool mine) { return first(name_of("done", number), mine ? "yes" : "no") == "yes"; }

void MeetingPlace::finish(std::int64_t step) { first("end", to_text(step)); }

std::optional<std::int64_t> MeetingPlace::finished() const {
  const std::optional<std::string> text = read("end");
  return text ? std::optional(number_of(*text, "end")) : std::nullopt;
}

/// Nobody asks for a meeting that long ago: who missed it sees a later one.
void MeetingPlace::forget(std::int64_t number) {
  if (number < 1) {
    return;
  }
  const std::array<std::string, 4> begins{format("come-{}-", number), format("ready-{}-", number), format("group-{}-", number),
                                          format("state-{}-", number)};
  std::vector<std::string> old{name_of("held", number), name_of("done", number)};
  for (const std::string& name : names()) {
    if (std::any_of(begins.begin(), begins.end(), [&](const std::string& begin) { return name.starts_with(begin); })) {
      old.push_back(name);
    }
  }
  remove(old);
}

bool is_meeting_store(const std::string& where) {
  const std::size_t colon = where.rfind(':');
  return colon != std::string::npos && colon > 0 && colon + 1 < where.size() && where.find('/') == std::string::npos &&
         where.find_first_not_of("0123456789", colon + 1) == std::string::npos;
}

std::unique_ptr<MeetingPlace> open_meeting_place(const std::string& where, std::int64_t worker) {
  if (is_meeting_store(where)) {
    return std::make_unique<MeetingStore>(where, worker);
  }
  return std::make_unique<MeetingFolder>(where, worker);
}

Rendezvous meeting_rendezvous(const std::string& where, const std::string& name) {
  Rendezvous out;
  const bool store = is_meeting_store(where);
  out.where = store ? where : "file:" + (fs::path(where) / name).string();
  out.kept = store;
  out.prefix = store ? kMeetingPrefix + name : "";
  return out;
}

}  // namespace kf
