// `make install`: what is installed runs from wherever it was moved to, and what shells and man need is there.

#include <catch2/catch.hpp>
#include <filesystem>
#include <sstream>
#include <string>

#include "core/fs.h"
#include "support/process.h"
#include "support/temp_dir.h"

namespace fs = std::filesystem;
using namespace kf::test;
using Catch::Matchers::Contains;

namespace {

/// Installs all but torch into `prefix`.
void install_into(const fs::path& prefix) {
  const Finished done = run({"bash", "scripts/install.sh", fs::path(KF_HOST).parent_path().filename().string(), prefix.string(), "0"},
                            {.cwd = KF_SOURCE_DIR, .unset = {"DESTDIR"}});
  CAPTURE(done.out, done.err);
  REQUIRE(done.status == 0);
  CHECK_THAT(done.out, Contains("without torch: KF_TORCH_DIR"));
}

}  // namespace

TEST_CASE("install: what was installed trains from another place, where the tree that built it is not seen", "[install]") {
  const TempDir dir;
  install_into(dir / "there");
  fs::rename(dir / "there", dir / "here");
  const std::string program = (dir / "here/bin/kf-host").string();

  const Finished alone = run({program, "config", "keys", "lr"}, {.unset = {"KF_TORCH_DIR"}});
  CHECK(alone.status == 1);
  CHECK_THAT(alone.err, Contains("cannot load torch"));
  fs::create_symlink(KF_TORCH_DIR, dir / "here/lib/kf-host/torch");

  dir.write("job.toml", R"([model]
dim = 32
n_layers = 1
n_heads = 2
vocab_size = 257
max_seq_len = 32
[train]
batch_size = 2
seq_len = 32
max_steps = 2
[data]
dataset_path = "here/share/doc/kf-host"
file_pattern = "*.md"
)");
  const Finished trained = run({program, "job.toml"}, {.cwd = dir.path(), .unset = {"KF_TORCH_DIR"}});
  CAPTURE(trained.out, trained.err);
  CHECK(trained.status == 0);
  CHECK_THAT(trained.out, Contains("training complete: 2 steps"));

  const Finished paths =
      run({"bash", "-c", "readelf -d here/lib/kf-host/*.so here/lib/kf-host/kf-host | grep -E 'RPATH|RUNPATH'"}, {.cwd = dir.path()});
  CHECK_THAT(paths.out, Contains("$ORIGIN/torch/lib") && !Contains(KF_SOURCE_DIR));
}

TEST_CASE("install: pages for man and completion for three shells are written by the program", "[install]") {
  const TempDir dir;
  install_into(dir / "here");
  const fs::path share = dir / "here/share";
  const std::string man = kf::read_file(share / "man/man1/kf-host.1");
  CHECK_THAT(man, Contains(".TH KF\\-HOST 1") && Contains(".B optimizer.lr") && Contains(".SS ATTACH"));
  std::istringstream lines(man);
  for (std::string line; std::getline(lines, line);) {  // a line that begins with a point is a macro, and we use these
    const bool macro = line.starts_with(".TH ") || line.starts_with(".SH ") || line.starts_with(".SS ") || line == ".TP" ||
                       line.starts_with(".B ") || line == ".nf" || line == ".fi";
    CHECK((macro || !line.starts_with('.')));
  }
  for (const char* place :
       {"bash-completion/completions/kf-host", "zsh/site-functions/_kf-host", "fish/vendor_completions.d/kf-host.fish"}) {
    CAPTURE(place);
    CHECK_THAT(kf::read_file(share / place), Contains("optimizer.lr") && Contains("checkpoint") && Contains("merge-lora"));
  }
  CHECK_THAT(kf::read_file(share / "kf-host/kf-host.schema.json"), Contains("\"optimizer\""));
  // Shells that this machine has read theirs without a complaint.
  const auto has = [](const std::string& shell) { return run({"bash", "-c", "command -v " + shell}).status == 0; };
  if (has("zsh")) {
    CHECK(run({"zsh", "-n", (share / "zsh/site-functions/_kf-host").string()}).status == 0);
  }
  if (has("fish")) {
    const Finished asked = run({"fish", "-c",
                                "source " + (share / "fish/vendor_completions.d/kf-host.fish").string() +
                                    "; complete -C 'kf-host --optimizer.muon_mo'; complete -C 'kf-host checkp'"});
    CHECK_THAT(asked.out, Contains("--optimizer.muon_momentum") && Contains("checkpoint"));
  }
}
