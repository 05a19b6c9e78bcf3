#include "data/file/decompress.h"

#include <zlib.h>
#include <zstd.h>

#include <array>
#include <limits>
#include <vector>

#include "core/error.h"

namespace kf {
namespace {

constexpr std::size_t kInput = std::size_t{1} << 18;

/// What both have in common: the compressed bytes at hand, and what is said when there are too few.
class Compressed : public ByteStream {
 public:
  Compressed(const fs::path& path, const char* name) : file_(path), name_(name), input_(kInput) {
    KF_CHECK(file_.file().size() > 0, Code::data, "{} is empty (0 bytes): no {} stream", path, name);
  }
  std::int64_t position() const override { return file_.position(); }

 protected:
  std::size_t fill() { return file_.read(input_.data(), input_.size()); }
  char* input() { return input_.data(); }
  const fs::path& path() const { return file_.file().path(); }
  [[noreturn]] void ends_early() const {
    fail(Code::data,
         "{}: the {} stream ends early: the file has {} bytes and stops in the middle of the data ({} bytes decompressed); "
         "it was cut off, as by a broken copy; fetch it again",
         path(), name_, file_.file().size(), produced_);
  }
  [[noreturn]] void broken(const char* reason) const {
    fail(Code::data, "{}: broken {} data near byte {} of {}: {}", path(), name_, position(), file_.file().size(), reason);
  }
  std::size_t produced(std::size_t bytes) {
    produced_ += bytes;
    return bytes;
  }

 private:
  FileStream file_;
  const char* name_;
  std::vector<char> input_;
  std::size_t produced_ = 0;
};

class GzipStream final : public Compressed {
 public:
  explicit GzipStream(const fs::path& path) : Compressed(path, "gzip") {
    // 16: a gzip header is expected, not zlib's own.
    KF_CHECK(::inflateInit2(&state_, 16 + MAX_WBITS) == Z_OK, Code::other, "no memory to decompress {}", path);
  }
  ~GzipStream() override { ::inflateEnd(&state_); }
  GzipStream(const GzipStream&) = delete;
  GzipStream& operator=(const GzipStream&) = delete;

  std::size_t read(char* to, std::size_t size) override {
    state_.next_out = reinterpret_cast<Bytef*>(to);
    state_.avail_out = static_cast<uInt>(std::min<std::size_t>(size, std::numeric_limits<uInt>::max()));
    const std::size_t room = state_.avail_out;
    while (state_.avail_out == room && !ended_) {
      step();
    }
    return produced(room - state_.avail_out);
  }

 private:
  void step() {
    if (state_.avail_in == 0) {
      state_.avail_in = static_cast<uInt>(fill());
      state_.next_in = reinterpret_cast<Bytef*>(input());
      if (state_.avail_in == 0) {
        if (inside_) {
          ends_early();
        }
        ended_ = true;
        return;
      }
    }
    if (!inside_ && !begin_member()) {
      return;
    }
    const int result = ::inflate(&state_, Z_NO_FLUSH);
    if (result == Z_STREAM_END) {
      ::inflateReset(&state_);
      inside_ = false;
    } else if (result != Z_OK && result != Z_BUF_ERROR) {
      broken(state_.msg != nullptr ? state_.msg : "the checksum does not fit");
    }
  }

  /// Between members: zero bytes pad a file to whole blocks (tapes, `dd`), and are passed over.
  bool begin_member() {
    while (members_ > 0 && state_.avail_in > 0 && *state_.next_in == 0) {
      ++state_.next_in;
      --state_.avail_in;
    }
    if (state_.avail_in == 0) {
      return false;
    }
    inside_ = true;
    ++members_;
    return true;
  }

  z_stream state_{};
  bool inside_ = false;
  bool ended_ = false;
  std::int64_t members_ = 0;
};

class ZstdStream final : public Compressed {
 public:
  explicit ZstdStream(const fs::path& path) : Compressed(path, "zstd"), state_(::ZSTD_createDStream(), ::ZSTD_freeDStream) {
    KF_CHECK(state_ != nullptr, Code::other, "no memory to decompress {}", path);
    // `zstd --long=31` is in use for corpora; the default refuses windows above 128 MiB.
    ::ZSTD_DCtx_setParameter(state_.get(), ZSTD_d_windowLogMax, 31);
  }

  std::size_t read(char* to, std::size_t size) override {
    ZSTD_outBuffer out{to, size, 0};
    while (out.pos == 0 && !ended_) {
      if (in_.pos == in_.size) {
        in_ = {input(), fill(), 0};
        if (in_.size == 0) {
          // Once more without input: the last bytes may still wait for room.
          decompress(out);
          if (out.pos == 0) {
            finish();
          }
          continue;
        }
      }
      decompress(out);
    }
    return produced(out.pos);
  }

 private:
  void decompress(ZSTD_outBuffer& out) {
    const std::size_t before = in_.pos + out.pos;
    const std::size_t wanted = ::ZSTD_decompressStream(state_.get(), &out, &in_);
    if (::ZSTD_isError(wanted) != 0) {
      broken(::ZSTD_getErrorName(wanted));
    }
    if (in_.pos + out.pos != before) {
      wanted_ = wanted;
    }
  }
  void finish() {
    if (wanted_ != 0) {
      ends_early();
    }
    ended_ = true;
  }

  std::unique_ptr<ZSTD_DStream, std::size_t (*)(ZSTD_DStream*)> state_;
  ZSTD_inBuffer in_{nullptr, 0, 0};
  std::size_t wanted_ = 1;  // 0: a frame has just ended
  bool ended_ = false;
};

}  // namespace

std::unique_ptr<ByteStream> open_bytes(const fs::path& path, Compression compression) {
  switch (compression) {
    case Compression::gzip: return std::make_unique<GzipStream>(path);
    case Compression::zstd: return std::make_unique<ZstdStream>(path);
    case Compression::none: break;
  }
  return std::make_unique<FileStream>(path);
}

}  // namespace kf
