#pragma once
// HTTPS by libcurl: one request at a time, redirects followed here so that the token stays with the host it belongs to, failures that pass
// tried again.

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"

namespace kf::hub {

/// How patient requests are.
struct Patience {
  int tries = 6;           // in all
  double backoff = 1;      // seconds before the second try, doubled each time up to
  double longest = 60;     // this; a server's Retry-After counts instead where it is longer
  double silence = 30;     // seconds without a byte after which a try has failed
  int tries_to_reach = 2;  // in all, where nothing has come from the server yet and no connection can be made
};

struct Response {
  long status = 0;
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;                            // empty where a sink took it
};

/// A failure that may pass: no connection, silence, a body that ends early.
struct Passing {
  std::string reason;
  double retry_after = 0;    // seconds
  bool unreachable = false;  // no connection was made at all
};

/// The hub could not be reached, or failed however often it was tried.
class Unreachable : public Error {
 public:
  using Error::Error;
};

/// Takes what arrives; false ends the request. `status` is of the final response.
using Sink = std::function<bool(long status, std::string_view bytes)>;

class Http {
 public:
  /// `token` is sent to `endpoint`'s host only, "" for none. Thread-safe: every request is a connection of its own.
  Http(std::string endpoint, std::string token, Patience patience)
      : endpoint_(std::move(endpoint)), token_(std::move(token)), patience_(patience) {}

  const std::string& endpoint() const { return endpoint_; }
  const Patience& patience() const { return patience_; }
  bool has_token() const { return !token_.empty(); }

  /// The body as text, at most 256 MB. Tries again after time-outs, 408, 429 and 5xx. Throws Unreachable for the last failure and
  /// Code::data for every other status than 200.
  Response get(const std::string& url) const;

  /// One try. Connection failures and bodies that end early throw Passing; any status comes back. `from` > 0 asks for the bytes from there.
  Response try_get(const std::string& url, std::int64_t from, const Sink& sink) const;

  /// How often to try where tries fail so.
  int tries_for(const Passing& failure) const;
  /// Throws Unreachable for the last failure, with what can be done.
  [[noreturn]] void give_up(const std::string& url, const Passing& failure, int tried) const;
  /// Waits before try number `tried` + 1; `response` may name a time (Retry-After).
  void wait(int tried, double retry_after) const;

 private:
  std::string endpoint_;
  std::string token_;
  Patience patience_;
  mutable std::atomic<bool> reached_{false};  // something came from the server once: later failures may pass
};

/// Whether a status may pass: 408, 429, 500, 502, 503, 504.
bool may_pass(long status);
/// Seconds that a response asks to wait; 0 where it does not.
double retry_after(const Response& response);
/// Throws Code::data saying what a status means for a data set.
[[noreturn]] void refuse(const std::string& url, const Response& response, bool with_token);
/// Everything but letters, digits and "-._~" as %XX; with `slashes` a '/' stays.
std::string encoded(std::string_view text, bool slashes);

}  // namespace kf::hub
