#include "app/help/usage.h"

namespace kf::usage {

const char* const kTrain = R"(usage: kf-host [train] [--nproc N] [--max-restarts N] FILE
               [--section.key=value ...] [-- ARGS]

Trains the job that FILE (.toml, a .lua script, or the folder of a run)
describes; the same call continues an unfinished run.

  --dry-run            checks everything, prints plan and memory, and trains
                       nothing
  --nproc N            N processes on this machine that train together
                       (distributed.dp_replicate, dp_shard, ...); gpu: one for
                       each GPU
  --rank-output WHICH  of their lines: all (default), behind [rank K], or
                       leader: those of rank 0, and of a rank that fails
  --nnodes M           on M machines, each with such a call; --node-rank K (0 to
                       M - 1) says which one this is
  --rdzv HOST:PORT     where all meet: the first machine and a free port there;
                       or file:PATH, a new file that all can write
  --workers N          N workers (diloco.interval), each of --nproc processes,
                       that may die and come back (--max-restarts)
  --worker K           of them worker K alone; --meet says where it finds the
                       others: a folder on a disk that all see, or HOST:PORT,
                       which the command of worker 0 keeps
  --max-restarts N     starts it again, at most N times, where a signal killed
                       it, a rank was lost or the machine failed
  --restart-pause S    the longest pause before that, in seconds (default 60);
                       the first is 1 s, each next one twice as long

Processes that torchrun, srun or mpirun has started are ranks by themselves,
without --nproc.

Settings, by section (`kf-host config keys SECTION` lists one, `kf-host config
explain KEY` explains a key):

)";

const char* const kGenerate = R"(usage: kf-host generate CHECKPOINT --prompt TEXT | --prompts FILE [options]

Continues texts with the model of a checkpoint: a step_N folder, a run folder
(its latest checkpoint), a Hugging Face folder, or a model's name on its hub
(ORG/NAME).

  --prompt TEXT           what to continue; "" starts a document; may be given
                          several times
  --prompts FILE          JSON lines, - for standard input: "text",
                          {"prompt": "text"}, {"ids": [1, 2]} or a chat,
                          {"messages": [{"role": "user", "content": "text"}]}
  --chat                  prompts are what a user says: written as the model's
                          chats are, by its template or data.message_format
  --system TEXT           with --chat: what the system says first
  --max-new-tokens N      length of an answer (default: what [generate] of the
                          job says, or what fits)
  --temperature T         0 always takes the likeliest token
  --top-k K               draw from the K likeliest, and what equals the K-th
  --top-p P               draw from the likeliest with mass P only
  --min-p P               only tokens at least P times as likely as the best
  --repetition-penalty R  above 1 avoids tokens that occurred
  --stop TEXT             ends an answer before TEXT; may be given several times
  --stop-id ID            ends an answer, besides the end of a document; may be
                          given several times
  --seed N                of the draws; prompt i draws from N + i (default 0)
  --batch-size N          prompts at a time (default 16)
  --format text|json      json: one object a prompt, with ids
  --logprobs              with json: log-probability of each token under the
                          model itself
  --script FILE           Lua, run up to its first kf.run: registers the parts
                          that the job names
  --tokenizer PATH|bytes  instead of the one that the checkpoint names
  --weights KIND          saved (default), average (averaging.type, the hook
                          weight_ema), or raw (what schedule_free_adamw goes on
                          from)
  --device D              auto, cpu or cuda (default auto)
  --memory-check W        refuse (default), warn or off: what happens when the
                          model does not fit into memory

What is not given is taken from [generate] of the job.
)";

const char* const kEval =
    R"(usage: kf-host eval CHECKPOINT [--data PATH | --choices FILE | --documents FILE]
               [--section.key=value ...] [options]

Loss, perplexity, bits per byte and accuracy of a saved model: a step_N folder,
a run folder (its latest checkpoint), a Hugging Face folder or a name of its
hub. Weights are read in fp32. Without --data on the job's own sets ([eval],
data.holdout), as far as training evaluates; settings change them:
--eval.steps=-1, --eval.batch_size=8.

  --data PATH               all of this file, folder, pattern or hf:NAME, as
                            data info reads it
  --choices FILE            multiple choice: JSON lines {"prompt": ...,
                            "choices": [...], "answer": 0}
  --documents FILE          word and byte perplexity as lm-evaluation-harness
                            has them, each document by itself: JSON lines "text"
                            or {"text": ...} (.jsonl), else the file is one
                            document
  --items FILE              with --choices: writes the scores of each question,
                            JSON lines
  --delimiter TEXT          with --choices: between prompt and choice (default
                            one space)
  --format text|json        how the result is printed
  --script FILE             Lua, run up to its first kf.run: registers the parts
                            that the job names
  --tokenizer PATH|bytes    instead of the one that the checkpoint names
  --weights KIND            saved (default), average (averaging.type, the hook
                            weight_ema), or raw (what schedule_free_adamw goes
                            on from)
  --device D                auto, cpu or cuda (default auto)
)";

const char* const kConfig = R"(usage: kf-host config COMMAND [...] [--section.key=value ...] [-- ARGS]

FILE is a job (.toml, .lua), a run, one of its checkpoints, a folder with a
config.json of Hugging Face, or a model's name: a preset's, or that on its hub
(ORG/NAME). ARGS are the strings of a script (kf.args).

  check [FILE] [--world N]   every problem of the job, and the memory that it
                             takes; its files must exist
  show [FILE] [--world N] [--format toml|json]
                             the resolved job; the TOML loads back to the same
  explain [FILE] KEY         value, where it comes from, type, what is allowed
  diff A [B]                 keys in which two jobs differ (one: from defaults)
  keys [PATTERN]             all settings, a section, or what matches (optim*,
                             *lr*, warm-up)
  presets [PATTERN]          known models, for model.preset and `new`, and jobs
  new [PRESET]               a job to start from, on standard output
  schema                     JSON schema for TOML editors
  docs [presets|metrics|unbuilt|man]
                             docs/config.md, docs/presets.md, docs/metrics.md,
                             README's list of what is not there yet, or the
                             page for man, likewise
  meta                       lua/meta/kf.lua, for lua-language-server, likewise
  api                        docs/api.md, likewise
)";

const char* const kPlan = R"(usage: kf-host plan JOB --world N [--gpu NAME|FILE] [--search] [--json]
               [--section.key=value ...]

What a job takes on N ranks, by arithmetic: memory of a rank, bytes that ranks
send each other, the pipeline's order, time of a step, tokens a second, MFU, and
what to look out for. JOB is a .toml or .lua file, a run, a folder of Hugging
Face, or the name of a known model. docs/parallelism.md has the formulas, and
how far they are from published figures.

  --world N         ranks (default: the product of [distributed], where dp_shard
                    is given)
  --gpu NAME|FILE   a100, b200, h100 (default), h200, or a TOML file that
                    describes an accelerator
  --search          ranks the layouts of N ranks instead, with as many sequences
                    an update: the ten fastest that fit into memory
  --json            for scripts: bytes, seconds, FLOPs
)";

const char* const kProfile = R"(usage: kf-host profile FILE [--steps N] [--warmup N] [--out FOLDER]
               [--section.key=value ...] [-- ARGS]

Trains the first steps of a job (.toml, .lua) or of a run's job, prints where
their time went and what their memory was held for, and writes a trace for
ui.perfetto.dev or chrome://tracing. The run itself leaves nothing behind.
docs/profiling.md says more.

  --steps N      steps to look at (default 5)
  --warmup N     steps before them (default 2)
  --out FOLDER   of the trace and the tables (default profiles/NAME)

Several processes are profiled with
`kf-host --nproc N FILE --profiling.enable=true`: each writes its own trace.
)";

const char* const kNew = R"(usage: kf-host new NAME

Makes the folder NAME with a job that trains as it stands (job.toml), the same
with parts in Lua (recipe.lua), a text to learn from, and what editors need to
complete and check both. A folder that is there already is left as it is.
)";

const char* const kDoctor = R"(usage: kf-host doctor [FOLDER] [--json]

Says what this machine can do (processor, memory, torch, GPUs, disk, limits, who
started this process) and what to do about what is missing. FOLDER is where runs
will be written (default: this one); 64 MB are written there for a moment.
--json: the same for scripts.

exit status: 0 where nothing keeps a job from training, 1 where something does
)";

const char* const kData = R"(usage: kf-host data COMMAND JOB|PATH [--section.key=value ...]

  info      what files hold: documents, characters, bytes, sha256
            (kf-host data info --help)
  build     tokenizes text into the cache, as the first run of a job does
  peek      documents and rows as text: where documents end, what is not learned
            [--documents N] [--rows N] [--first N]
  verify    reads the cache and its checksums; status 5 when it is not what was
            written [--format text|json]
  stats     documents, tokens, lengths, the largest files, what was left out
            [--format text|json]
  cache     lists the caches, or removes old ones: kf-host data cache
            [list|prune] (no JOB; kf-host data cache --help)

JOB is a .toml or .lua file; PATH a file, a folder, a glob (in quotes), or
hf:NAME. Settings say how they are read: data.tokenizer_path, data.file_pattern,
data.hf_dataset_text_field, data.cache_dir, ...
)";

const char* const kDataInfo = R"(usage: kf-host data info PATH [--format text|json] [--section.key=value ...]

Reads all documents or ids and says what there is: documents, characters,
bytes, sha256.

  PATH             a file, a folder, a glob (in quotes), a job (.toml), or
                   hf:NAME, a data set of the hub
  --format json    one JSON object: documents, characters, bytes, sha256 of the
                   texts joined by NUL bytes; of token files: tokens, documents,
                   dtype, sha256 of the ids as uint32
  --data.KEY=v     how to read: file_pattern, hf_dataset_text_field,
                   text_template, messages_field, on_error, token_dtype,
                   eos_id, ...
)";

const char* const kDataCache = R"(usage: kf-host data cache [list|prune] [options]

  list               caches of tokens: size, last use, what they were made from
                     (default)
  prune              removes those that no run reads and that were not used for
                     some time; sources stay as they are

  --dir DIR          the folder of caches (default: $KF_CACHE_DIR, else
                     .kf-cache)
  --unused-days N    with prune: only what was last used at least N days ago
                     (default 30; 0: all that is not in use)
  --dry-run          with prune: says what would go
  --format text|json
)";

const char* const kTokenizer =
    R"(usage: kf-host tokenizer encode TOKENIZER [TEXT | --file FILE | --jsonl]
               [--add-special] [--special text|special|error]
       kf-host tokenizer decode TOKENIZER [ID ... | --jsonl] [--skip-special]
       kf-host tokenizer info TOKENIZER [--format json]
       kf-host tokenizer train DATA ... | --job JOB --vocab-size N --out FOLDER
               [options] [--section.key=value ...]

TOKENIZER is a tokenizer.json, a tekken.json, a SentencePiece model, a rank file
of tiktoken, a vocab.json with merges.txt beside it, a folder with one of these,
a name of the Hugging Face hub (gpt2, ORG/NAME), or "bytes".

encode  prints ids as a JSON array; without TEXT it reads standard input
  --file FILE       the text of a file
  --jsonl           one JSON string a line from standard input, one array a line
                    to standard output
  --add-special     add what the tokenizer puts around a text (BOS, EOS, [CLS])
  --special WHAT    what names of special tokens in the text are: special
                    (default) the tokens, text ordinary text, error
decode  prints the text of ids
  --jsonl           one JSON array a line from standard input, one JSON string a
                    line to standard output
  --skip-special    leave special tokens out
info    what the tokenizer is
train   learns a byte-level BPE vocabulary and writes FOLDER/tokenizer.json.
        DATA is what `kf-host data info` reads: files (text, JSON lines, CSV,
        Parquet, Arrow, compressed or not), folders, patterns, hf:NAME; settings
        say which text records have (--data.hf_dataset_text_field=body,
        --data.text_template=...)
  --job JOB         the training data of a job
  --vocab-size N    ids in all, special tokens included
  --pattern NAME    how text is split: gpt2, cl100k (default, as Llama 3),
                    qwen2, o200k, tekken
  --special NAME    a special token; again for more (default <|endoftext|>)
  --min-count N     pairs seen less often are not merged (default 2)
  --threads N       threads that count (default: all)
)";

const char* const kExport = R"(usage: kf-host export CHECKPOINT FOLDER|FILE.gguf [options]

Writes a model as Hugging Face's transformers load it: config.json, weights as
safetensors, and the tokenizer. CHECKPOINT is a step_N folder or a run folder
(its latest checkpoint). FOLDER appears whole or not at all; of an earlier
export in it, what was written then is replaced, and files of yours stay. A
model that came from a Hugging Face folder gets its config.json again, changed
where the settings say something else; any other model that of a family with the
same settings. What config.json says is read again and compared with the
settings; a weight too large for the type is an error.
Adapters ([adapter]) are merged.

  --dtype T             float32, bfloat16 or float16 (default:
                        checkpoint.export_dtype)
  --family F            a model_type: llama, qwen3, ...
  --weights WHICH       saved (default), average: their running average, raw:
                        those that schedule_free_adamw goes on from
  --max-shard-size S    the largest file: 500MB, 2GiB (default 5GB)
  --adapter             instead what the adapter has trained, for PEFT
  --script FILE         Lua, run up to its first kf.run: registers the parts
                        that the job names

FILE.gguf is written for llama.cpp instead: --dtype F32, F16 (default), BF16 or
Q8_0; --tokenizer PATH where the job names none.
)";

const char* const kAdapter = R"(usage: kf-host adapter export CHECKPOINT FOLDER [--merged] [--script FILE]

Writes what a run with [adapter] has trained. CHECKPOINT is a step_N folder or a
run folder (its latest checkpoint).

  FOLDER           gets adapter_config.json and adapter_model.safetensors, as
                   Hugging Face's PEFT reads them (and adapter.path)
  --merged         instead a checkpoint of the whole model, the adapter added to
                   its weights: for generate, eval and checkpoint.init_from
  --script FILE    Lua, run up to its first kf.run: registers the parts that the
                   job names
)";

const char* const kCheckpoint = R"(usage: kf-host checkpoint COMMAND ...

Works on what was saved, without building a model. CHECKPOINT is a step_N
folder, a run folder (its newest checkpoint), a .safetensors or .gguf file, or a
folder of Hugging Face; RUN the folder of a run, or one of checkpoints.

  list RUN [--verify] [--format text|json]
                  each checkpoint: step, tokens, loss of its last evaluation,
                  size, age, and whether it is whole: by the sizes of its files,
                  with --verify by every byte
  info CHECKPOINT job, weights by shape, and optimizer; reads headers alone
  verify CHECKPOINT|RUN ...
                  every byte against its checksum; exit status 6 when one is not
                  what was written
  diff A B [--limit N] [--format text|json]
                  which weights moved how far, the farthest first (default 20; 0
                  shows all)
  average A B ... -o OUT [--dtype T]
                  the mean of each weight (the uniform soup), added up in fp32;
                  OUT is a file, OUT.safetensors, or a folder with the settings
                  of the last one, for generate, eval and checkpoint.init_from
  convert CHECKPOINT OUT [--dtype fp32|bf16|fp16] [--experts packed|each]
                  the weights in another type, or experts as one tensor a stack
                  or one an expert; OUT as above
  merge-lora CHECKPOINT FOLDER [--script FILE]
                  the adapter added to the weights, as kf-host adapter export
                  --merged
  prune RUN [--keep-last N] [--dry-run] [--script FILE]
                  removes what retention would: all but the newest N (default:
                  checkpoint.keep_last_n), milestones, named ones, and never
                  what latest names
)";

const char* const kSweep = R"(usage: kf-host sweep COMMAND DIR

A script that returns kf.sweep{ ... } is started like any other:
`kf-host FILE.lua`, with --dry-run to check it; DIR is then runs/NAME.

  show DIR              its trials, best first
  best DIR              the settings of the best trial: a job, on stdout
  plot DIR              the objective against each parameter, and plots/*.svg
  resume DIR [--failed] goes on where it stopped; --failed: and failed trials
)";

const char* const kReplay = R"(usage: kf-host replay RUN/incidents/step_N [--section.key=value ...]

Runs a step again whose loss or gradient was not finite: repeats the run from
the checkpoint before it to that step, in the folder replay below, and prints
what every layer gives, every gradient, and where the first number stands that
is not finite. Nothing of the run itself is changed. Paths of the job count
from the folder in which the run was started.

exit status: 0 where such a number was found, 1 where there is none any more
)";

const char* const kAttach = R"(usage: kf-host attach RUN [-e CHUNK ...]

A prompt of Lua on a run that trains: RUN is its folder, or a name in runs.
`ctx` and `kf` are as in a hook; each chunk runs behind the run's next step, on
all ranks, and rank 0 answers. What has changed the run is written into its
steering.jsonl. An error in a chunk is told here, and the run goes on.

  -e CHUNK   runs a chunk and ends; several in this order, up to an error
  --wait S   waits up to S seconds for the run to begin

  ctx:loss()   ctx:evaluate()   ctx:generate("text")   ctx:set_lr_scale(0.5)
  ctx:freeze("layers.0.*")   ctx:request_save("name")   ctx:stop()

exit status: 0; with -e that of the error; 4 where the run is not on, or ends
)";

const char* const kReload = R"(usage: kf-host reload RUN [--wait S]

The run reads its script again behind its next step: changed hooks take the
place of the old ones and go on from their states, new ones come, others go.
Where the file is broken, or changes more than hooks, the old hooks stay and
the run goes on.

exit status: 0 where hooks were read; else that of the error
)";

const char* const kRegistry = R"(usage: kf-host registry [KIND] [SCRIPT.lua]

Lists the registered parts of every kind, or of one: name, origin, what it is,
its own fields. With a script, which runs up to its first kf.run and trains
nothing, those that it registers stand beside the native ones.
)";

const char* const kTest = R"(usage: kf-host test FILE_spec.lua... [--filter TEXT] [-- ARGS]

Runs the tests of each file in a fresh runtime:
`local T = require("kf.test")`, `T.test("name", function() ... end)`.

  --filter TEXT   only tests whose name contains TEXT
  -- ARGS         strings for the files (kf.args)

exit status: 0 when all passed, 3 when one failed or a file has no test
)";

const char* const kLua = R"(usage: kf-host lua [FILE | -e CHUNK | -i] [-- ARGS]

Runs Lua with everything that scripts have (`require("kf")`). What FILE returns
is not trained.

  -e CHUNK   runs the text
  -i         a prompt, after FILE or CHUNK if there are any; also without
             arguments on a terminal
  -- ARGS    strings for the script (kf.args)
)";

const char* const kCompletion = R"(usage: kf-host completion bash|zsh|fish

Prints what a shell needs to complete commands and settings:

  source <(kf-host completion bash)         in ~/.bashrc
  source <(kf-host completion zsh)          in ~/.zshrc, behind compinit
  kf-host completion fish > ~/.config/fish/completions/kf-host.fish

`make install` and the packages put all three where shells look for them.
)";
}  // namespace kf::usage
