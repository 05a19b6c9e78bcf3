// Help of the commands that look at runs.

#include "app/help/usage.h"

namespace kf::usage {

const char* const kRuns = R"(usage: kf-host runs [DIR] [--state STATE] [--last N] [--json]

The runs in DIR (default: runs) and the folders below it, the newest last:
state, steps, last loss, loss of the last evaluation, tokens a second, when it
was last written to, and why it ended. On a narrow terminal the last columns are
left out.

  --state STATE   only those that are: running (a process has the folder),
                  finished (all of its steps), stopped (before, by a signal or a
                  hook), failed (with an error), killed (its process is gone and
                  has not said how it ended), away (likewise, on a machine whose
                  processes cannot be seen from here), or unreadable
  --last N        only the newest N
  --json          all that is known, as one object, for scripts
)";

const char* const kPlot = R"(usage: kf-host plot RUN ... [--metric NAME] ... [options]

Draws numbers of runs on the terminal; of many rows each column shows the
smallest and the largest. RUN is a run's folder, or a name in runs.

  --metric NAME   of the rows: loss (default), grad_norm, lr, ...; of
                  evaluations: eval.loss, eval.SET.loss; may be given more
                  than once
  --x AXIS        step (default), tokens, seconds (of training), time (of day)
  --from X        only what lies from there on
  --log-x, --log-y
  --width N, --height N
                  of the picture in characters (default: the terminal's width;
                  20 lines)
)";

const char* const kCompare = R"(usage: kf-host compare RUN RUN ... [--all] [--json]

Settings, results and environments of runs side by side, where they differ. RUN
is a run's folder, or a name in runs.

  --all    what is alike, too
  --json   for programs: {"runs": [...], "settings": {KEY: [a value a run]},
           "results": ..., "environments": ...}
)";

const char* const kTail = R"(usage: kf-host tail RUN [--rows N]

Prints the last rows of a run as the run itself prints them, and each new one,
until the run ends. RUN is a run's folder, or a name in runs.

  --rows N   how many at first (default 10)

exit status: 0 where the run finished or was stopped, 1 where it failed or
was killed
)";

const char* const kReproduce = R"(usage: kf-host reproduce RUN [--steps N] [--dir FOLDER]
               [--section.key=value ...]

Runs a run again from the copies of its job, scripts and tokenizer in its
folder, from its first step, in a new folder, and compares the losses, gradient
norms and evaluations of all rows. Before that it says in what the data, the
program and the machine differ from those of the run. The data are not in the
folder: they must be where the job names them, from the folder in which the run
was started or from here.

  --steps N        only its first N steps
  --dir FOLDER     the new folder (default: RUN.reproduced)
  --section.key=v  a setting that is another one here, as
                   --data.dataset_path=/mnt/text

As many processes train as in the run. Of a run that went on with other settings
each part is run under its own.

exit status: 0 where all are equal to the bit, 1 where they part: the first step
at which they do is named with both values
)";

const char* const kBundle = R"(usage: kf-host bundle RUN [FILE]

Writes what a run was made of and what it gave into one archive, FILE (.tar.zst
or .tar.gz; default: NAME.tar.zst): job, scripts, tokenizer, record, rows, logs
and artifacts; neither data nor checkpoints. The same run gives the same bytes.
`tar -xf FILE` makes a folder NAME of it, which `kf-host reproduce NAME` runs
again where the data are.
)";

}  // namespace kf::usage
