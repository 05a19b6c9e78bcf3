#include "report/serve/server.h"

#include <httplib.h>
#include <sys/socket.h>

#include <atomic>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <set>
#include <utility>

#include "core/error.h"
#include "core/log.h"
#include "http/task_pool.h"
#include "report/page/json_writer.h"
#include "report/page/page.h"
#include "report/page/run_data.h"
#include "report/page/sweep_data.h"
#include "report/serve/guard.h"
#include "report/serve/run_watch.h"
#include "report/serve/steer.h"

namespace kf::report {
namespace {

constexpr const char* kLoopback = "127.0.0.1";
constexpr int kThreads = 64;              // one a connection
constexpr std::size_t kMostWaiting = 64;  // connections without a thread; further ones wait to be accepted,
constexpr std::size_t kMany = 32;         // and from here on all are refused
constexpr int kSpare = 256;               // files that this may need: of connections, and of the runs that they ask for
constexpr int kMostFollowers = 32;        // connections that stay: the others are for pages
constexpr std::size_t kMostSent = 4096;   // bytes that a request may carry
constexpr time_t kPatience = 5;           // seconds, for a client that reads or writes slowly
constexpr auto kLook = std::chrono::milliseconds(1000);
constexpr auto kSilence = std::chrono::seconds(10);  // then a word shows whether the other end is still there

// The library packs what it knows as text in the slowest way that brotli has, which takes longer than a loopback gains: types that it does
// not know are sent as they are. (Types are compared without regard to case.)
constexpr const char* kHtml = "Text/html; charset=utf-8";
constexpr const char* kJson = "application/vnd.kf-host+json";
constexpr const char* kPlain = "Text/plain; charset=utf-8";

/// Not SO_REUSEPORT, the library's own choice: a second server would share the port without a word.
void set_options(int socket) {
  const int yes = 1;
  ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
}

void refuse(httplib::Response& response, int status, const std::string& words) {
  response.status = status;
  response.set_content(words + '\n', kPlain);
}

/// A step of a query; 0 where it is none.
std::int64_t number_of(const httplib::Request& request, const std::string& name) {
  const std::string text = request.get_param_value(name);
  std::int64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

}  // namespace

class Server::Http {
 public:
  Http(fs::path root, bool steers) : root_(std::move(root)), steers_(steers), watch_(root_), token_(random_digits()) { set_up(); }

  void bind(int port) {
    KF_CHECK(!http::is_crowded(kSpare), Code::other, "too many files are open: this needs {} more, and all must be below {}", kSpare,
             FD_SETSIZE);
    errno = 0;
    const int taken = port == 0 ? server_.bind_to_any_port(kLoopback) : (server_.bind_to_port(kLoopback, port) ? port : -1);
    const int reason = errno;
    KF_CHECK(taken > 0, Code::config, "port {} of {} cannot be taken ({}); --port N names another one, --port 0 takes one that is free",
             port, kLoopback, std::strerror(reason));
    port_ = taken;
  }
  std::string address() const { return format("http://{}:{}/?token={}", kLoopback, port_, token_); }
  int port() const { return port_; }
  void serve() {
    {
      const std::lock_guard lock(mutex_);
      if (stopping_) {
        return;
      }
      serving_ = true;
    }
    server_.listen_after_bind();
    const std::lock_guard lock(mutex_);
    serving_ = false;
    wake_.notify_all();
  }
  void stop() {
    std::unique_lock lock(mutex_);
    stopping_ = true;
    wake_.notify_all();
    // The library forgets a stop that comes before it has begun to listen.
    while (serving_) {
      server_.stop();
      wake_.wait_for(lock, std::chrono::milliseconds(10), [this] { return !serving_; });
    }
  }

 private:
  using Handled = httplib::Server::HandlerResponse;

  void set_up() {
    server_.new_task_queue = [this] { return pool_.queue(/*joins=*/true); };
    server_.set_socket_options(set_options);
    server_.set_payload_max_length(kMostSent);
    server_.set_read_timeout(kPatience);
    server_.set_write_timeout(kPatience);
    server_.set_keep_alive_timeout(2);
    server_.set_default_headers({{"Cache-Control", "no-store"},
                                 {"Cross-Origin-Resource-Policy", "same-origin"},
                                 {"Referrer-Policy", "no-referrer"},
                                 {"X-Content-Type-Options", "nosniff"},
                                 {"X-Frame-Options", "DENY"}});
    server_.set_pre_routing_handler([this](const auto& request, auto& response) { return admit(request, response); });
    server_.set_exception_handler(
        [](const auto& /*request*/, auto& response, const std::exception_ptr& thrown) { fault(response, thrown); });
    server_.set_error_handler([](const httplib::Request& /*request*/, httplib::Response& response) {
      if (response.body.empty()) {
        const char* const words =
            response.status == 404 ? "there is nothing here; the page is at /" : "this is no request that can be answered";
        response.set_content(format("{}: {}\n", response.status, words), kPlain);
      }
    });
    server_.Get("/", [this](const auto& /*request*/, auto& response) { page(response); });
    server_.Get("/run", [this](const auto& request, auto& response) { run(request, response); });
    server_.Get("/sweeps", [this](const auto& /*request*/, auto& response) { sweeps(response); });
    server_.Post("/steer", [this](const httplib::Request& request, httplib::Response& response) { steer_run(request, response); });
    server_.Get("/events", [this](const auto& /*request*/, auto& response) { events(response); });
  }

  Handled admit(const httplib::Request& request, httplib::Response& response) {
    const bool crowded = http::is_crowded(kSpare - kThreads);
    if (crowded || pool_.waiting() > kMany) {
      const char* const why = crowded ? "too many files are open" : "too many requests wait for an answer";
      if (!warned_.exchange(true)) {
        log::warn("{}: requests are refused until there are fewer", why);
      }
      refuse(response, 503, format("503: {}; try it later", why));
      return Handled::Handled;
    }
    if (request.get_header_value_count("Host") != 1 || !is_loopback_host(request.get_header_value("Host"))) {
      refuse(response, 403, "403: this server answers on 127.0.0.1 and localhost alone");
      return Handled::Handled;
    }
    if (!same_secret(request.get_param_value("token"), token_)) {
      refuse(response, 403, "403: the token is missing or wrong; open the whole address that `kf-host serve` has printed");
      return Handled::Handled;
    }
    const bool steering = steers_ && request.method == "POST" && request.path == "/steer";
    if (request.method != "GET" && request.method != "HEAD" && !steering) {
      refuse(response, 405,
             steers_ ? "405: runs are steered by POST of /steer" : "405: nothing can be changed here; --steer lets runs be steered");
      return Handled::Handled;
    }
    if (steering && !request.has_header("Content-Length") && !request.has_header("Transfer-Encoding")) {
      refuse(response, 411, "411: a request says how long its body is, which may be empty: Content-Length: 0 (curl: -d '')");
      return Handled::Handled;  // the library would wait for one until its patience ends
    }
    return Handled::Unhandled;
  }

  static void fault(httplib::Response& response, const std::exception_ptr& thrown) {
    try {
      std::rethrow_exception(thrown);
    } catch (const std::exception& e) {
      refuse(response, 500, format("500: {}", e.what()));
    }
  }

  void page(httplib::Response& response) {
    JsonWriter json;
    const std::shared_ptr<const RunWatch::Snapshot> snapshot = watch_.now();
    json.begin_object().member("live", true).member("steers", steers_).key("runs").members(snapshot->list);
    write_numbers(json, {});
    write_defaults(json);
    write_sweeps_of(json, *snapshot);
    json.end_object();
    const std::string nonce = random_digits();
    response.set_header("Content-Security-Policy", content_policy(nonce, true) + "; frame-ancestors 'none'");
    response.set_content(page_html(root_.filename().string(), json.text(), nonce, true), kHtml);
  }

  /// "sweeps" of the runs that are trials, and "problems" in reading them.
  static void write_sweeps_of(JsonWriter& json, const RunWatch::Snapshot& snapshot) {
    std::set<fs::path> sweeps;
    for (const ShownRun& run : snapshot.runs) {
      sweeps.insert(sweep_of(run.summary.folder));
    }
    sweeps.erase(fs::path());
    std::vector<std::string> problems;
    write_sweeps(json, {sweeps.begin(), sweeps.end()}, problems);
    json.list("problems", problems);
  }

  void sweeps(httplib::Response& response) {
    JsonWriter json;
    json.begin_object();
    write_sweeps_of(json, *watch_.now());
    json.end_object();
    response.set_content(json.text(), kJson);
  }

  void run(const httplib::Request& request, httplib::Response& response) {
    const std::string key = request.get_param_value("key");
    const std::optional<std::string> json =
        request.has_param("from") ? watch_.stretch(key, {number_of(request, "from"), number_of(request, "to")}) : watch_.details(key);
    if (!json) {
      refuse(response, 404, "404: there is no such run; it may have been moved or removed");
      return;
    }
    response.set_content(*json, kJson);
  }

  void steer_run(const httplib::Request& request, httplib::Response& response) {
    const std::optional<std::string> chunk = steering_chunk(request.get_param_value("wish"), request.get_param_value("value"));
    const std::optional<fs::path> folder = watch_.folder(request.get_param_value("key"));
    if (!chunk || !folder) {
      refuse(response, chunk ? 404 : 400,
             chunk ? "404: there is no such run" : "400: a wish is save, eval, stop, or lr with a factor from 1e-6 to 1000");
      return;
    }
    try {
      steer(*folder, *chunk);
      response.status = 204;
    } catch (const Error& e) {
      refuse(response, 409, e.what());
    }
  }

  void events(httplib::Response& response) {
    if (followers_.fetch_add(1) >= kMostFollowers) {
      --followers_;
      refuse(response, 503, "503: too many pages follow these runs; close some");
      return;
    }
    struct Follower {
      std::uint64_t seen = 0;
      std::chrono::steady_clock::time_point spoken = {};
    };
    response.set_chunked_content_provider(
        "text/event-stream",
        [this, follower = std::make_shared<Follower>()](std::size_t /*offset*/, httplib::DataSink& sink) {
          if (wait_if(follower->seen != 0)) {
            sink.done();
            return true;
          }
          const std::shared_ptr<const RunWatch::Snapshot> snapshot = watch_.now();
          const auto now = std::chrono::steady_clock::now();
          std::string words;
          if (snapshot->number != follower->seen) {
            words = format("event: runs\ndata: {\"runs\":{}}\n\n", snapshot->list);
          } else if (now - follower->spoken > kSilence) {
            words = ": nothing new\n\n";
          }
          follower->seen = snapshot->number;
          follower->spoken = words.empty() ? follower->spoken : now;
          return sink.is_writable() && (words.empty() || sink.write(words.data(), words.size()));
        },
        [this](bool /*success*/) { --followers_; });
  }

  /// Waits until it is time to look again, if it is to wait; whether the server ends.
  bool wait_if(bool wait) {
    std::unique_lock lock(mutex_);
    if (wait) {
      wake_.wait_for(lock, kLook, [this] { return stopping_; });
    }
    return stopping_;
  }

  const fs::path root_;
  const bool steers_;
  RunWatch watch_;
  const std::string token_;
  int port_ = 0;
  std::atomic<int> followers_ = 0;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  bool serving_ = false;
  std::atomic<bool> warned_ = false;
  const http::TaskPool pool_{kThreads, kMostWaiting};
  httplib::Server server_;  // its threads use all of the others
};

Server::Server(fs::path root, bool steers) : http_(std::make_unique<Http>(std::move(root), steers)) {}
Server::~Server() = default;
void Server::bind(int port) { http_->bind(port); }
std::string Server::address() const { return http_->address(); }
int Server::port() const { return http_->port(); }
void Server::serve() { http_->serve(); }
void Server::stop() { http_->stop(); }

}  // namespace kf::report
