#include "app/help/usage.h"

namespace kf::usage {

const char* const kReport = R"(usage: kf-host report RUN... [-o FILE.html]

One HTML page of runs: charts of all their numbers, settings that differ,
incidents, samples, environment; sweeps with their trials. It loads nothing from
elsewhere and needs no network.

  RUN      the folder of a run or its name in runs/, the folder of a sweep, or
           one with such in it
  -o FILE  where to (default: report.html); -: to standard output
)";

const char* const kServe = R"(usage: kf-host serve [DIR] [--port N] [--steer]

The same page over all runs in DIR and below it (default: runs), which follows
them while they grow. It answers on 127.0.0.1 alone and only to whoever has the
address that it prints; it changes nothing without --steer. Ctrl-C ends it.

  --port N  default 8484; 0: one that is free
  --steer   runs that train on this machine can be told to save, evaluate, stop,
            or change their learning rate (docs/steering.md)
)";

}  // namespace kf::usage
