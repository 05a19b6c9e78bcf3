#include "core/error.h"
#include "data/tokenizer/tokenizer.h"

namespace kf {

std::unique_ptr<Tokenizer> open_tokenizer(const std::string& path) {
  fail(Code::data,
       "{}: tokenizer files are not built yet; name a registered tokenizer, \"lua:NAME\", or leave the key out to work on bytes", path);
}

}  // namespace kf
