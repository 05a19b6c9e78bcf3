#include "parallel/meeting_folder.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <iterator>
#include <system_error>
#include <thread>
#include <utility>

#include "core/error.h"
#include "core/plain_file.h"
#include "core/text.h"
#include "parallel/own_address.h"

namespace kf {

void Pauses::wait() {
  std::this_thread::sleep_for(pause_);
  pause_ = std::min(pause_ * 2, std::chrono::milliseconds(250));
}

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::uint64_t kMost = 1 << 20;            // bytes of a file
constexpr std::chrono::seconds kUntilItIsGone{10};  // an earlier process of the same worker may be about to end
constexpr std::int64_t kKept = 3;                   // meetings whose files stay

std::string own_process() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return format("{}:{}:{}", host_name(), static_cast<std::int64_t>(::getpid()),
                std::chrono::duration_cast<std::chrono::microseconds>(now).count());
}

/// A lock of the open file: it goes with the last descriptor of it, whatever ends the process.
struct flock whole_file() {
  struct flock out {};
  out.l_type = F_WRLCK;
  out.l_whence = SEEK_SET;
  return out;
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

MeetingFolder::MeetingFolder(fs::path folder, std::int64_t worker) : folder_(std::move(folder)), self_{worker, own_process()} {
  std::error_code error;
  fs::create_directories(folder_, error);
  KF_CHECK(!error, Code::communication, "the folder {}, where workers meet, cannot be made: {}", folder_, error.message());
  const fs::path path = file(name_of("worker", worker));
  lock_ = Descriptor(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  KF_CHECK(lock_.get() >= 0, Code::communication, "cannot open {}: {}", path, std::strerror(errno));
  struct flock lock = whole_file();
  const Clock::time_point end = Clock::now() + kUntilItIsGone;
  while (::fcntl(lock_.get(), F_OFD_SETLK, &lock) != 0) {
    KF_CHECK(errno == EAGAIN || errno == EACCES, Code::communication, "{} cannot be locked: {}; name a folder on another disk (--meet)",
             path, std::strerror(errno));
    KF_CHECK(Clock::now() < end, Code::communication, "another process is worker {} of those that meet in {}: {}", worker, folder_,
             read(name_of("worker", worker)).value_or(""));
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  const bool written = ::ftruncate(lock_.get(), 0) == 0 &&
                       ::pwrite(lock_.get(), self_.process.data(), self_.process.size(), 0) == static_cast<ssize_t>(self_.process.size());
  KF_CHECK(written, Code::communication, "cannot write {}: {}", path, std::strerror(errno));
}

std::optional<std::string> MeetingFolder::read(const std::string& name) const {
  const fs::path path = file(name);
  return path_exists(path) ? std::optional(read_regular_file(path, kMost)) : std::nullopt;
}

/// What the first one who wrote it said.
std::string MeetingFolder::first(const std::string& name, const std::string& mine) {
  if (const std::optional<std::string> there = read(name)) {
    return *there;
  }
  const fs::path own = file(format("{}.of-{}", name, self_.worker));
  write_file_atomic(own, mine);
  const int failed = ::link(own.c_str(), file(name).c_str()) == 0 ? 0 : errno;
  ::unlink(own.c_str());
  KF_CHECK(failed == 0 || failed == EEXIST, Code::communication, "cannot write {}: {}; name a folder on another disk (--meet)", file(name),
           std::strerror(failed));
  return failed == 0 ? mine : read(name).value_or(mine);
}

std::string MeetingFolder::job(const std::string& mine) { return first("job", mine); }

std::optional<Attendant> MeetingFolder::living(std::int64_t worker) const {
  if (worker == self_.worker) {
    return self_;
  }
  const std::string name = name_of("worker", worker);
  const Descriptor other(::open(file(name).c_str(), O_RDWR | O_CLOEXEC));
  struct flock lock = whole_file();
  const bool held = other.get() >= 0 && ::fcntl(other.get(), F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
  return held ? std::optional(Attendant{worker, read(name).value_or("")}) : std::nullopt;
}

std::int64_t MeetingFolder::last() const {
  constexpr std::string_view kHeld = "held-";
  std::int64_t last = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(kHeld) && name.find('.') == std::string::npos) {
      last = std::max(last, number_of(name.substr(kHeld.size()), name));
    }
  }
  return last;
}

void MeetingFolder::arrive(std::int64_t number, bool trains, const WorkerProgress& progress) {
  forget(number - kKept);
  write_file_atomic(file(format("come-{}-{}", number, self_.worker)), format("{} {} {} {} {}", trains ? "trains" : "starts", self_.process,
                                                                             progress.step, progress.exchanges, progress.mark));
}

std::vector<Arrival> MeetingFolder::arrivals(std::int64_t number, std::int64_t workers) const {
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

std::optional<Attendance> MeetingFolder::attendance(std::int64_t number) const {
  const std::string name = name_of("held", number);
  const std::optional<std::string> text = read(name);
  return text ? std::optional(kf::attendance_of(*text, name)) : std::nullopt;
}

Attendance MeetingFolder::write(const Attendance& mine) {
  const std::string name = name_of("held", mine.number);
  return kf::attendance_of(first(name, text_of(mine)), name);
}

std::string MeetingFolder::await_ready(const std::string& what, std::int64_t number, const std::vector<Attendant>& members) {
  const auto name = [&](const Attendant& who) { return format("ready-{}-{}-{}", number, what, who.worker); };
  write_file_atomic(file(name(self_)), self_.process);
  for (Pauses pauses;; pauses.wait()) {
    std::vector<Attendant> gone;
    const bool all = std::all_of(members.begin(), members.end(), [&](const Attendant& who) { return read(name(who)) == who.process; });
    std::copy_if(members.begin(), members.end(), std::back_inserter(gone), [&](const Attendant& who) { return living(who.worker) != who; });
    if (all || !gone.empty()) {
      return all ? "" : format("{} died", names_of(gone));
    }
  }
}

std::optional<bool> MeetingFolder::done(std::int64_t number) const {
  const std::optional<std::string> text = read(name_of("done", number));
  return text ? std::optional(*text == "yes") : std::nullopt;
}

bool MeetingFolder::settle(std::int64_t number, bool mine) { return first(name_of("done", number), mine ? "yes" : "no") == "yes"; }

void MeetingFolder::finish(std::int64_t step) { first("end", to_text(step)); }

std::optional<std::int64_t> MeetingFolder::finished() const {
  const std::optional<std::string> text = read("end");
  return text ? std::optional(number_of(*text, "end")) : std::nullopt;
}

/// Nobody asks for a meeting that long ago: who missed it sees a later one.
void MeetingFolder::forget(std::int64_t number) const {
  if (number < 1) {
    return;
  }
  const std::array<std::string, 4> begins{format("come-{}-", number), format("ready-{}-", number), format("group-{}-", number),
                                          format("state-{}-", number)};
  std::vector<fs::path> old{file(name_of("held", number)), file(name_of("done", number))};
  std::error_code gone;  // another worker may remove them, too
  for (fs::directory_iterator entry(folder_, gone); !gone && entry != fs::directory_iterator(); entry.increment(gone)) {
    const std::string name = entry->path().filename().string();
    if (std::any_of(begins.begin(), begins.end(), [&](const std::string& begin) { return name.starts_with(begin); })) {
      old.push_back(entry->path());
    }
  }
  for (const fs::path& path : old) {
    ::unlink(path.c_str());
  }
}

}  // namespace kf
