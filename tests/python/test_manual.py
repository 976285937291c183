"""Tests the man pages, and the completions in real shells: bash, zsh and fish in terminals, whose lines are typed and completed.

A shell, or a checker of man pages (mandoc, groff), that is not installed is skipped. The Debian packages are mandoc, groff, zsh and fish.
"""
import fcntl
import os
import pty
import re
import select
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
COMMAND = os.path.abspath(os.environ.get("CLEAVE_COMMAND", os.path.join(ROOT, "build/cleave")))
passed = failed = 0


def check(what, problem):
    global passed, failed
    passed, failed = passed + (problem is None), failed + (problem is not None)
    if problem is not None:
        print(f"FAIL {what}: {problem}")


def cleave(*arguments):
    return subprocess.run([COMMAND, *arguments], capture_output=True, text=True, check=True).stdout


def topics():
    """Returns {topic: its options}, with the short ones, from the help texts."""
    found = {}
    commands = re.findall(r"^  ([a-z-]+) ", cleave("--help").split("Commands")[1].split("\n\n")[0], re.M)
    names = commands + [f"gnn {verb}" for verb in re.findall(r"^  ([a-z]+) ", cleave("help", "gnn").split("Verbs")[1].split("\n\n")[0], re.M)]
    for name in names:
        text = cleave("help", *name.split())
        found[name] = {option for line in re.findall(r"^  (-.*)", text, re.M)
                       for option in re.findall(r"(?:^|, )(--?[a-z][a-z-]*)", line.split("  ")[0])}
    found["gnn"] |= {"--json", "-v", "--verbose", "-q", "--quiet", "--color", "-h", "--help"}  # its help lists the verbs only
    return found


# ---- Man pages ----

def plain(page):
    """The text of a man page, without markup."""
    return re.sub(r"\\f[BIR]", "", page).replace("\\-", "-").replace("\\(aq", "'")


def test_pages(found, folder):
    pages = {"cleave", *(f"cleave-{name.replace(' ', '-')}" for name in found)}
    subprocess.run([COMMAND, "help", "--man-pages", folder], check=True)
    written = {name.removesuffix(".1") for name in os.listdir(folder)}
    check("one page per command", None if written == pages else f"{sorted(written ^ pages)}")
    for name, options in found.items():
        with open(os.path.join(folder, f"cleave-{name.replace(' ', '-')}.1"), encoding="ascii") as file:
            page = file.read()
        check(f"help --man {name}", None if cleave("help", "--man", *name.split()) == page else "differs from the page that --man-pages writes")
        tags = {option for line in re.findall(r"^\.TP\n(-.*)", plain(page), re.M) for option in re.findall(r"(?:^|, )(--?[a-z][a-z-]*)", line)}
        check(f"options of {name}", None if tags == options else f"{sorted(tags ^ options)}")
    with open(os.path.join(folder, "cleave.1"), encoding="ascii") as file:
        main = plain(file.read())
    check("commands of cleave(1)", None if all(f".BR cleave-{name} (1)" in main for name in found if " " not in name) else "a command is missing")
    done = subprocess.run([COMMAND, "help", "--man", "plam"], capture_output=True, text=True)
    check("an unknown page", None if done.returncode == 2 and "no man page of 'plam'" in done.stderr else done.stderr)
    for page in sorted(pages):
        path = os.path.join(folder, f"{page}.1")
        if shutil.which("mandoc"):
            done = subprocess.run(["mandoc", "-Tlint", path], capture_output=True, text=True)
            check(f"mandoc {page}", done.stdout + done.stderr or None)
        if shutil.which("groff"):
            done = subprocess.run(["groff", "-man", "-ww", "-Tutf8", path], capture_output=True, text=True)
            check(f"groff {page}", done.stderr or None)


# ---- Shells ----

BEGIN = {
    "bash": "PS1='> '; bind 'set show-all-if-ambiguous on'; bind 'set bell-style none'; bind 'set page-completions off'; "
            "bind 'set completion-query-items 100000'; bind 'set enable-bracketed-paste off'; "
            "show() { printf '{{%s}}' \"$READLINE_LINE\"; }; bind -x '\"\\C-x\":show'; source <(cleave completion bash)\n",
    "zsh": "PS1='> '; unsetopt beep; LISTMAX=100000; autoload -Uz compinit; compinit -u -D; source <(cleave completion zsh); "
           "show() { print -rn -- \"{{$BUFFER}}\" }; zle -N show; bindkey '^X' show\n",
    "fish": "function fish_prompt; echo '> '; end; set -g fish_autosuggestion_enabled 0; cleave completion fish | source; "
            "bind \\cx 'printf \"{{%s}}\" (commandline)'\n",
}
START = {"bash": ["bash", "--norc", "--noprofile", "-i"], "zsh": ["zsh", "-f", "-i"], "fish": ["fish", "--no-config", "-i"]}


class Shell:
    """A shell in a terminal of its own."""

    def __init__(self, name, folder):
        self.name = name
        self.process, self.terminal = pty.fork()
        if self.process == 0:
            os.chdir(folder)
            os.environ.update(PATH=f"{os.path.dirname(COMMAND)}:{os.environ['PATH']}", TERM="xterm", HOME=folder, HISTFILE="", CLEAVE_CACHE_DIR="")
            os.execvp(START[name][0], START[name])
        fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 300, 400, 0, 0))
        self.read(2)
        self.type(BEGIN[name] + "echo be''gun\n")
        text = self.read(60, "begun")
        if "begun" not in text:
            raise RuntimeError(f"{name} did not start: {text[-500:]}")
        self.read(0.5)

    def type(self, text):
        os.write(self.terminal, text.encode())

    def read(self, seconds, until=None):
        """Returns what the shell writes until it contains `until`, or until it has written nothing for this time."""
        text, end = "", time.monotonic() + seconds
        while time.monotonic() < end and (until is None or not re.search(until, text)):
            if select.select([self.terminal], [], [], 0.05)[0]:
                try:
                    text += os.read(self.terminal, 65536).decode(errors="replace")
                except OSError:
                    break
        return text

    def complete(self, line):
        """Types a line and a tab. Returns the completed line."""
        self.type("\x15" + line)
        self.read(0.05)
        self.type("\t")
        for _ in range(3):  # a shell may drop a key that arrives while it completes
            self.type("\x18")
            text = self.read(10, r"\{\{.*?\}\}")
            if match := re.search(r"\{\{(.*?)\}\}", text, re.S):
                return match.group(1)
        return f"(nothing: {text[-200:]!r})"

    def close(self):
        os.close(self.terminal)
        os.waitpid(self.process, 0)


# What is typed, and what it becomes. A shell may add a blank; options with values may get '=', and lists a comma.
LINES = [
    ("cleave pla", "cleave plan"),
    ("cleave plan --obj", "cleave plan --objective"),
    ("cleave plan --objective lat", "cleave plan --objective latency"),
    ("cleave plan --objective=thr", "cleave plan --objective=throughput"),
    ("cleave plan model.onnx --strategy opt", "cleave plan model.onnx --strategy optimal"),
    ("cleave plan --devices cp", "cleave plan --devices cpu"),
    ("cleave plan --devices npu,cp", "cleave plan --devices npu,cpu"),
    ("cleave plan --devices=npu,cp", "cleave plan --devices=npu,cpu"),
    ("cleave plan --pin conv=np", "cleave plan --pin conv=npu"),
    ("cleave plan --pin=conv=np", "cleave plan --pin=conv=npu"),
    ("cleave plan mod", "cleave plan model.onnx"),
    ("cleave plan -q mod", "cleave plan -q model.onnx"),
    ("cleave plan --objective latency --profile cos", "cleave plan --objective latency --profile costs.json"),
    ("cleave plan --profile=cos", "cleave plan --profile=costs.json"),
    ("cleave plan -o cos", "cleave plan -o costs.json"),
    ("cleave plan --npu-spec def", "cleave plan --npu-spec default"),
    ("cleave compile model.onnx -o fol", "cleave compile model.onnx -o folder/"),
    ("cleave run model.onnx --input x=inp", "cleave run model.onnx --input x=input.npy"),
    ("cleave run model.onnx --graph aut", "cleave run model.onnx --graph auto"),
    ("cleave gnn run --graph gra", "cleave gnn run --graph graph.npz"),
    ("cleave gnn gen", "cleave gnn generate"),
    ("cleave gnn plan --eff", "cleave gnn plan --effort"),
    ("cleave gnn plan --effort qui", "cleave gnn plan --effort quick"),
    ("cleave cache pru", "cleave cache prune"),
    ("cleave completion zs", "cleave completion zsh"),
    ("cleave check-backend np", "cleave check-backend npu"),
    ("cleave test fol", "cleave test folder/"),
    ("cleave help prof", "cleave help profile"),
    ("cleave plan --nothing-like-this", "cleave plan --nothing-like-this"),
]


def test_lines(name, folder):
    shell = Shell(name, folder)
    for typed, expected in LINES:
        line = shell.complete(typed)
        check(f"{name}: {typed}", None if re.sub(r"[ =,]$", "", line) == expected else f"became '{line}', expected '{expected}'")
    shell.close()


def listed(name, line, folder):
    """Returns the words that the shell offers for a line."""
    environment = dict(os.environ, PATH=f"{os.path.dirname(COMMAND)}:{os.environ['PATH']}", HOME=folder)
    if name == "bash":
        script = (f"source <(cleave completion bash); COMP_WORDS=({line} ''); [[ '{line}' == *- ]] && unset 'COMP_WORDS[-1]'; "
                  "COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _cleave cleave \"${COMP_WORDS[COMP_CWORD]}\"; printf '%s\\n' \"${COMPREPLY[@]}\"")
        done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, env=environment, cwd=folder)
    else:
        script = f"cleave completion fish | source; complete -C '{line}'"
        done = subprocess.run(["fish", "--no-config", "-c", script], capture_output=True, text=True, env=environment, cwd=folder)
    if done.stderr:
        print(done.stderr)
    return {word.split("\t")[0] for word in done.stdout.splitlines() if word.strip()}


def test_lists(name, found, folder):
    """Every option of every command is offered, and nothing else."""
    commands = {topic for topic in found if " " not in topic}
    words = listed(name, "cleave" if name == "bash" else "cleave ", folder)
    check(f"{name}: commands", None if commands <= words <= commands | {"help", "--help", "--version"} else f"{sorted(words ^ commands)}")
    for topic, options in found.items():
        long = {option for option in options if option.startswith("--")}
        if topic == "gnn":
            continue  # it needs a verb first
        words = {word for word in listed(name, f"cleave {topic} --", folder) if word.startswith("--")}
        check(f"{name}: options of {topic}", None if words == long else f"{sorted(words ^ long)}")


def test_zsh_lists(found, folder):
    shell = Shell("zsh", folder)
    for topic, options in found.items():
        if topic == "gnn":
            continue
        shell.type(f"\x15cleave {topic} --")
        shell.read(0.05)
        shell.type("\t\x18")
        words = set(re.findall(r"--[a-z][a-z-]*", shell.read(20, r"\{\{.*?\}\}")))
        long = {option for option in options if option.startswith("--")}
        check(f"zsh: options of {topic}", None if long - words == set() else f"lacks {sorted(long - words)}")
    shell.close()


def test_devices():
    """The names of devices in the scripts exist, although a device may not be available."""
    names = re.search(r"^_cleave_devices='(.*)'$", cleave("completion", "bash"), re.M).group(1).split()
    for name in names:
        done = subprocess.run([COMMAND, "devices", "--devices", name], capture_output=True, text=True)
        check(f"device {name}", done.stderr if "is unknown; the backends are" in done.stderr else None)
    done = subprocess.run([COMMAND, "devices", "--devices", "ncpu"], capture_output=True, text=True)
    check("no device", None if "is unknown; the backends are" in done.stderr else done.stderr)


def main():
    found = topics()
    test_devices()
    check("topics", None if len(found) > 12 and all(found.values()) else f"{found}")
    with tempfile.TemporaryDirectory() as folder:
        test_pages(found, os.path.join(folder, "man"))
        files = os.path.join(folder, "files")
        os.makedirs(os.path.join(files, "folder"))
        for name in ("model.onnx", "costs.json", "graph.npz", "input.npy"):
            open(os.path.join(files, name), "wb").close()
        for name in ("bash", "zsh", "fish"):
            if not shutil.which(name):
                print(f"{name} is not installed: skipped")
                continue
            test_lines(name, files)
            if name != "zsh":
                test_lists(name, found, files)
            else:
                test_zsh_lists(found, files)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
