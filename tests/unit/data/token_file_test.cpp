// Token files: headers, types, bounds, ids outside the vocabulary, large offsets.

#include <fcntl.h>
#include <unistd.h>

#include <numeric>

#include "core/error.h"
#include "data/file/token_file.h"
#include "data/sequence/token_dataset.h"
#include "data/source/id_check.h"
#include "support/temp_dir.h"

#include <catch2/catch.hpp>

namespace {

using Catch::Contains;
using Ids = std::vector<std::int64_t>;
using kf::TokenType;
using kf::test::TempDir;

const kf::fs::path kFiles = kf::fs::path(KF_SOURCE_DIR) / "tests/unit/data/files";

kf::TokenFileOptions vocab(std::int64_t size, std::optional<TokenType> type = std::nullopt) { return {type, size}; }

Ids counted(std::int64_t n, std::int64_t from = 0) {
  Ids ids(static_cast<std::size_t>(n));
  std::iota(ids.begin(), ids.end(), from);
  return ids;
}

Ids read_all(const kf::TokenFile& file) {
  Ids ids(static_cast<std::size_t>(file.tokens()));
  file.read(0, ids);
  return ids;
}

std::string npy(const std::string& dict, const std::string& data, char version = '\1') {
  std::string out = std::string("\x93NUMPY") + version + '\0';
  out += static_cast<char>(dict.size() & 255);
  out += static_cast<char>(dict.size() >> 8);
  out += version == '\1' ? "" : std::string(2, '\0');
  return out + dict + data;
}

const std::string kGood = "{'descr': '<u2', 'fortran_order': False, 'shape': (4,), }\n";
const std::string kData = std::string("\1\0\2\0\3\0\4\0", 8);

}  // namespace

TEST_CASE("token file: ids come back as they were written, in every type and format") {
  const TempDir folder;
  const Ids ids = counted(50, 3);
  for (const TokenType type : {TokenType::uint16, TokenType::uint32, TokenType::int32, TokenType::int64}) {
    for (const char* name : {"x.npy", "x.bin"}) {
      CAPTURE(kf::token_type_name(type), name);
      kf::write_token_file(folder / name, ids, type);
      const kf::TokenFile file(folder / name, vocab(100, type));
      CHECK(file.type() == type);
      CHECK(read_all(file) == ids);
      Ids two(2);
      file.read(48, two);
      CHECK(two == Ids{51, 52});
      CHECK_THROWS_AS(file.read(49, two), kf::Error);
      CHECK_THROWS_AS(file.read(-1, two), kf::Error);
    }
  }
}

TEST_CASE("token file: NumPy's own files are read") {
  const kf::TokenFile narrow(kFiles / "real_uint16.npy", vocab(512));
  const kf::TokenFile wide(kFiles / "real_uint32.npy", vocab(512));
  CHECK(narrow.tokens() == 4439);
  CHECK(wide.type() == TokenType::uint32);
  const Ids ids = read_all(narrow);
  CHECK(ids == read_all(wide));
  CHECK(Ids(ids.begin(), ids.begin() + 8) == Ids{293, 293, 293, 293, 430, 466, 67, 267});
  // Named .npy, but nothing except ids: only with a type that somebody states.
  CHECK(read_all(kf::TokenFile(kFiles / "olmo_uint16.npy", vocab(512, TokenType::uint16))) == ids);
  CHECK_THROWS_WITH(kf::TokenFile(kFiles / "olmo_uint16.npy", vocab(512)), Contains("data.token_dtype"));
}

TEST_CASE("token file: header versions 1 to 3, any order of keys, either quote") {
  const TempDir folder;
  for (const char version : {'\1', '\2', '\3'}) {
    const kf::TokenFile file(folder.write("a.npy", npy(kGood, kData, version)), vocab(10));
    CHECK(read_all(file) == Ids{1, 2, 3, 4});
  }
  const std::string other = "{\"shape\":(4,),\"fortran_order\":True,\"descr\":\"<u2\"}";
  CHECK(read_all(kf::TokenFile(folder.write("b.npy", npy(other, kData)), vocab(10))) == Ids{1, 2, 3, 4});
}

TEST_CASE("token file: a broken header says what is wrong with it") {
  const TempDir folder;
  const auto refused = [&](const std::string& content, const std::string& words) {
    CAPTURE(content, words);
    const auto path = folder.write("bad.npy", content);
    CHECK_THROWS_WITH(kf::TokenFile(path, vocab(10)), Contains("bad.npy") && Contains(words));
  };
  const auto dict = [&](const std::string& text, const std::string& words) { refused(npy(text, kData), words); };
  refused("", "empty (0 bytes)");
  refused("hello world, no header", "does not start with the .npy mark");
  refused("\x93NUMPY", "cut off inside the .npy header");
  refused(npy(kGood, kData).substr(0, 30), "cut off inside the .npy header");
  refused(npy(kGood, kData, '\4'), "version 4.0");
  refused(npy(kGood, kData, '\2').substr(0, 11), "cut off inside the .npy header");
  refused(npy(kGood, kData.substr(0, 6)), "4 ids of 2 bytes, but 6 bytes follow it: the file is cut off");
  refused(npy(kGood, kData.substr(0, 7)), "cut off");
  refused(npy(kGood, kData + "\1"), "too long");
  refused(npy(kGood, kData + kData), "16 bytes follow it: the file is too long");
  dict("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", "floating point");
  dict("{'descr': '>u2', 'fortran_order': False, 'shape': (4,), }", "big-endian");
  dict("{'descr': '|u1', 'fortran_order': False, 'shape': (8,), }", "uint16 (<u2)");
  dict("{'descr': [('a', '<u2')], 'fortran_order': False, 'shape': (4,), }", "structured");
  dict("{'descr': '<u2', 'fortran_order': False, 'shape': (2, 2), }", "2 dimensions");
  dict("{'descr': '<u2', 'fortran_order': False, 'shape': (), }", "0 dimensions");
  dict("{'descr': '<u2', 'fortran_order': False, 'shape': (-4,), }", "whole number");
  dict("{'descr': '<u2', 'fortran_order': False, 'shape': (99999999999999999999,), }", "whole number");
  dict("{'descr': '<u2', 'fortran_order': False, 'shape': (9223372036854775807,), }", "cut off");
  dict("{'descr': '<u2', 'fortran_order': Maybe, 'shape': (4,), }", "True or False");
  dict("{'descr': '<u2', 'shape': (4,), }", "the keys 'descr', 'fortran_order' and 'shape'");
  dict("{'descr': '<u2', 'fortran_order': False, 'shape': (4,), 'x': 1}", "unknown key \"x\"");
  dict("{'descr': '<u2', 'fortran_order': False, 'shape': (4,), } x", "nothing after");
  dict("{'descr': '<u2", "closing quote");
  dict("{", "quoted string");
  dict("", "expected '{'");
}

TEST_CASE("token file: no cut and no flipped byte of a header does harm") {
  const TempDir folder;
  const std::string good = npy(kGood, kData);
  const auto path = folder / "x.npy";
  for (std::size_t cut = 0; cut < good.size(); ++cut) {
    folder.write("x.npy", good.substr(0, cut));
    CHECK_THROWS_AS(kf::TokenFile(path, vocab(10)), kf::Error);
  }
  std::uint32_t random = 1;
  for (int round = 0; round < 2000; ++round) {
    std::string bad = good;
    for (int change = 0; change < 1 + round % 3; ++change) {
      random = random * 1664525 + 1013904223;
      bad[(random >> 8) % (bad.size() - kData.size())] = static_cast<char>(random >> 24);
    }
    folder.write("x.npy", bad);
    try {
      const kf::TokenFile file(path, vocab(70000));
      CHECK(static_cast<std::size_t>(file.tokens()) * kf::token_width(file.type()) <= kData.size());
    } catch (const kf::Error& error) {
      CHECK(error.code() == kf::Code::data);
    }
  }
}

TEST_CASE("token file: files with known faults are refused in words") {
  CHECK_THROWS_WITH(kf::TokenFile(kFiles / "broken_float.npy", vocab(512)), Contains("<f4") && Contains("floating point"));
  CHECK_THROWS_WITH(kf::TokenFile(kFiles / "broken_short_real.npy", vocab(512)), Contains("cut off") && Contains("bytes follow"));
  CHECK_THROWS_WITH(kf::TokenFile(kFiles / "broken_odd_length_uint16.npy", vocab(512, TokenType::uint16)),
                    Contains("2001 bytes") && Contains("uint16"));
  const kf::TokenFile file(kFiles / "broken_out_of_vocab_uint16.npy", vocab(512, TokenType::uint16));
  Ids ids(1500);
  CHECK_THROWS_WITH(file.read(0, ids), Contains("token 1000 ") && Contains("id 512") && Contains("model.vocab_size = 512"));
  ids.resize(1000);
  CHECK_NOTHROW(file.read(0, ids));
}

TEST_CASE("token file: an id outside the vocabulary is named with file and place (H23)") {
  const TempDir folder;
  const auto refused = [](const kf::fs::path& path, const kf::TokenFileOptions& options, const std::string& words) {
    const kf::TokenFile file(path, options);
    Ids ids(static_cast<std::size_t>(file.tokens() - 5));
    CHECK_THROWS_WITH(file.read(5, ids), Contains(path.filename().string()) && Contains("token 33 ") && Contains(words));
  };
  Ids ids = counted(64);
  ids[33] = 600;
  for (const char* name : {"x.npy", "x.bin"}) {
    kf::write_token_file(folder / name, ids, TokenType::uint16);
    refused(folder / name, vocab(512), "id 600");
  }
  std::string negative;
  for (std::int32_t i = 0; i < 64; ++i) {
    const std::int32_t id = i == 33 ? -1 : i + 1;
    negative.append(reinterpret_cast<const char*>(&id), 4);
  }
  refused(folder.write("n.bin", negative), vocab(512, TokenType::int32), "id -1");
}

TEST_CASE("token file: an id that the type cannot hold is not written (H23)") {
  const TempDir folder;
  CHECK_THROWS_WITH(kf::write_token_file(folder / "x.npy", Ids{1, 65536}, TokenType::uint16), Contains("token 1 is id 65536"));
  CHECK_THROWS_AS(kf::write_token_file(folder / "x.bin", Ids{-1}, TokenType::int32), kf::Error);
  CHECK_FALSE(kf::fs::exists(folder / "x.npy"));
}

TEST_CASE("token file: a raw file of another type is noticed (H23)") {
  const TempDir folder;
  const Ids ids = counted(64, 1);
  kf::write_token_file(folder / "wide.bin", ids, TokenType::uint32);
  CHECK_THROWS_WITH(kf::TokenFile(folder / "wide.bin", vocab(512)), Contains("data.token_dtype = \"uint32\""));
  kf::write_token_file(folder / "widest.bin", ids, TokenType::int64);
  CHECK_THROWS_WITH(kf::TokenFile(folder / "widest.bin", vocab(512)), Contains("every second id is 0"));
  CHECK_THROWS_WITH(kf::TokenFile(folder / "widest.bin", vocab(512, TokenType::uint32)), Contains("data.token_dtype = \"int64\""));
  kf::write_token_file(folder / "narrow.bin", ids, TokenType::uint16);
  const kf::TokenFile misread(folder / "narrow.bin", vocab(512, TokenType::uint32));
  Ids some(10);
  CHECK_THROWS_WITH(misread.read(0, some), Contains("read as uint32") && Contains("data.token_dtype = \"uint16\""));
  folder.write("odd.bin", "abcde");
  CHECK_THROWS_WITH(kf::TokenFile(folder / "odd.bin", vocab(512)), Contains("5 bytes") && Contains("uint16"));
  // By the vocabulary, not by the length of the file.
  CHECK(kf::TokenFile(folder / "narrow.bin", vocab(65536)).type() == TokenType::uint16);
  CHECK(kf::TokenFile(folder / "wide.bin", vocab(65537)).type() == TokenType::uint32);
}

namespace {

/// A file of llm.c: 256 words of int32, then ids.
template <class Id>
std::string llmc(std::int32_t magic, std::int32_t version, const Ids& ids, std::int64_t said = -1) {
  std::vector<std::int32_t> head(256);
  head[0] = magic;
  head[1] = version;
  head[2] = static_cast<std::int32_t>(said < 0 ? static_cast<std::int64_t>(ids.size()) : said);
  std::string out(reinterpret_cast<const char*>(head.data()), 1024);
  for (const std::int64_t id : ids) {
    const auto value = static_cast<Id>(id);
    out.append(reinterpret_cast<const char*>(&value), sizeof(Id));
  }
  return out;
}

}  // namespace

TEST_CASE("token file: llm.c's header gives the type and the number of ids, and is no id itself") {
  const TempDir folder;
  const Ids ids = counted(40, 50000);
  const kf::TokenFile narrow(folder.write("a.bin", llmc<std::uint16_t>(20240520, 1, ids)), vocab(50257));
  CHECK(narrow.type() == TokenType::uint16);
  CHECK(read_all(narrow) == ids);
  const Ids large = counted(40, 128000);
  const auto wide = folder.write("b.bin", llmc<std::uint32_t>(20240801, 7, large));
  CHECK(kf::TokenFile(wide, vocab(128256)).type() == TokenType::uint32);
  CHECK(read_all(kf::TokenFile(wide, vocab(128256, TokenType::uint32))) == large);
  // The header decides the type, not the vocabulary, and not whoever says otherwise.
  CHECK(kf::TokenFile(wide, vocab(1000)).type() == TokenType::uint32);
  CHECK_THROWS_WITH(kf::TokenFile(wide, vocab(128256, TokenType::uint16)),
                    Contains("b.bin") && Contains("llm.c's header says uint32, data.token_dtype says uint16"));
}

TEST_CASE("token file: an llm.c file that is not what its header says is refused") {
  const TempDir folder;
  const auto refused = [&](const std::string& content, const std::string& words) {
    CAPTURE(words);
    CHECK_THROWS_WITH(kf::TokenFile(folder.write("x.bin", content), vocab(65536)), Contains("x.bin") && Contains(words));
  };
  const Ids ids = counted(20);
  refused(llmc<std::uint16_t>(20240520, 1, ids, 30), "says 30 ids of uint16 (2 bytes each), but 40 bytes follow it: the file is cut off");
  refused(llmc<std::uint16_t>(20240520, 1, ids, 10), "the file is too long");
  refused(llmc<std::uint16_t>(20240520, 1, ids) + "x", "41 bytes follow");
  refused(llmc<std::uint16_t>(20240520, 1, ids).substr(0, 600), "cut off inside llm.c's header: 600 of 1024 bytes");
  refused(llmc<std::uint16_t>(20240520, 2, ids), "in version 2; version 1 can be read");
  refused(llmc<std::uint32_t>(20240801, 1, ids), "in version 1; version 7 can be read");
  refused(llmc<std::uint16_t>(20240522, 1, ids), "an evaluation set of multiple choice of llm.c");
  refused(llmc<std::uint16_t>(20240326, 3, ids), "a GPT-2 checkpoint of llm.c");
}

TEST_CASE("token file: files that hold no bare ids are refused by name") {
  const TempDir folder;
  const auto refused = [&](std::string content, const std::string& words) {
    CAPTURE(words);
    content.resize(64);
    CHECK_THROWS_WITH(kf::TokenFile(folder.write("x.bin", content), vocab(65536)), Contains("x.bin holds no bare ids") && Contains(words));
  };
  refused("PAR1", "Parquet");
  refused("PK\x03\x04", "ZIP archive");
  refused("\x1f\x8b\x08", "decompress it first");
  refused("\x28\xb5\x2f\xfd", "zstd");
  refused("\x89HDF\r\n", "HDF5");
  refused(std::string("MMIDIDX\0\0", 9), "name the .bin file");
  refused(std::string("\x0a\0\0\0\0\0\0\0{\"a\": 1}", 16), "safetensors");
  refused(std::string("\x80\x04\x95\x20\0\0\0\0\0\0\0", 11), "pickled");
  refused(std::string("\x01\0\0\0\x0c\0\0\0\x40\0\0\0", 12), "LitData");
  // NumPy's mark counts under any name.
  CHECK(read_all(kf::TokenFile(folder.write("y.bin", npy(kGood, kData)), vocab(10))) == Ids{1, 2, 3, 4});
  CHECK_THROWS_WITH(kf::TokenFile(folder.write("z.npy", npy(kGood, kData)), vocab(10, TokenType::int32)),
                    Contains("its header says uint16, data.token_dtype says int32"));
  CHECK_THROWS_WITH(kf::TokenFile(folder.write("web_text_document.bin", std::string(64, '\1')), vocab(512)),
                    Contains("half of a Megatron data set") && Contains("web_text_document.idx"));
}

TEST_CASE("token file: halves of ids above 65536 are noticed, and no type is advised that would read halves") {
  const TempDir folder;
  Ids ids;
  std::uint32_t random = 7;
  for (int i = 0; i < 4000; ++i) {
    random = random * 1664525 + 1013904223;
    ids.push_back((random >> 8) % 128256);
  }
  kf::write_token_file(folder / "wide.bin", ids, TokenType::uint32);
  CHECK_THROWS_WITH(kf::TokenFile(folder / "wide.bin", vocab(128256, TokenType::uint16)),
                    Contains("every second id is next to 0") && Contains("data.token_dtype = \"uint32\""));
  ids[1000] = 3'000'000;  // wrong as uint32; as uint16 every id would be below the vocabulary, and every second one wrong
  kf::write_token_file(folder / "wrong.bin", ids, TokenType::uint32);
  const kf::TokenFile file(folder / "wrong.bin", vocab(128256));
  Ids some(2000);
  CHECK_THROWS_WITH(file.read(0, some), Contains("token 1000 ") && Contains("as no other type would its ids be valid"));
}

TEST_CASE("token file: ids outside the vocabulary are found before anything is drawn") {
  const TempDir folder;
  Ids ids(3'000'000, 5);
  ids[2'500'000] = 600;
  ids[2'700'000] = 601;
  kf::write_token_file(folder / "a.bin", counted(50), TokenType::uint16);
  kf::write_token_file(folder / "b.bin", ids, TokenType::int64);  // blocks of 4 MiB: several, and several threads
  std::vector<kf::TokenFile> files;
  files.emplace_back(folder / "a.bin", vocab(512));
  files.emplace_back(folder / "b.bin", vocab(512, TokenType::int64));
  kf::IdCheckOptions options;
  CHECK_THROWS_WITH(kf::check_ids({&files[0], &files[1]}, options), Contains("b.bin") && Contains("token 2500000 ") && Contains("id 600"));
  std::vector<kf::TokenFile> larger;
  larger.emplace_back(folder / "b.bin", vocab(602, TokenType::int64));
  options.memo_bytes = 1 << 20;
  options.memo_dir = (folder / "memo").string();
  CHECK_NOTHROW(kf::check_ids({&larger[0]}, options));
  std::string negative(64, '\1');
  negative[35] = '\xff';
  std::vector<kf::TokenFile> signed_ids;
  signed_ids.emplace_back(folder.write("n.bin", negative), vocab(1 << 30, TokenType::int32));
  CHECK_THROWS_WITH(kf::check_ids({&signed_ids[0]}, options), Contains("token 8 ") && Contains("id -"));
}

TEST_CASE("token file: a check that is remembered holds until the file changes, and for other vocabularies, too") {
  const TempDir folder;
  const auto path = folder / "a.bin";
  kf::write_token_file(path, Ids(200'000, 5), TokenType::uint16);
  kf::IdCheckOptions options;
  options.memo_bytes = 1000;
  options.settled_seconds = 0;
  options.memo_dir = (folder / "memo").string();
  const auto check = [&](std::int64_t size) {
    const kf::TokenFile file(path, vocab(size));
    kf::check_ids({&file}, options);
  };
  check(512);
  CHECK(kf::fs::exists(folder / "memo/checked-ids"));
  CHECK_NOTHROW(check(6));
  CHECK_THROWS_WITH(check(5), Contains("token 0 (from 0) is id 5"));
  kf::write_token_file(path, Ids(200'000, 600), TokenType::uint16);
  CHECK_THROWS_WITH(check(512), Contains("id 600"));
  folder.write("memo/checked-ids", "something else");
  CHECK_THROWS_WITH(check(512), Contains("id 600"));
}

TEST_CASE("token file: offsets beyond 2 and 4 GiB are read where they are (H24)") {
  const TempDir folder;
  const auto path = folder / "huge.bin";
  constexpr std::int64_t kBytes = std::int64_t{5} << 30;
  constexpr std::int64_t kBelow2 = (std::int64_t{1} << 31) - 8;
  constexpr std::int64_t kAbove4 = (std::int64_t{1} << 32) + 16;
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT, 0600);
  REQUIRE(fd >= 0);
  const auto put = [&](std::int64_t offset, std::uint16_t first) {
    for (std::uint16_t i = 0; i < 8; ++i) {
      const auto id = static_cast<std::uint16_t>(first + i);
      REQUIRE(::pwrite(fd, &id, 2, offset + 2 * i) == 2);
    }
  };
  const bool sparse = ::ftruncate(fd, kBytes) == 0;
  if (sparse) {
    put(kBelow2, 100);
    put(kAbove4, 200);
    put(kBytes - 16, 300);
  }
  ::close(fd);
  if (!sparse) {
    WARN("the temporary folder takes no file of 5 GiB; skipped");
    return;
  }
  const kf::TokenFile file(path, vocab(512));
  CHECK(file.tokens() == kBytes / 2);
  Ids ids(8);
  file.read(kBelow2 / 2, ids);
  CHECK(ids == counted(8, 100));
  file.read(kAbove4 / 2, ids);
  CHECK(ids == counted(8, 200));
  file.read(kBytes / 2 - 8, ids);
  CHECK(ids == counted(8, 300));

  const kf::TokenDataset data({path}, folder.path(), 8, vocab(512));
  CHECK(data.size() == kBytes / 16);
  for (const auto& [offset, first] : {std::pair{kAbove4, 200}, std::pair{kBytes - 16, 300}}) {
    data.get(offset / 16, ids);
    CHECK(ids == counted(8, first));
  }
  Ids window(8);
  data.get(kBelow2 / 16, ids);  // starts half a window before the known ids
  data.get(kBelow2 / 16 + 1, window);
  CHECK(Ids(ids.begin() + 4, ids.end()) == counted(4, 100));
  CHECK(Ids(window.begin(), window.begin() + 4) == counted(4, 104));
}

TEST_CASE("token dataset: short files give no samples, and never wrap around (H25)") {
  const TempDir folder;
  const std::int64_t window = 33;
  const auto make = [&](std::int64_t tokens) {
    auto path = folder / ("t" + std::to_string(tokens) + ".bin");
    kf::write_token_file(path, counted(tokens, 1), TokenType::uint16);
    return path;
  };
  for (const std::int64_t tokens : {0, 1, 32}) {
    CAPTURE(tokens);
    CHECK_THROWS_WITH(kf::TokenDataset({make(tokens)}, folder.path(), window, vocab(512)),
                      Contains("window of 33") && Contains("longest has " + std::to_string(tokens)));
  }
  for (const auto& [tokens, samples] : {std::pair{33, 1}, {34, 1}, {65, 1}, {66, 2}}) {
    CAPTURE(tokens);
    const kf::TokenDataset data({make(tokens)}, folder.path(), window, vocab(512));
    CHECK(data.size() == samples);
    Ids ids(33);
    data.get(samples - 1, ids);
    CHECK(ids == counted(33, (samples - 1) * 33 + 1));
    CHECK_THROWS_AS(data.get(samples, ids), kf::Error);
    CHECK_THROWS_AS(data.get(-1, ids), kf::Error);
  }
  const kf::TokenDataset all({make(0), make(66), make(1), make(33)}, folder.path(), window, vocab(512));
  CHECK(all.cumulative() == Ids{0, 0, 2, 2, 3});
  Ids ids(33);
  all.get(2, ids);
  CHECK(ids == counted(33, 1));
}

TEST_CASE("token dataset: a copy has the same fingerprint, a change has not") {
  const TempDir first;
  const TempDir second;
  for (const TempDir* folder : {&first, &second}) {
    kf::write_token_file(*folder / "a.npy", counted(40), TokenType::uint16);
  }
  const auto print = [](const TempDir& folder) { return kf::TokenDataset({folder / "a.npy"}, folder.path(), 8, vocab(512)).fingerprint(); };
  CHECK(print(first) == print(second));
  Ids ids = counted(40);
  ids[39] = 5;
  kf::write_token_file(second / "a.npy", ids, TokenType::uint16);
  CHECK(print(first) != print(second));
}
