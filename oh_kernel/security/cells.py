"""How risky is a cell: Python with lines for the shell and magics in it?"""

import ast
import re
from collections.abc import Callable, Iterator

from oh_kernel.security.findings import Finding, high, medium
from oh_kernel.security.places import is_address, is_secret_variable
from oh_kernel.security.python.risk import python_findings
from oh_kernel.security.shell.files import written_findings
from oh_kernel.security.shell.interpreters import other_language
from oh_kernel.security.shell.model import Scope
from oh_kernel.security.shell.risk import shell_findings
from oh_kernel.security.sql_risk import sql_findings
from oh_kernel.security.tables import names

Magic = Callable[[str], Iterator[Finding]]

_SHELL_CELLS = {"bash", "sh", "system", "sx", "!", "zsh", "dash", "ksh"}
_SHELL_LINES = set(
    names(
        """
    pip conda mamba micromamba uv ls cat cp mv rm mkdir rmdir less man ll lx lk ldir lf more
    alias system sx
    """
    )
)
_PYTHON_CELLS = set(
    names("time timeit capture prun python python3 python2 pypy debug memit mprun lprun px")
)
_LOOKS = set(names(
    """
    who whos who_ls matplotlib config load_ext autoreload reload_ext lsmagic magic quickref pwd
    psearch pdoc pfile pinfo pinfo2 psource precision colors page pprint xmode html HTML latex
    markdown svg javascript js pylab doctest_mode
    """
))  # fmt: skip
_ENDS_KERNEL = re.compile(
    r"kernel\.(?:restart|shutdown|kill|reconnect)|session\.(?:delete|restart)|shutdown", re.I
)
_HAS_MAGIC = re.compile(r"get_ipython|^\s*[%!?]|\?\s*$|=\s*[!%]|^\s*[,;/]\w", re.M)


def cell_findings(code: str) -> list[Finding]:
    """What `code` does when it is run as a cell of a notebook.

    >>> [finding.reason for finding in cell_findings("!rm -rf data")]
    ['deletes folders']
    """
    if not _HAS_MAGIC.search(code):
        return _plain(code)
    from IPython.core.inputtransformer2 import TransformerManager  # large

    manager = TransformerManager()  # type: ignore[no-untyped-call]  # IPython has no types here
    changed = manager.transform_cell(code)
    try:
        tree = ast.parse(changed)
    except (SyntaxError, ValueError):
        return [*_plain(code), *shell_findings(re.sub(r"^\s*[!%]+", "", code, flags=re.M))]
    found = python_findings(changed, shows_last=True)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            found += _magic_call(node.func.attr, node.args)
    return found


def _plain(code: str) -> list[Finding]:
    found = python_findings(code, shows_last=True)
    try:
        ast.parse(code)
    except (SyntaxError, ValueError):
        # The kernel takes `rm -rf data` for a magic when it is no Python.
        found += shell_findings(code)
    return found


def _magic_call(method: str, args: list[ast.expr]) -> list[Finding]:
    texts = [
        one.value if isinstance(one, ast.Constant) and isinstance(one.value, str) else ""
        for one in args
    ]
    if method == "run_line_magic" and len(texts) >= 2:
        return list(_line(texts[0], texts[1]))
    if method == "run_cell_magic" and len(texts) >= 3:
        return list(_cell(texts[0], texts[1], texts[2]))
    return []


def _line(name: str, line: str) -> Iterator[Finding]:
    if name in _SHELL_LINES:
        yield from shell_findings(
            line if name in ("system", "sx") else f"{name} {_alias(name, line)}"
        )
    elif name in ("time", "timeit", "prun", "memit", "lprun", "debug"):
        yield from python_findings(
            re.sub(r"^(?:-\w+(?:\s*\d+)?\s+)*", "", line), shows_last=name == "time"
        )
    elif name in _LINES:
        yield from _LINES[name](line)
    elif name not in _LOOKS:
        yield medium(f"runs the magic %{name}")


def _alias(name: str, line: str) -> str:
    if name != "alias":
        return line
    given, _, command = line.strip().partition(" ")
    return f"{given}={command!r}" if command else ""


def _cell(name: str, line: str, body: str) -> Iterator[Finding]:
    words = line.split()
    if name == "script":
        program = next((word for word in words if not word.startswith("-")), "")
        name = re.sub(r"[\d.]+$", "", program.rsplit("/", 1)[-1])
        if name == "sudo":
            yield high("acts as the administrator")
    if name in _SHELL_CELLS or name == "sudo":
        yield from shell_findings(body)
    elif name in _PYTHON_CELLS:
        yield from cell_findings(body)
        yield from python_findings(
            re.sub(r"^(?:-\w+(?:\s*\d+)?\s*)*", "", line) if "time" in name else ""
        )
    elif name in ("writefile", "file"):
        target = next((word for word in words if not word.startswith("-")), "")
        yield from written_findings(target.strip("'\""), Scope())
    elif name in ("javascript", "js", "html", "HTML"):
        if _ENDS_KERNEL.search(body):
            yield high("ends the kernel")
    elif name in ("sql", "bigquery", "duckdb", "sparksql", "postgres"):
        yield from sql_findings(f"{line if ' ' in line and '--' not in line else ''}\n{body}")
        yield medium("talks to a database")
    elif name in _LINES:
        yield from _LINES[name](line)
    elif name in ("perl", "ruby", "R", "julia", "node"):
        yield from other_language(body)
    elif name not in _LOOKS:
        yield medium(f"runs the magic %%{name}")


# Magics of their own


def _resets(line: str) -> Iterator[Finding]:
    yield high("empties the names of the session")


def _environment(line: str) -> Iterator[Finding]:
    name, mark, value = line.strip().partition("=")
    if not name:
        yield high("shows the environment")
    elif not mark and " " not in name:
        if is_secret_variable(name):
            yield high("shows credentials")
    else:
        words = f"{name} {value}".split()
        yield from shell_findings(f"export {words[0]}={' '.join(words[1:])!r}")


def _runs(line: str) -> Iterator[Finding]:
    words = [word for word in line.split() if not word.startswith("-")]
    yield (
        high("runs what it downloads")
        if words and is_address(words[0])
        else medium("runs a program")
    )


def _history(line: str) -> Iterator[Finding]:
    if re.search(r"-\w*g|~", line):
        yield high("shows what was typed in other sessions")


def _store(line: str) -> Iterator[Finding]:
    yield (
        high("deletes what was stored")
        if re.search(r"-z|-d", line)
        else medium("stores a variable")
    )


def _publishes(line: str) -> Iterator[Finding]:
    yield high("publishes code")


def _sql(line: str) -> Iterator[Finding]:
    yield from sql_findings(re.sub(r"^\S+://\S+\s*", "", line))
    yield medium("talks to a database")


def _ends(line: str) -> Iterator[Finding]:
    yield high("ends processes")


def _goes(line: str) -> Iterator[Finding]:
    yield medium("changes the folder")


_LINES: dict[str, Magic] = {
    "reset": _resets,
    "reset_selective": _resets,
    "env": _environment,
    "set_env": _environment,
    "run": _runs,
    "load": _runs,
    "history": _history,
    "hist": _history,
    "store": _store,
    "pastebin": _publishes,
    "gist": _publishes,
    "sql": _sql,
    "killbgscripts": _ends,
    "kill_embedded": _ends,
    "cd": _goes,
}
