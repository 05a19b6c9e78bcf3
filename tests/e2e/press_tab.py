"""Presses Tab in a real shell that has kf-host's completion. usage: press_tab.py bash|zsh|fish KF_HOST FOLDER
FOLDER has `my job.toml`, s.lua and the folder text; the shell runs there."""
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import tempfile
import termios
import time

SECONDS = 600  # for anything, on a busy machine
TAB, SHOW, CLEAR = "\t", "\x0f", "\x15"  # SHOW is bound to what prints the line

START = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], r"""PS1='> '; bind 'set show-all-if-ambiguous on'; bind 'set completion-query-items 0'
bind 'set page-completions off'; bind 'set bell-style none'; bind 'set enable-bracketed-paste off'
bind -x '"\C-o": printf "<%s>\n" "$READLINE_LINE"'
source script
"""),
    "zsh": (["zsh", "-f", "-i"], r"""PS1='> '; unsetopt prompt_sp prompt_cr auto_menu list_ambiguous list_beep beep zle_bracketed_paste 2>/dev/null; LISTMAX=100000
autoload -Uz compinit; compinit -u -D
show() { zle -I; print -r -- "<$BUFFER>" }; zle -N show; bindkey -e; bindkey '^O' show
source script
"""),
    "fish": (["fish", "--no-config", "-i"], r"""set -g fish_greeting; set -g fish_autosuggestion_enabled 0; function fish_prompt; echo '> '; end
bind \co 'printf "<%s>\n" (commandline)'
source script
"""),
}


class Shell:
    def __init__(self, name, host, folder):
        self.name = name
        words, setup = START[name]
        self.home = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        os.symlink(host, os.path.join(self.home.name, "kf-host"))
        script = os.path.join(self.home.name, "script")
        with open(script, "w", encoding="utf-8") as file:
            subprocess.run([host, "completion", name], stdout=file, check=True)
        # A file, so that nothing of it is echoed as if the shell had said it.
        with open(os.path.join(self.home.name, "setup"), "w", encoding="utf-8") as file:
            file.write(setup.replace("source script", f"source '{script}'"))
        environment = {"HOME": self.home.name, "ZDOTDIR": self.home.name, "TERM": "xterm", "LC_ALL": "C.UTF-8",
                       "PATH": f"{self.home.name}:{os.environ['PATH']}", "XDG_CONFIG_HOME": self.home.name, "XDG_DATA_HOME": self.home.name}
        self.child, self.terminal = pty.fork()
        if self.child == 0:
            mode = termios.tcgetattr(0)
            for key in (termios.VKILL, termios.VWERASE, termios.VLNEXT, termios.VDISCARD, termios.VREPRINT):
                mode[6][key] = b"\0"  # keys are the shell's, also while it does not read
            termios.tcsetattr(0, termios.TCSANOW, mode)
            os.chdir(folder)
            os.execvpe(words[0], words, environment)
        fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 200, 2000, 0, 0))  # no line is folded
        self.said = ""
        self.type(f"source '{self.home.name}/setup'; echo rea''dy\r")
        self.until(r"\bready\b")

    def type(self, text):
        os.write(self.terminal, text.encode())

    def until(self, pattern):
        """What the shell writes up to what matches, which is taken off; the match."""
        end = time.monotonic() + SECONDS
        while not (found := re.search(pattern, self.said)):
            ready, _, _ = select.select([self.terminal], [], [], max(0, end - time.monotonic()))
            if not ready:
                raise AssertionError(f"{self.name} does not say {pattern}, but {self.said!r}")
            try:
                more = os.read(self.terminal, 1 << 16)
            except OSError:
                more = b""
            if not more:
                raise AssertionError(f"{self.name} has ended: {self.said!r}")
            # Colours and moves of the cursor tell nothing here.
            self.said += re.sub(r"\x1b(\[[0-9;?<>=]*[a-zA-Z]|\(B|[=>])", "", more.decode(errors="replace"))
        before, self.said = self.said[:found.start()], self.said[found.end():]
        return before, found

    def tab(self, typed):
        """The line after Tab, and what was written before it was shown: the list where there are several."""
        self.type(typed + TAB + SHOW)
        listed, found = self.until(r"<([^<>\r\n]*)>\r?\n")
        self.type(CLEAR)
        return found.group(1), listed

    def expect(self, typed, line):
        got, listed = self.tab(typed)
        if got != line:
            raise AssertionError(f"{self.name}: {typed!r} became {got!r}, not {line!r}; it wrote {listed!r}")

    def lists(self, typed, words):
        got, listed = self.tab(typed)
        missing = [word for word in words if word not in listed.replace(typed, "", 1)]
        if missing:
            raise AssertionError(f"{self.name}: {typed!r} became {got!r} and lists no {missing}: {listed!r}")


def check(shell):
    # Commands, their words, and files.
    shell.expect("kf-host chec", "kf-host checkpoint ")
    shell.expect("kf-host config expl", "kf-host config explain ")
    shell.expect("kf-host help ta", "kf-host help tail ")
    shell.expect("kf-host completion z", "kf-host completion zsh ")
    shell.lists("kf-host data ", ["info", "build", "peek", "verify", "stats", "cache"])
    shell.expect("kf-host my", "kf-host my\\ job.toml ")
    shell.expect("kf-host s.", "kf-host s.lua ")
    shell.expect("kf-host data info te", "kf-host data info text/")
    shell.expect("kf-host config check my", "kf-host config check my\\ job.toml ")
    shell.expect("kf-host s.lua conf", "kf-host s.lua conf")  # a command stands first
    # Keys, and their values.
    end = " " if shell.name == "fish" else "="  # either stands before a value
    shell.expect("kf-host s.lua --optimizer.muon_mom", "kf-host s.lua --optimizer.muon_momentum" + end)
    shell.expect("kf-host s.lua --dry", "kf-host s.lua --dry-run ")
    shell.expect("kf-host eval runs --averaging.ty", "kf-host eval runs --averaging.type" + end)
    shell.expect("kf-host --npr", "kf-host --nproc ")
    shell.lists("kf-host s.lua --scheduler.", ["cheduler.name", "cheduler.warmup_steps"])
    shell.expect("kf-host s.lua --optimizer.name=lio", "kf-host s.lua --optimizer.name=lion ")
    shell.expect("kf-host s.lua --optimizer.name lio", "kf-host s.lua --optimizer.name lion ")
    shell.lists("kf-host s.lua --optimizer.name=", ["adamw", "lion", "muon"])
    shell.expect("kf-host s.lua --train.mixed_precision=bf", "kf-host s.lua --train.mixed_precision=bf16 ")
    shell.expect("kf-host s.lua --run.fresh=t", "kf-host s.lua --run.fresh=true ")
    shell.expect("kf-host s.lua --data.dataset_path=te", "kf-host s.lua --data.dataset_path=text/")
    # Options of commands.
    shell.expect("kf-host plot --metr", "kf-host plot --metric ")
    shell.expect("kf-host generate runs --max-n", "kf-host generate runs --max-new-tokens ")


def check_bash(shell):
    shell.expect("kf-host s.lua --optimi", "kf-host s.lua --optimizer.")
    shell.expect("kf-host tail --optimi", "kf-host tail --optimi")  # no settings there
    shell.expect("kf-host my\\ job.toml --run.fresh s", "kf-host my\\ job.toml --run.fresh s.lua ")  # true by itself
    # Some people take = away from what cuts words.
    shell.type("COMP_WORDBREAKS=${COMP_WORDBREAKS//=}; echo c''ut\r")
    shell.until(r"\bcut\b")
    shell.expect("kf-host s.lua --optimizer.name=lio", "kf-host s.lua --optimizer.name=lion ")
    shell.expect("kf-host s.lua --optimizer.muon_mom", "kf-host s.lua --optimizer.muon_momentum=")
    shell.expect("kf-host s.lua --data.dataset_path=te", "kf-host s.lua --data.dataset_path=text/")


name, kf_host, place = sys.argv[1:]
tried = Shell(name, kf_host, place)
check(tried)
if name == "bash":
    check_bash(tried)
