#include <algorithm>
#include <iostream>

#include "app/command/commands.h"
#include "app/help/usage.h"
#include "bindings/api/meta.h"
#include "builtins/builtins.h"
#include "config/show/emit.h"
#include "config/tree/json.h"
#include "core/error.h"
#include "core/fs.h"
#include "core/text.h"
#include "core/wrap.h"
#include "registry/registries.h"
#include "report/terminal/printable.h"
#include "run/invocation.h"

namespace kf {
namespace {

constexpr const char* kJob = R"(#:schema ./.editor/schema.json
# Trains a small model on data/. `kf-host config keys` lists every setting, `kf-host config check job.toml` checks this file.

[run]
name = "first"

[model]
dim = 128
n_layers = 4
n_heads = 4
n_kv_heads = 2
vocab_size = 257         # bytes, and what ends a document
max_seq_len = 128

[train]
batch_size = 8
seq_len = 128
max_steps = 300
mixed_precision = "fp32"

[optimizer]
lr = 2e-3

[scheduler]
warmup_steps = 30

[data]
dataset_path = "data"    # text, JSON lines, Parquet, .npy or .bin tokens
file_pattern = "**/*.md"
holdout = 0.1            # share of the text that is kept for evaluation

[eval]
enabled = true
interval = 100
steps = 4

[checkpoint]
interval = 100
)";

constexpr const char* kRecipe = R"(--- The same job, with what a settings file cannot say: a schedule and a hook of its own.
local kf = require("kf")

kf.register.scheduler("valley", function(a)
  return function(step) -- completed updates: 0 for the first
    return 0.1 + 0.9 * math.abs(1 - 2 * step / a.max_steps)
  end
end)

kf.register.hook("best", function()
  local best = math.huge
  return {
    on_eval_end = function(ctx, eval)
      if eval.loss < best then
        best = eval.loss
        kf.log.info("step %d: the best evaluation so far, %.4f", ctx.step, best)
      end
    end,
  }
end)

---@type kf.Config
return {
  extends = "job.toml",
  run = { name = "valley" },
  hooks = { "best" },
  scheduler = { name = "valley" },
}
)";

constexpr const char* kReadme = R"(# {}

```sh
kf-host job.toml                                   # trains; run again, it goes on where it was
kf-host recipe.lua                                 # the same with parts in Lua
kf-host generate runs/first --prompt "The "        # what it has learned
kf-host config check job.toml                      # every problem, and the memory that it takes
kf-host profile job.toml                           # where a step's time and memory go
kf-host doctor                                     # what this machine can do, and what is missing
```

`data/` has a text to begin with, the list of all settings: put yours there, and its pattern into `data.file_pattern`. With a tokenizer (`data.tokenizer_path`, a
`tokenizer.json` or `tokenizer.model`) `model.vocab_size` is that of the tokenizer. `kf-host data info data` says what is there.

What runs write is in `runs/`. `.editor/` is for editors: the schema of `job.toml` (Taplo, Even Better TOML) and what `require("kf")` has
(lua-language-server); `kf-host new` of a newer version writes newer ones.
)";

/// A folder that goes again, with the folders above that were made for it, unless it is kept.
class NewFolder {
 public:
  explicit NewFolder(const fs::path& path) {
    std::error_code failed;
    for (fs::path at = path; !at.empty() && !fs::exists(fs::symlink_status(at, failed)); at = at.parent_path()) {
      made_.push_back(at);
    }
    fs::create_directories(path, failed);
    if (failed) {
      remove();
    }
    KF_CHECK(!failed, Code::other, "the folder {} cannot be made: {}", path, failed.message());
  }
  ~NewFolder() { remove(); }
  NewFolder(const NewFolder&) = delete;
  NewFolder& operator=(const NewFolder&) = delete;
  void keep() { made_.clear(); }

 private:
  void remove() noexcept {
    std::error_code ignored;
    if (!made_.empty()) {
      fs::remove_all(made_.front(), ignored);
    }
    for (const fs::path& folder : made_) {
      fs::remove(folder, ignored);  // not one that holds something else by now
    }
    made_.clear();
  }

  std::vector<fs::path> made_;  // innermost first
};

/// The folder of this name, which must be free.
fs::path free_folder(const std::string& name) {
  const bool control = std::any_of(name.begin(), name.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
  KF_CHECK(!control, Code::config, "NAME ({}) must be without control characters", report::printable(name));
  const fs::path normal = fs::path(name).lexically_normal();
  fs::path folder = normal.has_filename() ? normal : normal.parent_path();
  std::error_code failed;
  KF_CHECK(!fs::exists(fs::symlink_status(folder, failed)), Code::config, "{} is there already, and is left as it is; take another name",
           folder);
  return folder;
}

}  // namespace

int new_command(const Arguments& args) {
  KF_CHECK(args.size() == 1 && !args[0].empty() && !args[0].starts_with("-"), Code::config, "{}", folded(usage::kNew));
  const fs::path folder = free_folder(args[0]);
  const config::Catalog catalog = native_registries().catalog();
  NewFolder made(folder);
  for (const char* part : {"data", ".editor"}) {
    std::error_code failed;
    fs::create_directory(folder / part, failed);
    KF_CHECK(!failed, Code::other, "the folder {} cannot be made: {}", folder / part, failed.message());
  }
  const std::string name = fs::absolute(folder / ".").lexically_normal().parent_path().filename().string();
  const std::pair<const char*, std::string> files[] = {
      {"job.toml", kJob},
      {"recipe.lua", kRecipe},
      {"README.md", format(kReadme, name)},
      {"data/settings.md", config::to_markdown()},
      {".editor/schema.json", config::to_json(config::to_schema(catalog), config::JsonStyle::plain, 2) + "\n"},
      {".editor/kf.lua", lua::meta_text()},
      {".luarc.json", "{\n  \"runtime.version\": \"LuaJIT\",\n  \"workspace.library\": [\".editor\"]\n}\n"},
      {".gitignore", "runs/\nprofiles/\n"},
  };
  for (const auto& [file, text] : files) {
    write_file_atomic(folder / file, text);
  }
  made.keep();
  std::cout << "made " << folder.string() << ": job.toml, recipe.lua, README.md, data/settings.md\n  "
            << shell_line({"cd", folder.string()}) << " && kf-host job.toml\n";
  return 0;
}

}  // namespace kf
