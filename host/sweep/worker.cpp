#include "sweep/worker.h"

#include <unistd.h>

#include <array>
#include <csignal>
#include <filesystem>

#include "core/error.h"
#include "core/fs.h"
#include "core/text.h"

namespace kf::sweep {
namespace {

using config::Node;
using config::Table;

/// A file of /proc, or "" where it is not there: such files have no size, so they are read to their end.
std::string proc_file(const std::string& path) {
  try {
    return read_file(path);
  } catch (const Error&) {
    return "";
  }
}

std::string machine_name() {
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  std::error_code ignored;
  const std::string space = fs::read_symlink("/proc/self/ns/pid", ignored).string();
  return format("{} {} {}", host.data(), std::string(trim(proc_file("/proc/sys/kernel/random/boot_id"))), space);
}

std::string text_at(const Table& table, const char* key) {
  const Node* node = table.find(key);
  const auto* text = node != nullptr ? std::get_if<std::string>(&node->value) : nullptr;
  return text != nullptr ? *text : "";
}

}  // namespace

ProcessId ProcessId::of(pid_t pid) {
  // pid (name) state ppid ... starttime is field 22; the name may hold anything, so count behind its last parenthesis.
  const std::string stat = proc_file(format("/proc/{}/stat", pid));
  const std::size_t behind_name = stat.rfind(')');
  if (behind_name == std::string::npos) {
    return {pid, ""};
  }
  const std::vector<std::string> fields = split(std::string_view(stat).substr(behind_name + 2), ' ');
  const bool gone = fields[0] == "Z" || fields[0] == "X";  // dead, only not collected yet
  return {pid, fields.size() > 19 && !gone ? fields[19] : ""};
}

bool ProcessId::alive() const { return pid > 0 && !started.empty() && of(pid).started == started; }

Worker Worker::self() { return {machine_name(), ProcessId::of(::getpid())}; }

Worker Worker::from_node(const Node& node) {
  Worker out;
  if (const Table* table = node.table()) {
    out.machine = text_at(*table, "machine");
    out.process.started = text_at(*table, "started");
    const Node* pid = table->find("pid");
    if (const auto* number = pid != nullptr ? std::get_if<std::int64_t>(&pid->value) : nullptr) {
      out.process.pid = static_cast<pid_t>(*number);
    }
  }
  return out;
}

Node Worker::to_node() const {
  Table out;
  out["machine"] = Node(machine);
  out["pid"] = Node(static_cast<std::int64_t>(process.pid));
  out["started"] = Node(process.started);
  return Node(std::move(out));
}

bool Worker::on_this_machine() const { return machine == machine_name(); }

}  // namespace kf::sweep
