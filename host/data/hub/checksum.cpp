#include "data/hub/checksum.h"

#include <openssl/evp.h>

#include <array>
#include <memory>
#include <vector>

#include "core/error.h"
#include "data/file/input_file.h"

namespace kf::hub {
namespace {

struct FreeContext {
  void operator()(EVP_MD_CTX* context) const { ::EVP_MD_CTX_free(context); }
};

class Digest {
 public:
  explicit Digest(const EVP_MD* type) : context_(::EVP_MD_CTX_new()) {
    check(context_ != nullptr && ::EVP_DigestInit_ex(context_.get(), type, nullptr) == 1);
  }
  void add(const void* bytes, std::size_t size) { check(::EVP_DigestUpdate(context_.get(), bytes, size) == 1); }
  std::string hex() {
    std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
    unsigned int size = 0;
    check(::EVP_DigestFinal_ex(context_.get(), digest.data(), &size) == 1);
    constexpr const char* digits = "0123456789abcdef";
    std::string out;
    for (unsigned int i = 0; i < size; ++i) {
      out += digits[digest[i] >> 4];
      out += digits[digest[i] & 15];
    }
    return out;
  }

 private:
  static void check(bool good) { KF_CHECK(good, Code::other, "OpenSSL cannot digest"); }
  std::unique_ptr<EVP_MD_CTX, FreeContext> context_;
};

}  // namespace

std::string checksum_of(const fs::path& path, bool sha256) {
  FileStream file(path);
  Digest digest(sha256 ? ::EVP_sha256() : ::EVP_sha1());
  if (!sha256) {
    const std::string head = "blob " + std::to_string(file.file().size());
    digest.add(head.c_str(), head.size() + 1);
  }
  std::vector<char> buffer(std::size_t{1} << 20);
  while (const std::size_t got = file.read(buffer.data(), buffer.size())) {
    digest.add(buffer.data(), got);
  }
  return digest.hex();
}

}  // namespace kf::hub
