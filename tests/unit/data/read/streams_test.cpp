#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>
#include <catch2/catch.hpp>

#include "core/error.h"
#include "data/file/decompress.h"
#include "data/file/format.h"
#include "support/temp_dir.h"
#include "unit/data/read/texts.h"

namespace {

using namespace kf;
using Catch::Matchers::Contains;

std::string gzip(const std::string& text) {
  z_stream state{};
  deflateInit2(&state, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&state, text.size()) + 32, '\0');
  state.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  state.avail_in = static_cast<uInt>(text.size());
  state.next_out = reinterpret_cast<Bytef*>(out.data());
  state.avail_out = static_cast<uInt>(out.size());
  deflate(&state, Z_FINISH);
  out.resize(out.size() - state.avail_out);
  deflateEnd(&state);
  return out;
}

std::string zstd(const std::string& text) {
  std::string out(ZSTD_compressBound(text.size()), '\0');
  out.resize(ZSTD_compress(out.data(), out.size(), text.data(), text.size(), 3));
  return out;
}

std::string unpacked(const fs::path& path, Compression compression, std::size_t step = 1000) {
  const std::unique_ptr<ByteStream> stream = open_bytes(path, compression);
  std::string out;
  std::string piece(step, '\0');
  while (const std::size_t got = stream->read(piece.data(), step)) {
    out.append(piece, 0, got);
  }
  return out;
}

std::string numbers(int count) {
  std::string out;
  for (int i = 0; i < count; ++i) {
    out += std::to_string(i * 7919 % 10007) + ' ';
  }
  return out;
}

}  // namespace

TEST_CASE("streams: several gzip members and zstd frames are one text", "[read]") {
  const test::TempDir dir;
  const std::string text = numbers(20000);
  const std::string half = text.substr(0, text.size() / 2);
  const std::string rest = text.substr(half.size());
  dir.write("a.gz", gzip(half) + gzip("") + gzip(rest));
  dir.write("a.zst", zstd(half) + zstd("") + zstd(rest));
  const std::size_t step = GENERATE(1, 1000, 1 << 20);
  CHECK(unpacked(dir / "a.gz", Compression::gzip, step) == text);
  CHECK(unpacked(dir / "a.zst", Compression::zstd, step) == text);
}

TEST_CASE("streams: zstd frames that are to be passed over may come first, in between and last, as pzstd writes them", "[read]") {
  const test::TempDir dir;
  const std::string skipped("\x5a\x2a\x4d\x18\x03\0\0\0abc", 11);
  dir.write("a.txt.zst", skipped + zstd("one ") + skipped + zstd("two") + skipped);
  CHECK(kind_of_file(dir / "a.txt.zst").compression == Compression::zstd);
  CHECK(unpacked(dir / "a.txt.zst", Compression::zstd) == "one two");
}

TEST_CASE("streams: an archive cut anywhere is refused", "[read]") {
  const test::TempDir dir;
  const std::string text = numbers(300);
  const bool is_gzip = GENERATE(true, false);
  const Compression compression = is_gzip ? Compression::gzip : Compression::zstd;
  const std::string packed = is_gzip ? gzip(text) : zstd(text);
  for (std::size_t size = 0; size < packed.size(); ++size) {
    const fs::path path = dir.write("cut", packed.substr(0, size));
    CAPTURE(size, packed.size());
    CHECK_THROWS_AS(unpacked(path, compression), Error);
  }
}

TEST_CASE("streams: a changed byte in the middle of a gzip file is noticed", "[read]") {
  const test::TempDir dir;
  std::string packed = gzip(numbers(300));
  packed[packed.size() / 2] = static_cast<char>(packed[packed.size() / 2] ^ 0x40);
  const fs::path path = dir.write("a.gz", packed);
  CHECK_THROWS_WITH(unpacked(path, Compression::gzip), Contains("a.gz: broken gzip data"));
}

TEST_CASE("streams: zeros behind a gzip member are padding, other bytes are not", "[read]") {
  const test::TempDir dir;
  dir.write("padded.gz", gzip("text") + std::string(1000, '\0'));
  CHECK(unpacked(dir / "padded.gz", Compression::gzip) == "text");
  dir.write("more.gz", gzip("text") + "tail");
  CHECK_THROWS_AS(unpacked(dir / "more.gz", Compression::gzip), Error);
}

TEST_CASE("streams: folders, pipes and unreadable names are named for what they are", "[read]") {
  const test::TempDir dir;
  fs::create_directory(dir / "folder");
  REQUIRE(::mkfifo((dir / "pipe.txt").c_str(), 0600) == 0);
  CHECK_THROWS_WITH(InputFile(dir / "folder"), Contains("is a folder"));
  CHECK_THROWS_WITH(InputFile(dir / "pipe.txt"), Contains("is a pipe"));
  CHECK_THAT(test::error_of(dir / "pipe.txt"), Contains("is a pipe"));
  CHECK_THROWS_WITH(InputFile(dir / "absent"), Contains("cannot open"));
}

TEST_CASE("streams: a file that shrinks while it is read is an error that says so", "[read]") {
  const test::TempDir dir;
  const fs::path path = dir.write("a.jsonl", std::string(3 << 20, ' ') + "\n{\"text\": \"late\"}\n");
  Skipped skipped;
  const SourceFiles source = test::source_of(path);
  const std::unique_ptr<RecordReader> reader = open_records(source.files[0], {}, {}, skipped);
  REQUIRE(::truncate(path.c_str(), 100) == 0);
  Record record;
  CHECK_THROWS_WITH(reader->next(record), Contains("became shorter while it was read"));
}

TEST_CASE("streams: a name that says gzip over plain bytes is refused, a plain name over gzip is read", "[read]") {
  const test::TempDir dir;
  dir.write("plain.jsonl.gz", "{\"text\": \"a\"}\n");
  CHECK_THAT(test::error_of(dir / "plain.jsonl.gz"), Contains("its name says gzip"));
  dir.write("packed.jsonl", gzip("{\"text\": \"a\"}\n"));
  CHECK(test::texts_of(dir / "packed.jsonl") == std::vector<std::string>{"a"});
}
