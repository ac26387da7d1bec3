"""Which commands only run another command or text, and which is that?"""

import re
from collections.abc import Collection, Iterator, Sequence

from oh_kernel.security.findings import Finding, high
from oh_kernel.security.shell import interpreters
from oh_kernel.security.shell.flows import flow_of_words, sought_names
from oh_kernel.security.shell.interpreters import (
    OTHERS,
    PYTHON,
    SHELLS,
    SQL_PROGRAMS,
    Inner,
    Text,
    Words,
)
from oh_kernel.security.shell.model import Call, Flow, Kind, Word
from oh_kernel.security.tables import names

# Name: options that take a word, and how many words stand before the command.
_PREFIXES: dict[str, tuple[str, int]] = {
    "sudo": ("-u -g -h -p -C -r -t -U -D --user --group", 0),
    "doas": ("-u -C", 0),
    "nice": ("-n --adjustment", 0),
    "ionice": ("-c -n -p", 0),
    "nohup": ("", 0),
    "time": ("-f -o", 0),
    "timeout": ("-s -k --signal --kill-after", 1),
    "gtimeout": ("-s -k", 1),
    "stdbuf": ("-i -o -e", 0),
    "setsid": ("", 0),
    "watch": ("-n -d --interval", 0),
    "exec": ("-a", 0),
    "builtin": ("", 0),
    "busybox": ("", 0),
    "toybox": ("", 0),
    "strace": ("-o -e -p -s -E", 0),
    "ltrace": ("-o -e", 0),
    "taskset": ("", 1),
    "numactl": ("", 0),
    "chrt": ("", 1),
    "flock": ("-w -E --timeout", 1),
    "unbuffer": ("", 0),
    "chronic": ("", 0),
    "caffeinate": ("-t -w", 0),
    "coproc": ("", 0),
    "srun": ("-n -N -p -t -c -J --partition --time", 0),
    "mpirun": ("-n -np -H --hostfile", 0),
    "mpiexec": ("-n -np", 0),
    "xvfb-run": ("-s -n", 0),
    "fakeroot": ("", 0),
    "noglob": ("", 0),
    "chroot": ("", 1),
    "tsp": ("", 0),
    "script": ("-c", 0),
    "eatmydata": ("", 0),
    "proxychains": ("-f", 0),
    "torsocks": ("", 0),
    "entr": ("", 0),
    "prlimit": ("", 0),
    "systemd-run": ("-p -u", 0),
    "runuser": ("-u", 0),
    "direnv exec": ("", 1),
    "uv run": ("--with -p --python --extra --group", 0),
    "poetry run": ("", 0),
    "pipenv run": ("", 0),
    "pixi run": ("-e", 0),
    "hatch run": ("", 0),
    "rye run": ("", 0),
    "pdm run": ("", 0),
    "conda run": ("-n -p --name --prefix --cwd", 0),
    "mamba run": ("-n -p", 0),
    "micromamba run": ("-n -p", 0),
    "docker exec": ("-e -u -w --env --user --workdir", 1),
    "podman exec": ("-e -u -w", 1),
    "docker run": (
        "-e -v -w -p -u -m -l -h --name --env --volume --workdir --user --gpus --network"
        " --mount --memory "
        "--cpus --shm-size --env-file --entrypoint --pid --ipc --platform --add-host --device"
        " --restart", 1),
    "podman run": ("-e -v -w -p -u --name --env --volume --workdir --network", 1),
    "docker compose exec": ("-e -u -w", 1),
    "docker compose run": ("-e -u -w -v --name", 1),
    "docker-compose exec": ("-e -u", 1),
    "docker-compose run": ("-e -u", 1),
    "git submodule foreach": ("", 0),
    "git bisect run": ("", 0),
}  # fmt: skip
_MORE_THAN_WRAPPERS = set(
    names(
        """
    tmux screen vim vi nvim sudo doas docker podman ssh chroot systemd-run runuser git find
    """
    )
)
_XARGS = names(
    """
    -n -P -I -L -d -s -a -E --max-args --max-procs --replace --delimiter --arg-file
    """
)
_SSH = names("-i -p -l -o -F -J -L -R -D -W -b -c -E -e -m -O -S -w")
_FIND_RUNS = ("-exec", "-execdir", "-ok", "-okdir")


def inner(call: Call) -> Iterator[Inner]:
    """The commands and texts that `call` runs."""
    if call.name in SHELLS or call.name == "su":
        yield from interpreters.of_a_shell(call)
    elif PYTHON.match(call.name) or call.name in OTHERS:
        yield from interpreters.of_an_interpreter(call)
    elif call.name in ("eval", "trap", "source", ".", "alias"):
        yield from interpreters.of_a_builtin(call)
    elif call.name in ("xargs", "parallel"):
        yield from _for_each_line(call)
    elif call.name in ("find", "fd", "fdfind"):
        yield from _found(call)
    elif call.name in ("ssh", "autossh", "vagrant"):
        yield from _remote(call)
    elif call.name in SQL_PROGRAMS:
        yield from interpreters.of_a_database(call)
    elif call.name in ("tmux", "screen"):
        yield from _in_a_session(call)
    elif call.name in ("vim", "vi", "nvim", "ex", "view", "emacs", "ed"):
        yield from _in_an_editor(call)
    else:
        yield from _prefixed(call)


def is_more_than_wrapper(call: Call) -> bool:
    """Whether the command does something by itself, too."""
    return call.name in _MORE_THAN_WRAPPERS or call.name in SQL_PROGRAMS


def findings(call: Call) -> Iterator[Finding]:
    """What running something in this way means by itself."""
    if call.name in ("sudo", "doas", "su", "pkexec", "runuser", "chroot", "systemd-run", "gosu"):
        yield high("acts as the administrator")


def _for_each_line(call: Call) -> Iterator[Inner]:
    words = _rest(
        call, _XARGS if call.name == "xargs" else ["-j", "--jobs", "-a", "-I", "--colsep"], 0
    )
    if call.name == "parallel" and any(word.text.startswith(":::") for word in words):
        at = next(i for i, word in enumerate(words) if word.text.startswith(":::"))
        words, given = words[:at], words[at + 1 :]
    else:
        given = [_line_of(call.stdin)]
    if not words:
        if call.name == "parallel":
            yield Text(call.stdin)
        return
    if call.name == "parallel" and len(words) == 1 and " " in words[0].text:
        yield Text(flow_of_words(words))
        return
    braces = call.value("-I", "--replace")
    mark = braces.text if braces is not None else "{}"
    if any(mark in word.text for word in words):
        yield Words(tuple(_put(word, mark, given) for word in words), repeats=True)
    else:
        yield Words((*words, *given), repeats=True)


def _line_of(flow: Flow) -> Word:
    """A word that stands for each line of the input."""
    if flow.kind is Kind.TEXT:
        return Word(flow.text.strip(), is_wild=" " in flow.text.strip())
    if flow.names:
        return Word(" ".join(flow.names), is_wild=True)
    return Word("$line", flow, ("line",), is_wild=True)


def _put(word: Word, mark: str, given: list[Word]) -> Word:
    if mark not in word.text or not given:
        return word
    first = given[0]
    text = word.text.replace(mark, first.text)
    return Word(text, first.flow, first.variables, is_wild=True, is_joined=word.is_joined)


def _found(call: Call) -> Iterator[Inner]:
    texts = call.texts
    runs = _FIND_RUNS if call.name == "find" else ("-x", "-X", "--exec", "--exec-batch")
    start = next((text for text in texts if not text.startswith("-")), ".")
    found = Word(_found_name(start, sought_names(call)), is_wild=True)
    for index, text in enumerate(texts):
        if text in runs:
            ends = [i for i in range(index, len(texts)) if texts[i] in (";", "\\;", "+")]
            words = call.args[index + 1 : ends[0] if ends else None]
            yield Words(tuple(_put(word, "{}", [found]) for word in words), repeats=True)


def _found_name(start: str, names: Sequence[str]) -> str:
    """A pattern for what `find START -name NAME` gives."""
    return f"{start.rstrip('/')}/{names[-1] if names else '*'}".removeprefix("./")


def _remote(call: Call) -> Iterator[Inner]:
    if call.name == "vagrant":
        given = call.value("-c", "--command")
        words = [given] if given and call.texts[:1] == ["ssh"] else []
    else:
        words = _rest(call, _SSH, 1)
    if words:
        yield Text(flow_of_words(words), stdin=call.stdin)
    elif call.stdin.kind is not Kind.NOTHING and call.operands(_SSH):
        yield Text(call.stdin)


def _in_a_session(call: Call) -> Iterator[Inner]:
    """What is typed into a terminal of another program, or started in one."""
    texts = [word for word in call.args if re.search(r"\s", word.text)]
    yield from (Text(flow_of_words([word])) for word in texts)
    if call.name == "screen":
        yield Words(tuple(_rest(call, ["-S", "-dmS", "-c", "-t", "-p"], 0)))


def _in_an_editor(call: Call) -> Iterator[Inner]:
    for word in call.args:
        found = re.match(r"(?:\+|-c)?:?(?:r|w|%|execute)?\s*!(.+)", word.text)
        if found:
            yield Text(Flow(Kind.TEXT, found[1]))


def _prefixed(call: Call) -> Iterator[Inner]:
    if call.name == "env":
        yield from _env(call)
        return
    if call.name == "command" and call.has("-v", "-V"):
        return
    if call.name == "command":
        yield Words(tuple(_rest(call, ["-p"], 0)), call.stdin)
        return
    if call.name == "kubectl" and "exec" in call.texts and "--" in call.texts:
        yield Words(tuple(call.args[call.texts.index("--") + 1 :]), call.stdin)
        return
    plain = [text for text in call.texts if not text.startswith("-")]
    for length in (2, 1, 0):
        entry = _PREFIXES.get(" ".join([call.name, *plain[:length]]))
        if entry is not None and (length == 0 or call.texts[:1] == plain[:1]):
            yield from _after_prefix(call, entry[0].split(), length, entry[1])
            return


def _after_prefix(call: Call, valued: Collection[str], length: int, before: int) -> Iterator[Inner]:
    words = _rest(Call(call.name, call.args[length:], call.stdin, call.scope), valued, before)
    if call.name == "script" and (given := call.value("-c")) is not None:
        yield Text(flow_of_words([given]))
    elif len(words) == 1 and " " in words[0].text:
        yield Text(flow_of_words(words), stdin=call.stdin)
    elif words:
        yield Words(tuple(words), call.stdin)


def _env(call: Call) -> Iterator[Inner]:
    split = call.value("-S", "--split-string")
    if split is not None:
        yield Text(flow_of_words([split]), stdin=call.stdin)
        return
    words = _rest(call, ["-u", "-C", "--unset", "--chdir"], 0)
    while words and re.match(r"\w+=", words[0].text):
        words = words[1:]
    if words:
        yield Words(tuple(words), call.stdin)


def _rest(call: Call, valued: Collection[str], before: int) -> list[Word]:
    """The words from the inner command on: after options, and after `before` operands."""
    index = 0
    args = call.args
    while index < len(args):
        text = args[index].text
        if text == "--":
            index += 1
            return args[index + before :]
        if not text.startswith("-") or text == "-":
            if before == 0:
                return args[index:]
            before -= 1
        elif text in valued:
            index += 1
        index += 1
    return []
