#include "attach/client.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <string_view>
#include <system_error>
#include <thread>

#include "attach/address.h"
#include "core/error.h"
#include "core/plain_file.h"

namespace kf::attach {
namespace {

/// Why nobody answers.
std::string why_not(const fs::path& folder, int error) {
  switch (error) {
    case ENOENT:
      return path_exists(folder) ? "no kf-host trains there (it has no " + std::string(kSocket) + ")" : "there is no such folder";
    case ECONNREFUSED: return "the process that trained there has been killed, or it runs on another machine";
    case EACCES: return "the run belongs to another user";
    default: return std::generic_category().message(error);
  }
}

}  // namespace

Client::Client(const fs::path& folder, double patience) : folder_(folder) {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  int error = connect();
  while ((error == ENOENT || error == ECONNREFUSED) && std::chrono::duration<double>(Clock::now() - begin).count() < patience) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    error = connect();
  }
  KF_CHECK(error == 0, Code::communication, "cannot attach to {}: {}", folder, why_not(folder, error));
  const Frame hello = receive();
  KF_CHECK(hello.kind == Frame::Kind::hello && hello.text == kProtocol, Code::communication,
           "cannot attach to {}: the run is of another version of kf-host", folder);
}

/// 0, or the system's error.
int Client::connect() {
  if (!path_exists(folder_)) {
    return ENOENT;
  }
  const Address address(folder_);
  socket_ = Descriptor(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  return socket_.get() >= 0 && address.connect(socket_.get()) == 0 ? 0 : errno;
}

Frame Client::receive() {
  std::array<char, 65536> bytes{};
  for (;;) {
    if (std::optional<Frame> frame = in_.next()) {
      KF_CHECK(frame->kind != Frame::Kind::bye, Code::communication, "{}: {}", folder_, frame->text);
      return std::move(*frame);
    }
    const ssize_t got = ::recv(socket_.get(), bytes.data(), bytes.size(), 0);
    if (got < 0 && errno == EINTR) {
      continue;
    }
    KF_CHECK(got > 0, Code::communication, "{}: the run has ended before it answered", folder_);
    in_.add(std::string_view(bytes.data(), static_cast<std::size_t>(got)));
  }
}

Answer Client::ask(Frame::Kind kind, const std::string& text) {
  const std::string bytes = to_bytes({kind, text});
  for (std::size_t sent = 0; sent < bytes.size();) {
    const ssize_t now = ::send(socket_.get(), bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (now < 0 && errno != EINTR) {
      break;  // the run has gone; what it said at last can still be read
    }
    sent += static_cast<std::size_t>(std::max<ssize_t>(now, 0));
  }
  Answer out;
  for (;;) {
    Frame frame = receive();
    if (frame.kind == Frame::Kind::output) {
      out.output += frame.text;
    } else if (frame.kind == Frame::Kind::done) {
      return out;
    } else {
      KF_CHECK(frame.kind == Frame::Kind::error && frame.text.size() > 1 && frame.text[0] > '0' && frame.text[0] <= '9',
               Code::communication, "{}: an answer that is none", folder_);
      out.status = frame.text[0] - '0';
      out.error = frame.text.substr(1);
      return out;
    }
  }
}

}  // namespace kf::attach
