// What a job resolves to.

#include "config/plan/plan.h"
#include "config/plan/budget.h"
#include "config/plan/derived.h"
#include "job.h"

namespace kf::test {

TEST_CASE("config: outputs lie below the run's folder unless a key says otherwise", "[config]") {
  const config::Plan plain = config::make_plan(load_cli({"--run.name=exp"}), "");
  CHECK(plain.dir == "runs/exp");
  CHECK(plain.checkpoint_dir == "runs/exp/checkpoints");
  CHECK(plain.tensorboard_dir == "runs/exp/tb_logs");
  const config::Plan own =
      config::make_plan(load_cli({"--run.dir=/out", "--checkpoint.dir=ck", "--profiling.trace_dir=profiler_traces"}), "a/job.toml");
  CHECK(own.dir == "/out");
  CHECK(own.checkpoint_dir == "ck");
  CHECK(own.trace_dir == "./profiler_traces");
  CHECK(own.name == "job");
}

TEST_CASE("config: nothing stays automatic in a plan", "[config]") {
  const config::Plan plan =
      config::make_plan(load_cli({"--distributed.tp=2", "--distributed.dp_replicate=2", "--model.vocab_size=65538"}), "", 16, true);
  CHECK(plan.mesh.degree(Axis::dp_shard) == 4);
  CHECK(plan.data_ranks == 8);
  CHECK(plan.device == "cuda");
  CHECK(plan.token_dtype == "uint32");
  CHECK(config::make_plan(load_cli({"--model.vocab_size=65536"}), "").token_dtype == "uint16");
  CHECK(config::make_plan(load_cli({"--data.token_dtype=int32"}), "").token_dtype == "int32");
  CHECK(config::make_plan(load_cli({}), "").device == "cpu");
}

TEST_CASE("config: ranks of expert parallelism count, and read data of their own", "[config]") {
  const config::Plan plan = config::make_plan(load_cli({"--distributed.ep=2", "--distributed.tp=4", "--model.num_experts=8"}), "", 32);
  CHECK(plan.mesh.degrees() == PerAxis{1, 1, 4, 1, 2, 4});  // dp_shard as KempnerForge resolves it
  CHECK(plan.data_ranks == 8);
  CHECK_THROWS_WITH(config::make_plan(load_cli({"--distributed.dp_shard=2"}), "", 3),
                    Catch::Matchers::Contains("the degrees ask for 2 ranks"));
}

TEST_CASE("config: the plan has one list of sinks, and says what is missing without the usual two", "[config]") {
  const auto plan = [](std::vector<std::string> keys) { return config::make_plan(load_cli(std::move(keys)), ""); };
  const auto sinks = [&](const char* list) { return join(plan({std::string("--metrics.sinks=") + list}).sinks, " "); };
  CHECK(join(plan({}).sinks, " ") == "console jsonl");
  CHECK(sinks("[]") == "console jsonl");
  CHECK(sinks("['csv']") == "console jsonl csv");
  CHECK(sinks("['csv', 'jsonl', 'console']") == "csv jsonl console");
  CHECK(sinks("['jsonl']") == "jsonl");
  CHECK(sinks("['csv', 'console', 'csv']") == "csv console");  // each once
  CHECK(join(plan({"--metrics.enable_wandb=true", "--metrics.enable_tensorboard=true"}).sinks, " ") == "console jsonl wandb tensorboard");
  CHECK(plan({}).notes.empty());
  CHECK(join(plan({"--metrics.sinks=['jsonl']"}).notes, "\n").find("leaves out \"console\": the terminal") != std::string::npos);
  CHECK(join(plan({"--metrics.sinks=['console']"}).notes, "\n").find("there is no metrics.jsonl") != std::string::npos);
}

TEST_CASE("config: a budget in tokens gives the steps and says how", "[config]") {
  const std::vector<std::string> job{"--train.max_tokens=1000", "--train.batch_size=4", "--train.seq_len=32", "--scheduler.warmup_steps=2"};
  const config::Plan plan = config::make_plan(load_cli(job), "");
  CHECK(plan.tokens_per_step == 128);
  CHECK(plan.max_steps == 8);
  REQUIRE(plan.notes.size() == 1);
  CHECK(plan.notes[0] ==
        "train.max_tokens = 1,000 at 128 tokens a step is 8 steps (rounded up: 24 tokens past the budget): warm-up 2, decay 6");
}

TEST_CASE("config: the same global batch on more ranks keeps the steps", "[config]") {
  const auto steps = [](const char* batch, std::int64_t world) {
    return config::make_plan(load_cli({"--train.max_tokens=1000", batch, "--train.seq_len=32", "--scheduler.warmup_steps=0"}), "", world)
        .max_steps;
  };
  CHECK(steps("--train.batch_size=4", 1) == steps("--train.batch_size=2", 2));
  CHECK(steps("--train.batch_size=4", 2) == 4);
}

TEST_CASE("config: derived widths are the reference's", "[config]") {
  config::ModelConfig m;
  const auto width = [&m](std::int64_t dim, double multiplier) {
    m.dim = dim;
    m.ffn_dim_multiplier = multiplier;
    return config::ffn_hidden_dim(m);
  };
  CHECK(width(256, 1.0) == 768);
  CHECK(width(512, 1.0) == 1536);
  CHECK(width(2048, 1.3) == 7168);
  CHECK(width(4096, 1.0) == 11008);
  CHECK(width(8192, 1.3) == 28416);
  width(1024, 1.0);
  for (const auto& [multiplier, expected] : std::vector<std::pair<double, std::int64_t>>{
           {1.0, 2816}, {0.5, 1408}, {0.25, 704}, {0.33, 928}, {0.1, 288}, {0.001, 16}, {1.5, 4224}}) {
    m.moe_expert_ffn_multiplier = multiplier;
    CHECK(config::expert_ffn_hidden_dim(m) == expected);
  }
}

}  // namespace kf::test
