#include "core/running.h"

#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstring>

namespace kf {

void write_plain(int fd, const char* text) {
  std::size_t left = std::strlen(text);
  while (left > 0) {
    const ssize_t written = ::write(fd, text, left);
    if (written <= 0) {
      return;
    }
    text += written;
    left -= static_cast<std::size_t>(written);
  }
}

void write_plain(int fd, std::int64_t number) {
  std::array<char, 24> digits{};
  std::size_t at = digits.size() - 1;  // a zero stays at the end
  auto rest = number < 0 ? 0 - static_cast<std::uint64_t>(number) : static_cast<std::uint64_t>(number);
  do {
    digits[--at] = static_cast<char>('0' + rest % 10);
    rest /= 10;
  } while (rest > 0);
  if (number < 0) {
    digits[--at] = '-';
  }
  write_plain(fd, digits.data() + at);
}

namespace {

std::atomic<int> report_file{-1};

}  // namespace

void set_report_file(int fd) { report_file = fd; }

void report(const char* text) {
  write_plain(STDERR_FILENO, text);
  if (const int file = report_file; file >= 0) {
    write_plain(file, text);
  }
}

void report(std::int64_t number) {
  write_plain(STDERR_FILENO, number);
  if (const int file = report_file; file >= 0) {
    write_plain(file, number);
  }
}

void Running::report() {
  write(STDERR_FILENO);
  if (const int file = report_file; file >= 0) {
    write(file);
  }
}

void Running::write(int fd) {
  for (const Running* one = current_.load(std::memory_order_acquire); one != nullptr; one = one->outer_) {
    write_plain(fd, "  in ");
    write_plain(fd, one->what_);
    if (one->doing_ != nullptr && *one->doing_ != '\0') {
      write_plain(fd, *one->doing_ == ' ' || *one->doing_ == ',' ? "" : ", ");  // some bring their own
      write_plain(fd, one->doing_);
    }
    if (one->step_ >= 0) {
      write_plain(fd, ", step ");
      write_plain(fd, one->step_);
    }
    write_plain(fd, "\n");
  }
}

}  // namespace kf
