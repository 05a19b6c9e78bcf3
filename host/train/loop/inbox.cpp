#include "train/loop/inbox.h"

namespace kf {

std::vector<RunMessage> SignalInbox::take() {
  if (told_ || !StopSignals::requested()) {
    return {};
  }
  told_ = true;
  return {{RunMessage::Kind::stop}};
}

}  // namespace kf
