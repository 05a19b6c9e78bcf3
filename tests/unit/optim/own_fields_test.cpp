// The own tables of native optimizers: what is refused, and that what is given arrives.

#include <catch2/catch.hpp>

#include "builtins/builtins.h"
#include "config/load/load.h"
#include "optim/kron.h"
#include "optim/mars.h"
#include "optim/rmsprop.h"
#include "optim/scion.h"
#include "optim/soap.h"
#include "optim/sophia.h"
#include "registry/registries.h"

namespace kf {
namespace {

config::Loaded load(const std::string& option) {
  config::Request request;
  request.overrides = {option};
  request.files_must_exist = false;
  return config::load(request, native_registries().catalog());
}

std::string problem(const std::string& option) {
  const config::Loaded loaded = load(option);
  return loaded.report.problems.empty() ? "" : loaded.report.problems[0].message;
}

}  // namespace

TEST_CASE("optimizer: values at which a native optimizer divides by zero or stands still are errors", "[optimizer]") {
  CHECK(problem("--optimizer.sophia_h.gamma=0") == "0 must be positive");
  CHECK(problem("--optimizer.sophia_h.update_interval=0") == "0 must be >= 1");
  CHECK(problem("--optimizer.rmsprop.momentum=1") == "1 must be in [0, 1)");
  CHECK(problem("--optimizer.kron.momentum=1") == "1 must be in [0, 1)");
  CHECK(problem("--optimizer.kron.preconditioner_lr=0") == "0 must be positive");
  CHECK(problem("--optimizer.scion.hidden_radius=0") == "0 must be positive");
  CHECK(problem("--optimizer.scion.other_radius=-1") == "-1 must be positive");
  CHECK(problem("--optimizer.soap.frequency=0") == "0 must be >= 1");
  CHECK(problem("--optimizer.mars.gamma=-0.1") == "-0.1 must be non-negative (>= 0)");
  CHECK(problem("--optimizer.mars.gamma=inf").find("finite") != std::string::npos);
  CHECK(problem("--optimizer.mars.gamma=0").empty());  // no correction is a fair comparison
  CHECK(problem("--optimizer.kron.momentum=0.9999999").empty());
}

TEST_CASE("optimizer: the defaults of own fields are those of the options, and hold", "[optimizer]") {
  const config::Catalog catalog = native_registries().catalog();
  int fields = 0;
  for (const config::PartInfo& part : catalog.at("optimizer")) {
    for (const config::Row& row : part.fields) {
      CAPTURE(part.name, row.name);
      CHECK_FALSE(row.required);
      CHECK_FALSE(row.doc.empty());
      const auto* whole = std::get_if<config::Int>(&row.fallback.value);
      CHECK(row.check.holds(whole != nullptr ? static_cast<double>(*whole) : std::get<double>(row.fallback.value)));
      ++fields;
    }
  }
  CHECK(fields == 11);
  CHECK(mars_fields().read({}).gamma == MarsOptions().gamma);
  CHECK(kron_fields().read({}).max_dim == KronOptions().max_dim);
}

TEST_CASE("optimizer: what a job says of an own field is what the options hold", "[optimizer]") {
  const auto table = [](const std::string& part, const std::string& option) {
    return load("--optimizer." + part + "." + option).config.parts.at("optimizer." + part);
  };
  CHECK(mars_fields().read(table("mars", "gamma=0.5")).gamma == 0.5);
  CHECK(rmsprop_fields().read(table("rmsprop", "momentum=0.25")).momentum == 0.25);
  CHECK(scion_fields().read(table("scion", "other_radius=7")).other_radius == 7);
  CHECK(scion_fields().read(table("scion", "other_radius=7")).hidden_radius == ScionOptions().hidden_radius);
  CHECK(soap_fields().read(table("soap", "frequency=3")).frequency == 3);
  CHECK(kron_fields().read(table("kron", "preconditioner_lr=0.2")).preconditioner_lr == 0.2);
  CHECK(sophia_fields().read(table("sophia_h", "update_interval=4")).interval == 4);
}

}  // namespace kf
