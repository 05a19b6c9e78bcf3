#include "report/serve/steer.h"

#include <charconv>

#include "attach/client.h"
#include "core/error.h"

namespace kf::report {

std::optional<std::string> steering_chunk(const std::string& wish, const std::string& value) {
  if (wish == "save") {
    return "ctx:request_save()";
  }
  if (wish == "eval") {
    return "ctx:request_eval()";
  }
  if (wish == "stop") {
    return "ctx:stop('asked for on the page of kf-host serve')";
  }
  double factor = 0;
  const char* const end = value.data() + value.size();
  const auto [rest, fault] = std::from_chars(value.data(), end, factor);
  if (wish != "lr" || fault != std::errc() || rest != end || !(factor >= 1e-6 && factor <= 1000)) {
    return std::nullopt;
  }
  return format("ctx:set_lr_scale({})", factor);
}

void steer(const fs::path& folder, const std::string& chunk) {
  attach::Client client(folder);
  const attach::Answer answer = client.ask(attach::Frame::Kind::chunk, chunk);
  KF_CHECK(answer.error.empty(), Code::communication, "{}", answer.error);
}

}  // namespace kf::report
