// Files of torch.save as PyTorch writes them (make_saved.py), and archives that are damaged.

#include "checkpoint/pickle/saved_file.h"

#include <catch2/catch.hpp>

#include <cstring>

#include "core/error.h"
#include "support/temp_dir.h"

using namespace kf;
using namespace kf::pickle;
using Catch::Matchers::Contains;
using namespace std::string_literals;

namespace {

fs::path saved(const std::string& name) { return fs::path(KF_SOURCE_DIR) / "tests/unit/checkpoint/saved" / name; }

/// Everything of a file is read.
void read_all(const fs::path& path) {
  const SavedFile file(path);
  for (std::size_t i = 0; i < file.root().size(); ++i) {
    if (const auto tensor = file.root().is(Kind::dict) ? file.tensor(file.root().value(i)) : std::nullopt) {
      file.storage(*tensor, true);
    }
  }
}

std::string refusal(const fs::path& path) {
  try {
    read_all(path);
    return "";
  } catch (const Error& error) {
    CHECK(error.code() == Code::checkpoint);
    CHECK_THAT(error.what(), Contains(path.string()));
    return error.what();
  }
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
  return text;
}

}  // namespace

TEST_CASE("saved files: tensors are described with type, shape, strides and offset", "[checkpoint]") {
  const std::string name = GENERATE("state.pt", "protocol_5.pt", "old_format.pt");
  CAPTURE(name);
  const SavedFile file(saved(name));
  const auto tensor = [&](const char* key) {
    const auto value = file.root().find(key);
    REQUIRE(value);
    const auto out = file.tensor(*value);
    REQUIRE(out);
    return *out;
  };
  CHECK(tensor("plain").type->dtype == "torch.float32");
  CHECK(tensor("plain").shape == std::vector<std::int64_t>{4, 6});
  CHECK(tensor("transposed").strides == std::vector<std::int64_t>{1, 6});
  CHECK(tensor("transposed").storage == tensor("plain").storage);
  CHECK(tensor("view").offset == 6);
  CHECK(tensor("view").strides == std::vector<std::int64_t>{6, 2});
  CHECK(tensor("scalar").shape.empty());
  CHECK(tensor("parameter").shape == std::vector<std::int64_t>{2, 3});
  CHECK(tensor("bfloat16").type->bytes == 2);
  const std::span<const std::byte> bytes = file.storage(tensor("view"), true);
  REQUIRE(bytes.size() == 24 * sizeof(float));
  float value = 0;
  std::memcpy(&value, bytes.data() + 8 * sizeof value, sizeof value);
  CHECK(value == 2.0F);
  if (name != "old_format.pt") {
    CHECK(tensor("uint16").type->dtype == "torch.uint16");
    CHECK(tensor("float8_e4m3fn").type->bytes == 1);
  }
}

TEST_CASE("saved files: what lies beside tensors is read as plain values", "[checkpoint]") {
  const SavedFile file(saved("training.pt"));
  const Value root = file.root();
  CHECK(root.find("epoch")->integer() == 3);
  CHECK(root.find("loss")->real() == 0.5);
  CHECK(root.find("negative")->integer() == -5);
  CHECK(root.find("long")->integer() == std::int64_t{1} << 40);
  CHECK(root.find("big")->is(Kind::large_integer));
  CHECK(root.find("dtype")->is(Kind::global, "torch.bfloat16"));
  CHECK(root.find("size")->is(Kind::object, "torch.Size"));
  CHECK(file.tensor(*root.find("model")->find("weight"))->shape == std::vector<std::int64_t>{2, 3});
  CHECK(!file.tensor(*root.find("epoch")));
  CHECK(root.find("numpy")->is(Kind::object, "numpy._core.multiarray.scalar"));  // a name with arguments: nothing was called
  CHECK(root.find("args")->state()->find("lr")->real() == 0.1);
}

TEST_CASE("saved files: a file that is cut short or changed anywhere is an error or gives other values, never more", "[checkpoint]") {
  const std::string name = GENERATE("module.pt", "old_format.pt");
  CAPTURE(name);
  const test::TempDir dir;
  const std::string file = read_file(saved(name));
  for (std::size_t size = 0; size < file.size(); size += file.size() / 97) {
    CHECK(!refusal(dir.write("cut.pt", file.substr(0, size))).empty());
  }
  for (std::size_t at = 0; at < file.size(); ++at) {
    for (const int byte : {0, 0x7f, 0xff, static_cast<unsigned char>(file[at]) ^ 1}) {
      std::string changed = file;
      changed[at] = static_cast<char>(byte);
      fs::remove(dir / "changed.pt");  // a file that is written over is flushed to the disk
      refusal(dir.write("changed.pt", changed));
    }
  }
}

TEST_CASE("saved files: numbers that changed are found by their checksum", "[checkpoint]") {
  const test::TempDir dir;
  std::string file = read_file(saved("module.pt"));
  const SavedFile opened(saved("module.pt"));
  const auto weight = opened.tensor(*opened.root().find("weight"));
  const auto at = static_cast<std::size_t>(file.find("\0\0\x80\x3f"s));  // 1.0
  REQUIRE(at != std::string::npos);
  file[at + 3] = '\x40';
  CHECK_THAT(refusal(dir.write("x.pt", file)), Contains("CRC-32"));
}

TEST_CASE("saved files: what is no file of torch.save says so", "[checkpoint]") {
  const test::TempDir dir;
  const std::string file = read_file(saved("module.pt"));
  CHECK_THAT(refusal(dir.write("text.pt", "hello")), Contains("PROTO"));
  CHECK_THAT(refusal(dir.write("empty.pt", "")), Contains("empty.pt"));
  CHECK_THAT(refusal(dir.write("plain.pt", "\x80\x04N.")), Contains("none of torch.save"));
  CHECK_THAT(refusal(dir.write("big.pt", replaced(file, "little", "bigger"))), Contains("big-endian"));
  CHECK_THAT(refusal(dir.write("script.pt", replaced(file, "byteorder", "constants"))), !Contains("big-endian"));
  CHECK_THAT(refusal(dir.write("no_pickle.pt", replaced(file, "data.pkl", "data.pkx"))), Contains("torch.save did not write it"));
}
