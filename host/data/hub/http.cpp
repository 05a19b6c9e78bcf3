#include "data/hub/http.h"

#include <curl/curl.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <thread>

#include "core/credentials.h"
#include "core/error.h"
#include "core/log.h"
#include "core/text.h"

namespace kf::hub {
namespace {

constexpr int kRedirects = 10;
constexpr std::size_t kMostText = std::size_t{256} << 20;

struct FreeHandle {
  void operator()(CURL* handle) const { ::curl_easy_cleanup(handle); }
};
using Handle = std::unique_ptr<CURL, FreeHandle>;

struct FreeList {
  void operator()(curl_slist* list) const { ::curl_slist_free_all(list); }
};

/// What the callbacks see. They are called from C: nothing may throw out of them.
struct Transfer {
  CURL* handle = nullptr;
  const Sink* sink = nullptr;
  Response response;
  std::string failure;  // of the sink
  bool stopped = false;
};

std::size_t on_header(char* data, std::size_t size, std::size_t count, void* user) {
  Transfer& transfer = *static_cast<Transfer*>(user);
  const std::string_view line = trim(std::string_view(data, size * count));
  const std::size_t colon = line.find(':');
  if (line.starts_with("HTTP/")) {
    transfer.response.headers.clear();  // 100 Continue comes before the real ones
  } else if (colon != std::string_view::npos) {
    transfer.response.headers[lower(line.substr(0, colon))] = std::string(trim(line.substr(colon + 1)));
  }
  return size * count;
}

std::size_t on_body(char* data, std::size_t size, std::size_t count, void* user) {
  Transfer& transfer = *static_cast<Transfer*>(user);
  long status = 0;
  ::curl_easy_getinfo(transfer.handle, CURLINFO_RESPONSE_CODE, &status);
  if (status >= 300) {
    // A page that says why; its start is enough.
    transfer.response.body.append(data,
                                  std::min(size * count, std::size_t{4096} - std::min<std::size_t>(4096, transfer.response.body.size())));
    return size * count;
  }
  try {
    if ((*transfer.sink)(status, std::string_view(data, size * count))) {
      return size * count;
    }
    transfer.stopped = true;
  } catch (const std::exception& error) {
    transfer.failure = error.what();
  }
  return 0;
}

/// Certificates as Python's tools find them.
void set_certificates(CURL* handle) {
  for (const char* name : {"REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE"}) {
    const char* const file = std::getenv(name);
    if (file != nullptr && *file != '\0') {
      ::curl_easy_setopt(handle, CURLOPT_CAINFO, file);
      return;
    }
  }
}

/// "https://host:port" of an address, in lower case; who calls is no part of it.
std::string origin_of(const std::string& url) {
  const std::string plain = without_credentials(url);
  const std::size_t scheme = plain.find("://");
  const std::size_t end = scheme == std::string::npos ? std::string::npos : plain.find_first_of("/?#", scheme + 3);
  return lower(plain.substr(0, end));
}

void set_options(CURL* handle, const std::string& url, std::int64_t from, double silence, Transfer& transfer) {
  ::curl_easy_setopt(handle, CURLOPT_URL, url.c_str());
  ::curl_easy_setopt(handle, CURLOPT_PROTOCOLS_STR, "http,https");
  ::curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
  ::curl_easy_setopt(handle, CURLOPT_FOLLOWLOCATION, 0L);  // done here, for the token's sake
  ::curl_easy_setopt(handle, CURLOPT_USERAGENT, "kf-host");
  ::curl_easy_setopt(handle, CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(std::max(1.0, std::min(silence, 5.0)) * 1000));
  ::curl_easy_setopt(handle, CURLOPT_LOW_SPEED_LIMIT, 1L);
  ::curl_easy_setopt(handle, CURLOPT_LOW_SPEED_TIME, static_cast<long>(std::max(1.0, std::ceil(silence))));
  ::curl_easy_setopt(handle, CURLOPT_HEADERFUNCTION, on_header);
  ::curl_easy_setopt(handle, CURLOPT_HEADERDATA, &transfer);
  ::curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, on_body);
  ::curl_easy_setopt(handle, CURLOPT_WRITEDATA, &transfer);
  if (from > 0) {
    // As a range, not as libcurl's "resume": that fails where a server gives the whole again, which is as good.
    ::curl_easy_setopt(handle, CURLOPT_RANGE, (std::to_string(from) + "-").c_str());
  }
  set_certificates(handle);
}

bool is_redirect(long status) { return status == 301 || status == 302 || status == 303 || status == 307 || status == 308; }

}  // namespace

bool may_pass(long status) { return status == 408 || status == 429 || status == 500 || status == 502 || status == 503 || status == 504; }

double retry_after(const Response& response) {
  const auto at = response.headers.find("retry-after");
  if (at == response.headers.end()) {
    return 0;
  }
  double seconds = 0;
  const std::string& text = at->second;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error == std::errc() && end == text.data() + text.size()) {
    return std::max(0.0, seconds);
  }
  const std::time_t date = ::curl_getdate(text.c_str(), nullptr);
  return date < 0 ? 0 : std::max(0.0, std::difftime(date, std::time(nullptr)));
}

void refuse(const std::string& url, const Response& response, bool with_token) {
  const std::string shown = shown_url(url);
  const char* const what = url.find("/datasets/") == std::string::npos ? "model" : "data set";
  const auto message = response.headers.find("x-error-message");
  const std::string said = message == response.headers.end() ? "" : " (" + message->second + ")";
  if (response.status == 401 || response.status == 403) {
    fail(Code::data, "{}: status {}{}: the {} is private or gated, or there is none of this name; {}", shown, response.status, said, what,
         with_token ? "the token (HF_TOKEN or its file) does not open it" : "set HF_TOKEN to a token that may read it");
  }
  KF_CHECK(response.status != 404, Code::data, "{}: status 404{}: there is no such {}, revision or file", shown, said, what);
  fail(Code::data, "{}: status {}{}", shown, response.status, said);
}

std::string encoded(std::string_view text, bool slashes) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       std::string_view("-._~").find(c) != std::string_view::npos;
    if (plain || (slashes && c == '/')) {
      out += c;
    } else {
      out += {'%', digits[byte >> 4], digits[byte & 15]};
    }
  }
  return out;
}

Response Http::try_get(const std::string& url, std::int64_t from, const Sink& sink) const {
  static const CURLcode ready = ::curl_global_init(CURL_GLOBAL_DEFAULT);
  KF_CHECK(ready == CURLE_OK, Code::other, "libcurl cannot be used: {}", ::curl_easy_strerror(ready));
  std::string at = url;
  for (int hop = 0; hop <= kRedirects; ++hop) {
    const Handle handle(::curl_easy_init());
    KF_CHECK(handle != nullptr, Code::other, "libcurl gives no connection");
    Transfer transfer;
    transfer.handle = handle.get();
    transfer.sink = &sink;
    set_options(handle.get(), at, from, patience_.silence, transfer);
    std::unique_ptr<curl_slist, FreeList> list;
    if (!token_.empty() && origin_of(at) == origin_of(endpoint_)) {
      list.reset(::curl_slist_append(nullptr, ("Authorization: Bearer " + token_).c_str()));
      ::curl_easy_setopt(handle.get(), CURLOPT_HTTPHEADER, list.get());
    }
    const CURLcode result = ::curl_easy_perform(handle.get());
    ::curl_easy_getinfo(handle.get(), CURLINFO_RESPONSE_CODE, &transfer.response.status);
    KF_CHECK(transfer.failure.empty(), Code::data, "{}", transfer.failure);
    if (result != CURLE_OK && !transfer.stopped) {
      curl_off_t connected = 0;
      ::curl_easy_getinfo(handle.get(), CURLINFO_CONNECT_TIME_T, &connected);
      const bool certificate = result == CURLE_PEER_FAILED_VERIFICATION || result == CURLE_SSL_CACERT_BADFILE;
      KF_CHECK(!certificate, Code::data, "{}: {}; SSL_CERT_FILE or REQUESTS_CA_BUNDLE names the certificates to trust", origin_of(at),
               ::curl_easy_strerror(result));
      // One that takes the connection and then says nothing is out of reach, too.
      const bool silent = result == CURLE_OPERATION_TIMEDOUT && transfer.response.status == 0;
      throw Passing{format("{}: {}", origin_of(at), ::curl_easy_strerror(result)), 0, connected == 0 || silent};
    }
    reached_ = true;
    if (!is_redirect(transfer.response.status)) {
      return std::move(transfer.response);
    }
    const char* next = nullptr;
    ::curl_easy_getinfo(handle.get(), CURLINFO_REDIRECT_URL, &next);
    KF_CHECK(next != nullptr, Code::data, "{}: status {} without a place to go to", shown_url(at), transfer.response.status);
    KF_CHECK(!at.starts_with("https://") || std::string_view(next).starts_with("https://"), Code::data,
             "{}: redirected to {}, which is not https; that is not followed", shown_url(at), shown_url(next));
    at = next;
  }
  fail(Code::data, "{}: more than {} redirects", shown_url(url), kRedirects);
}

void Http::wait(int tried, double asked) const {
  const double own = std::min(patience_.longest, patience_.backoff * std::pow(2.0, tried - 1));
  std::this_thread::sleep_for(std::chrono::duration<double>(std::min(std::max(own, asked), 600.0)));
}

int Http::tries_for(const Passing& failure) const {
  return failure.unreachable && !reached_ ? std::min(patience_.tries_to_reach, patience_.tries) : patience_.tries;
}

void Http::give_up(const std::string& url, const Passing& failure, int tried) const {
  const std::string remedy = failure.unreachable ? "\n  is there a network, or a proxy to name in https_proxy? HF_ENDPOINT names another "
                                                   "hub, and HF_HUB_OFFLINE=1 reads what is cached"
                                                 : "";
  throw Unreachable(Code::data, format("{}: {} (tried {} times){}", shown_url(url), failure.reason, tried, remedy));
}

Response Http::get(const std::string& url) const {
  for (int tried = 1;; ++tried) {
    Passing failure;
    std::string body;
    try {
      Response response = try_get(url, 0, [&](long /*status*/, std::string_view bytes) {
        body.append(bytes);
        return body.size() <= kMostText;
      });
      KF_CHECK(body.size() <= kMostText, Code::data, "{}: an answer of more than {} bytes", shown_url(url), kMostText);
      if (response.status == 200) {
        response.body = std::move(body);
        return response;
      }
      if (!may_pass(response.status)) {
        refuse(url, response, has_token());
      }
      failure = {"status " + std::to_string(response.status), retry_after(response)};
    } catch (const Passing& passing) {
      failure = passing;
    }
    const int tries = tries_for(failure);
    if (tried >= tries) {
      give_up(url, failure, tried);
    }
    log::warn("{}: {}; trying again ({} of {})", shown_url(url), failure.reason, tried + 1, tries);
    wait(tried, failure.retry_after);
  }
}

}  // namespace kf::hub
