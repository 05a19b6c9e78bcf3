#include "train/loop/inbox.h"

namespace kf {

std::vector<Message> SignalInbox::take() {
  if (told_ || !StopSignals::requested()) {
    return {};
  }
  told_ = true;
  return {{Message::Kind::stop}};
}

}  // namespace kf
