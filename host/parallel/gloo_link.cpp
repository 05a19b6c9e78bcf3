#include "parallel/gloo_link.h"

#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include <algorithm>

#include "parallel/no_pipe_signal.h"
#include "parallel/words.h"

namespace kf {

struct Message {
  c10::intrusive_ptr<c10d::Work> work;
  std::int64_t peer;
};

namespace {

[[noreturn]] void fail_link(std::int64_t peer, const std::exception& e) {
  const std::string text = first_line(e.what());
  throw LinkFault{peer, text.find("imed out") != std::string::npos, text};
}

// Bytes of any type, as one that Gloo knows.
std::vector<at::Tensor> bytes_of(const at::Tensor& t) { return {t.detach().view({-1}).view(at::kByte)}; }

}  // namespace

GlooLink::GlooLink(const c10::intrusive_ptr<c10d::Store>& store, std::int64_t rank, std::int64_t size, std::chrono::milliseconds timeout,
                   const std::string& address) {
  const NoPipeSignal no_signal;  // here and in Gloo's threads
  auto options = c10d::ProcessGroupGloo::Options::create(timeout);
  options->threads = 1;  // of its own collectives, which we do not use
  options->devices.push_back(address.empty() ? c10d::ProcessGroupGloo::createDefaultDevice()
                                             : c10d::ProcessGroupGloo::createDeviceForHostname(address));
  gloo_ = c10::make_intrusive<c10d::ProcessGroupGloo>(store, static_cast<int>(rank), static_cast<int>(size), options);
}

GlooLink::~GlooLink() { close(); }

std::shared_ptr<Message> GlooLink::begin(const at::Tensor& t, std::int64_t peer, int tag, bool sends) {
  if (t.numel() == 0) {
    return nullptr;
  }
  std::vector<at::Tensor> bytes = bytes_of(t);
  const NoPipeSignal no_signal;
  const std::lock_guard lock(mutex_);
  if (!gloo_) {
    throw LinkFault{peer, false, "closed"};
  }
  try {
    const auto other = static_cast<int>(peer);
    auto message = std::make_shared<Message>(Message{sends ? gloo_->send(bytes, other, tag) : gloo_->recv(bytes, other, tag), peer});
    under_way_.insert(message);
    return message;
  } catch (const std::exception& e) {
    fail_link(peer, e);
  }
}

std::shared_ptr<Message> GlooLink::send(const at::Tensor& t, std::int64_t to, int tag) { return begin(t, to, tag, true); }
std::shared_ptr<Message> GlooLink::receive(const at::Tensor& t, std::int64_t from, int tag) { return begin(t, from, tag, false); }

void GlooLink::wait(const std::shared_ptr<Message>& message, Clock::time_point deadline) {
  if (message == nullptr) {
    return;
  }
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
  bool arrived = false;
  try {
    arrived = message->work->wait(std::max(left, std::chrono::milliseconds(1)));  // 0 would be for ever
  } catch (const std::exception& e) {
    fail_link(message->peer, e);
  }
  const std::lock_guard lock(mutex_);
  under_way_.erase(message);
  if (!arrived) {
    throw LinkFault{message->peer, false, "closed here"};
  }
}

void GlooLink::close() noexcept {
  std::set<std::shared_ptr<Message>> messages;
  c10::intrusive_ptr<c10d::ProcessGroupGloo> gloo;
  {
    const std::lock_guard lock(mutex_);
    messages.swap(under_way_);
    gloo.swap(gloo_);
  }
  const NoPipeSignal no_signal;
  for (const auto& message : messages) {
    message->work->abort();
  }
  messages.clear();
  gloo.reset();
}

}  // namespace kf
