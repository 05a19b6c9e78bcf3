// [profiling] and kf-host profile through the real program.

#include <catch2/catch.hpp>

#include <algorithm>
#include <csignal>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "config/tree/json.h"
#include "e2e/script_run.h"
#include "e2e/toy.h"

namespace fs = std::filesystem;
using Catch::Contains;
using kf::config::Node;
using kf::test::Finished;
using kf::test::ScriptRun;
using kf::test::Toy;

namespace {

/// An event of a trace, as the format has it.
struct Event {
  std::string name, category, phase;
  double begin = 0, took = 0;  // us
  std::int64_t process = 0, thread = 0;
  double end() const { return begin + took; }
};

double number(const Node* node) {
  const auto* const whole = std::get_if<std::int64_t>(&node->value);
  return whole != nullptr ? static_cast<double>(*whole) : std::get<double>(node->value);
}

/// Every object of a trace is checked: what each kind of them must have, and whole.
std::vector<Event> events_of(const std::string& text) {
  const Node tree = kf::config::parse_json(text, "the trace");
  std::vector<Event> out;
  bool well = true;  // one check for all: there are thousands
  for (const Node& node : std::get<kf::config::Array>(tree.value)) {
    const kf::config::Table& object = *node.table();
    const auto word = [&](const char* key) { return std::get<std::string>(object.find(key)->value); };
    Event event{word("name"), "", word("ph")};
    event.process = std::get<std::int64_t>(object.find("pid")->value);
    well = well && object.find("args") != nullptr;
    if (event.phase == "X") {
      event.category = word("cat");
      event.thread = std::get<std::int64_t>(object.find("tid")->value);
      event.begin = number(object.find("ts"));
      event.took = number(object.find("dur"));
      well = well && event.begin >= 0 && event.took >= 0;
    } else {
      well = well && (event.phase == "M" || event.phase == "C");
    }
    out.push_back(event);
  }
  CHECK(well);
  return out;
}

std::vector<Event> named(const std::vector<Event>& events, const std::string& name) {
  std::vector<Event> out;
  std::copy_if(events.begin(), events.end(), std::back_inserter(out), [&](const Event& event) { return event.name == name; });
  return out;
}

bool inside(const Event& inner, const Event& outer) {
  constexpr double kRounding = 0.0015;  // times have three decimals
  return inner.thread == outer.thread && inner.begin >= outer.begin - kRounding && inner.end() <= outer.end() + kRounding;
}

std::size_t count_inside(const std::vector<Event>& events, const Event& outer) {
  return static_cast<std::size_t>(std::count_if(events.begin(), events.end(), [&](const Event& event) { return inside(event, outer); }));
}

/// Ranges of a thread are apart, or one lies in the other.
void check_nesting(const std::vector<Event>& events) {
  std::map<std::int64_t, std::vector<Event>> threads;
  for (const Event& event : events) {
    if (event.phase == "X" && event.category != "kernel") {
      threads[event.thread].push_back(event);
    }
  }
  for (auto& [thread, own] : threads) {
    std::stable_sort(own.begin(), own.end(),
                     [](const Event& a, const Event& b) { return std::pair(a.begin, -a.took) < std::pair(b.begin, -b.took); });
    std::vector<Event> open;
    bool nested = true;
    for (const Event& event : own) {
      while (!open.empty() && open.back().end() <= event.begin + 0.0015) {
        open.pop_back();
      }
      nested = nested && (open.empty() || inside(event, open.back()));
      open.push_back(event);
    }
    CHECK(nested);
  }
}

}  // namespace

TEST_CASE("profile: one command trains a few steps, tells where their time and memory went, and leaves nothing else", "[profile]") {
  const Toy toy;
  const Finished done = toy.host({"profile", "toy.toml", "--steps", "3", "--eval.interval=4"});
  INFO(done.out << done.err);
  REQUIRE(done.status == 0);
  CHECK_THAT(done.out, Contains("3 steps of ") && Contains("layers.*.mlp") && Contains("aten::mm") && Contains("optimizer"));
  CHECK_THAT(done.out, Contains("at its peak, in ") && Contains("activations") && Contains("layers.1"));
  CHECK(done.out.find(toy.read("profiles/toy/steps_3_to_5.rank_0.txt")) != std::string::npos);
  CHECK_FALSE(fs::exists(toy / "runs"));

  const std::vector<Event> events = events_of(toy.read("profiles/toy/steps_3_to_5.rank_0.json"));
  check_nesting(events);
  for (const int step : {3, 4, 5}) {
    const std::vector<Event> steps = named(events, "step " + std::to_string(step));
    REQUIRE(steps.size() == 1);
    CHECK(count_inside(named(events, "forward"), steps[0]) == 2);  // micro-batches
    CHECK(count_inside(named(events, "backward"), steps[0]) == 2);
    CHECK(count_inside(named(events, "data"), steps[0]) == 1);
    CHECK(count_inside(named(events, "optimizer"), steps[0]) == 1);
    CHECK(count_inside(named(events, "evaluation"), steps[0]) == (step == 4 ? 1 : 0));
    double parts = 0;  // of the step: they lie behind each other
    for (const char* phase : {"data", "forward", "backward", "gradients", "optimizer", "evaluation"}) {
      for (const Event& event : named(events, phase)) {
        parts += inside(event, steps[0]) ? event.took : 0;
      }
    }
    CHECK(parts <= steps[0].took + 0.02);
    CHECK(parts > 0);
  }
  const Event forward = named(events, "forward")[0];
  const Event backward = named(events, "backward")[0];
  for (const std::string layer : {"0", "1"}) {
    CHECK(count_inside(named(events, "layers." + layer), forward) == 1);
    CHECK(count_inside(named(events, "layers." + layer + ".attention"), backward) >= 1);
    CHECK(count_inside(named(events, "layers." + layer + ".mlp"), backward) >= 1);
  }
  CHECK(count_inside(named(events, "attention"), forward) == 2);
  CHECK(count_inside(named(events, "torch::autograd::CppNode<kf::(anonymous namespace)::GatedMlpNode>"), backward) > 0);
  CHECK(count_inside(named(events, "aten::mm"), forward) + count_inside(named(events, "kf::product"), forward) > 0);  // as was measured
  CHECK(std::count_if(events.begin(), events.end(), [](const Event& event) { return event.phase == "C"; }) > 10);
  CHECK_FALSE(named(events, "making a batch").empty());
}

TEST_CASE("profile: a run profiles the steps of [profiling], and moves no number", "[profile]") {
  const Toy toy;
  REQUIRE(toy.train({"--run.name=plain", "--checkpoint.interval=4"}).status == 0);
  const Finished done = toy.train(
      {"--run.name=seen", "--checkpoint.interval=4", "--profiling.enable=true", "--profiling.start_step=4", "--profiling.end_step=5"});
  INFO(done.out << done.err);
  REQUIRE(done.status == 0);
  CHECK_THAT(done.err, Contains("the profile is in runs/seen/profiler_traces/step_4.rank_0.json") && !Contains("no effect"));
  CHECK(toy.series("plain", "loss") == toy.series("seen", "loss"));
  CHECK(toy.series("plain", "grad_norm") == toy.series("seen", "grad_norm"));
  const std::vector<Event> events = events_of(toy.read("runs/seen/profiler_traces/step_4.rank_0.json"));
  CHECK(named(events, "step 4").size() == 1);
  CHECK(named(events, "step 3").empty());
  CHECK(named(events, "step 5").empty());
  CHECK_FALSE(named(events, "save").empty());
}

TEST_CASE("profile: callbacks of scripts are named by their line", "[profile]") {
  const ScriptRun script(R"(
kf.register.hook("watcher", { on_step_end = function(ctx) end })
kf.register.scheduler("half", function() return function(step) return 0.5 end end)
return { extends = "toy.toml", hooks = { "watcher" }, scheduler = { name = "half" } }
)");
  const Finished done = script.toy.host({"profile", "s.lua", "--steps", "1", "--warmup", "1", "--out", "here"});
  INFO(done.out << done.err);
  REQUIRE(done.status == 0);
  const std::vector<Event> events = events_of(script.toy.read("here/step_2.rank_0.json"));
  const auto calls = [&](const std::string& part) {
    return std::count_if(events.begin(), events.end(),
                         [&](const Event& event) { return event.category == "call" && event.name.find(part) != std::string::npos; });
  };
  CHECK(calls("s.lua:3: hook 'watcher', step_end") == 1);
  CHECK(calls("s.lua:4: scheduler 'half'") >= 1);
}

TEST_CASE("profile: the trace of a killed run can be read, and that of a failed one is whole", "[profile]") {
  const Toy toy;
  SECTION("killed") {
    kf::test::Options options;
    options.cwd = toy.folder();
    kf::test::Process process(toy.command({"toy.toml", "--train.max_steps=1000000", "--profiling.enable=true", "--profiling.start_step=2",
                                           "--profiling.end_step=1000000", "--eval.enabled=false", "--checkpoint.interval=5"}),
                              options);
    REQUIRE(process.wait_for("saved step_5"));
    process.signal(SIGKILL);
    process.wait();
    std::string text = toy.read("runs/toy/profiler_traces/steps_2_to_999999.rank_0.json");
    REQUIRE(text.back() != ']');
    if (text.back() != '}') {  // killed inside of a write
      text.resize(text.rfind(",\n"));
    }
    const std::vector<Event> events = events_of(text + "]");
    CHECK(named(events, "step 2").size() == 1);
    CHECK(named(events, "step 4").size() == 1);
  }
  SECTION("failed") {
    toy.write("s.lua",
              "local kf = require('kf')\n"
              "kf.register.hook('bad', { on_step_begin = function(ctx) if ctx.step == 3 then error('no') end end })\n"
              "return { extends = 'toy.toml', hooks = { 'bad' }, profiling = { enable = true, start_step = 2, end_step = 9 } }\n");
    CHECK(toy.host({"s.lua"}).status == 3);
    const std::vector<Event> events = events_of(toy.read("runs/s/profiler_traces/steps_2_to_8.rank_0.json"));
    CHECK(named(events, "step 3").size() == 1);
    check_nesting(events);
    CHECK_THAT(toy.read("runs/s/profiler_traces/steps_2_to_8.rank_0.txt"), Contains("steps of "));
  }
}

TEST_CASE("profile: each rank writes a trace of its own, on one line of time", "[profile]") {
  const Toy toy;
  const Finished done =
      toy.host({"--nproc", "2", "toy.toml", "--distributed.dp_replicate=2", "--train.max_steps=4", "--profiling.enable=true",
                "--profiling.start_step=2", "--profiling.end_step=4", "--profiling.trace_dir=traces"});
  INFO(done.out << done.err);
  REQUIRE(done.status == 0);
  std::vector<Event> first, second;
  for (std::vector<Event>* rank : {&first, &second}) {
    const int number = rank == &first ? 0 : 1;
    const std::vector<Event> events = events_of(toy.read("traces/steps_2_to_3.rank_" + std::to_string(number) + ".json"));
    check_nesting(events);
    CHECK(std::all_of(events.begin(), events.end(), [&](const Event& event) { return event.process == number; }));
    CHECK(std::any_of(events.begin(), events.end(), [](const Event& event) { return event.name.rfind("waiting for ranks", 0) == 0; }));
    *rank = named(events, "step 3");
    REQUIRE(rank->size() == 1);
  }
  CHECK(first[0].begin < second[0].end());  // neither can end a step before the other has begun it
  CHECK(second[0].begin < first[0].end());
}

TEST_CASE("profile: where no profile is written it has failed, before the training where that can be known", "[profile]") {
  const ScriptRun script(
      "require('kf').register.hook('bad', { on_step_begin = function() os.execute('rm -rf gone; touch gone') end })\n"
      "return { extends = 'toy.toml', hooks = { 'bad' } }\n");
  script.toy.write("file", "x");
  const Finished early = script.toy.host({"profile", "toy.toml", "--out", "file"});
  CHECK(early.status == 1);
  CHECK_THAT(early.err, Contains("the folder ") && Contains("cannot be made") && Contains("--out") && !Contains("step 1"));
  const Finished late = script.toy.host({"profile", "s.lua", "--out", "gone", "--steps", "1"});
  INFO(late.out << late.err);
  CHECK(late.status == 1);
  CHECK_THAT(late.err, Contains("there will be no profile") && Contains("no profile was written to "));
}

TEST_CASE("profile: steps that never come are said", "[profile]") {
  const Toy toy;
  const Finished late = toy.train({"--train.max_steps=3", "--profiling.enable=true", "--profiling.start_step=7", "--profiling.end_step=9"});
  CHECK(late.status == 0);
  CHECK_THAT(late.err, Contains("nothing was profiled") && Contains("profiling.start_step (7)"));
  const Finished none = toy.host({"profile", "toy.toml", "--warmup", "3", "--train.max_steps=3"});
  CHECK(none.status == 2);
  CHECK_THAT(none.err, Contains("the run was over at step 3, and the profile begins with step 4: --warmup 2 or less"));
  const Finished aside = toy.host({"profile", "toy.toml", "--warmup", "3", "--train.max_steps=3", "--out", "there/below"});
  CHECK(aside.status == 2);
  CHECK_FALSE(fs::exists(toy / "there"));
  toy.write("here/mine", "x");
  CHECK(toy.host({"profile", "toy.toml", "--warmup", "3", "--train.max_steps=3", "--out", "here/below"}).status == 2);
  CHECK_FALSE(fs::exists(toy / "here/below"));
  CHECK(fs::exists(toy / "here/mine"));
  CHECK(toy.host({"profile"}).status == 2);
  CHECK_THAT(toy.host({"profile", "toy.toml", "--steps", "0"}).err, Contains("--steps: 0 is not between 1 and 1000"));
}
