#include "attach/server.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <string_view>
#include <system_error>
#include <utility>

#include "core/error.h"
#include "core/log.h"

namespace kf::attach {
namespace {

constexpr std::size_t kMostClients = 16;
constexpr auto kFarewell = std::chrono::seconds(1);  // for clients that read slowly, at the end

std::string reason() { return std::generic_category().message(errno); }

Descriptor new_socket() {
  Descriptor out(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  KF_CHECK(out.get() >= 0, Code::other, "cannot make a socket: {}", reason());
  return out;
}

/// Makes room for the socket: what a killed process has left is removed.
void clear_name(const Address& address, const fs::path& folder) {
  struct stat there {};
  if (::lstat(address.path(), &there) != 0) {
    return;
  }
  KF_CHECK(S_ISSOCK(there.st_mode), Code::other, "{} is in the way: it is no socket", folder / kSocket);
  const Descriptor probe = new_socket();
  if (address.connect(probe.get()) == 0 || errno == EAGAIN) {
    fail(Code::other, "process {} listens on {} already", peer_of(probe.get()).process, folder / kSocket);
  }
  KF_CHECK(::unlink(address.path()) == 0, Code::other, "cannot remove the old {}: {}", folder / kSocket, reason());
}

/// Signals are for the threads that wait for them.
std::thread without_signals(auto body) {
  sigset_t all, before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread out(std::move(body));
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return out;
}

}  // namespace

Server::Server(const fs::path& folder, std::function<void(std::int64_t client)> gone)
    : gone_(std::move(gone)), address_(folder), listener_(new_socket()), woken_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  KF_CHECK(woken_.get() >= 0, Code::other, "cannot make an eventfd: {}", reason());
  listen(folder);
  thread_ = without_signals([this] { serve(); });
}

Server::~Server() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  wake();
  thread_.join();
  struct stat there {};
  if (::lstat(address_.path(), &there) == 0 && std::pair<std::uint64_t, std::uint64_t>(there.st_dev, there.st_ino) == file_) {
    ::unlink(address_.path());  // ours, and not that of a later process
  }
}

void Server::listen(const fs::path& folder) {
  clear_name(address_, folder);
  KF_CHECK(address_.bind(listener_.get()) == 0, Code::other, "cannot make {}: {}", folder / kSocket, reason());
  struct stat there {};
  // Before anybody can connect.
  const bool ours = ::chmod(address_.path(), S_IRUSR | S_IWUSR) == 0 && ::lstat(address_.path(), &there) == 0;
  KF_CHECK(ours, Code::other, "cannot keep others out of {}: {}", folder / kSocket, reason());
  file_ = {there.st_dev, there.st_ino};
  KF_CHECK(::listen(listener_.get(), static_cast<int>(kMostClients)) == 0, Code::other, "cannot listen on {}: {}", folder / kSocket,
           reason());
}

void Server::wake() const {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(woken_.get(), &one, sizeof(one));  // it is woken already where this fails
}

std::vector<Said> Server::take() {
  if (!any_.load(std::memory_order_relaxed)) {
    return {};
  }
  const std::lock_guard lock(mutex_);
  any_ = false;
  return std::exchange(said_, {});
}

void Server::answer(std::int64_t client, const Answer& answer) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = clients_.find(client);
    if (found == clients_.end()) {
      return;
    }
    Client& one = found->second;
    send(one, {Frame::Kind::output, answer.output.substr(0, kMostText)});
    if (answer.error.empty()) {
      send(one, {Frame::Kind::done, ""});
    } else {
      send(one, {Frame::Kind::error, std::to_string(answer.status) + answer.error.substr(0, kMostText - 1)});
    }
    one.waits = false;
  }
  wake();
}

bool Server::has(std::int64_t client) const {
  const std::lock_guard lock(mutex_);
  return clients_.contains(client);
}

void Server::set_last_words(const std::string& words) {
  const std::lock_guard lock(mutex_);
  last_words_ = words.substr(0, kMostText);
}

void Server::serve() {
  std::chrono::steady_clock::time_point until;
  for (bool told = false;; serve_once()) {
    const std::lock_guard lock(mutex_);
    if (ends_ && !std::exchange(told, true)) {
      until = std::chrono::steady_clock::now() + kFarewell;
      for (auto& [number, client] : clients_) {
        send(client, {Frame::Kind::bye, last_words_});
        client.leaves = true;
      }
    }
    if (told && (clients_.empty() || std::chrono::steady_clock::now() > until)) {
      return;
    }
  }
}

/// Waits until something can be done, and does it.
void Server::serve_once() {
  std::vector<pollfd> waits;
  std::vector<std::int64_t> numbers;
  int most = -1;
  {
    const std::lock_guard lock(mutex_);
    waits.push_back({woken_.get(), POLLIN, 0});
    waits.push_back({ends_ ? -1 : listener_.get(), POLLIN, 0});
    for (const auto& [number, client] : clients_) {
      const int in = client.waits || client.leaves ? POLLRDHUP : POLLIN | POLLRDHUP;
      waits.push_back({client.socket.get(), static_cast<short>(in | (client.out.empty() ? 0 : POLLOUT)), 0});
      numbers.push_back(number);
    }
    most = ends_ ? 50 : -1;  // milliseconds
  }
  ::poll(waits.data(), waits.size(), most);
  const std::lock_guard lock(mutex_);
  std::uint64_t count = 0;
  [[maybe_unused]] const auto got = ::read(woken_.get(), &count, sizeof(count));
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (!hear(clients_.at(numbers[i]), waits[i + 2].revents)) {
      drop(numbers[i]);
    }
  }
  for (auto& [number, client] : clients_) {
    take_wish(number, client);
  }
  // What has just been said to a client is sent at once, whatever poll waited for.
  for (auto one = clients_.begin(); one != clients_.end();) {
    Client& client = one->second;
    const ssize_t sent = client.out.empty() ? 0 : ::send(client.socket.get(), client.out.data(), client.out.size(), MSG_NOSIGNAL);
    const bool gone = sent < 0 && errno != EAGAIN && errno != EINTR;
    client.out.erase(0, static_cast<std::size_t>(std::max<ssize_t>(sent, 0)));
    const auto next = std::next(one);
    if (gone || (client.leaves && client.out.empty())) {
      drop(one->first);
    }
    one = next;
  }
  if ((waits[1].revents & POLLIN) != 0) {
    welcome();
  }
}

void Server::welcome() {
  Descriptor socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (socket.get() < 0) {
    if (errno == EMFILE || errno == ENFILE || errno == ENOMEM) {  // until the process has room for one more
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    return;  // else it has gone away
  }
  const Peer peer = peer_of(socket.get());
  Client client;
  client.socket = std::move(socket);
  send(client, {Frame::Kind::hello, kProtocol});
  if (peer.user != static_cast<std::int64_t>(::geteuid()) && peer.user != 0) {
    log::warn("attach: process {} of user {} was refused", peer.process, peer.user);
    send(client, {Frame::Kind::bye, "the run belongs to another user"});
    client.leaves = true;
  } else if (clients_.size() >= kMostClients) {
    send(client, {Frame::Kind::bye, format("{} prompts are attached to the run, which are the most", kMostClients)});
    client.leaves = true;
  }
  clients_.emplace(++last_, std::move(client));
  wake();
}

/// Reads what the client has sent, unless its last wish is not answered. False where it has gone away.
bool Server::hear(Client& client, int events) {
  if (client.waits || client.leaves) {
    return (events & (POLLRDHUP | POLLHUP | POLLERR)) == 0;
  }
  if (events == 0) {
    return true;
  }
  std::array<char, 65536> bytes{};
  const ssize_t got = ::recv(client.socket.get(), bytes.data(), bytes.size(), 0);
  if (got > 0) {
    client.in.add(std::string_view(bytes.data(), static_cast<std::size_t>(got)));
  }
  return got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR));
}

/// The next thing that the client wants, once its bytes are there.
void Server::take_wish(std::int64_t number, Client& client) {
  if (client.waits || client.leaves) {
    return;
  }
  try {
    if (std::optional<Frame> frame = client.in.next()) {
      KF_CHECK(frame->kind == Frame::Kind::chunk || frame->kind == Frame::Kind::reload, Code::communication,
               "a frame of the kind '{}' is none that a client sends", static_cast<char>(frame->kind));
      client.waits = true;
      said_.push_back({number, frame->kind, std::move(frame->text)});
      any_ = true;
    }
  } catch (const Error& e) {
    send(client, {Frame::Kind::bye, e.what()});
    client.leaves = true;
  }
}

void Server::drop(std::int64_t number) {
  if (gone_ && clients_.at(number).waits) {
    gone_(number);
  }
  clients_.erase(number);
  std::erase_if(said_, [number](const Said& one) { return one.client == number; });  // nobody waits for it any more
}

}  // namespace kf::attach
