"""How risky is a call in Python that runs text, or starts or ends processes?"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from oh_kernel.security.findings import Finding, high, medium
from oh_kernel.security.shell.model import NOTHING, Kind, Word
from oh_kernel.security.shell.risk import ShellAnalysis
from oh_kernel.security.tables import by_name, names

if TYPE_CHECKING:
    from oh_kernel.security.python.risk import PythonAnalysis

_OWN_FORK_ENDS = re.compile(
    r"(?:self\.)?\w*(?:proc|process|child|worker|pool|server|thread|job|popen|p|client"
    r"|executor)\w*$",
    re.I,
)
SHELL_TEXTS = set(
    names(
        """
    os.system os.popen subprocess.getoutput subprocess.getstatusoutput
    asyncio.create_subprocess_shell pexpect.run pexpect.spawn pexpect.runu popen2.popen2
    commands.getoutput invoke.run fabric.run sh.bash get_ipython().system
    get_ipython().getoutput get_ipython().getoutput() get_ipython().system_raw
    get_ipython().system_piped posix.system nt.system ipython.system
    """
    )
)
SUBPROCESS = set(
    names(
        """
    subprocess.run subprocess.call subprocess.check_call subprocess.check_output
    subprocess.Popen asyncio.create_subprocess_exec anyio.run_process trio.run_process
    psutil.Popen
    """
    )
)
_CODE = set(names(
    """
    exec eval compile builtins.exec builtins.eval execfile get_ipython().run_cell
    get_ipython().ex code.InteractiveInterpreter().runsource pandas.eval_python timeit.timeit
    """
))  # fmt: skip


def shell_text(analysis: PythonAnalysis, node: ast.Call, name: str) -> Iterator[Finding]:
    given = node.args[0] if node.args else next((one.value for one in node.keywords), None)
    if given is None:
        return
    if len(node.args) > 1 and name.startswith(("os.exec", "pexpect.spawn")):
        yield from run_words([analysis.values.word(given), *_elements(analysis, node.args[1:])])
        return
    if name.endswith(".sudo"):
        yield high("acts as the administrator")
    yield from run_shell(analysis, analysis.values.word(given))


def run_shell(analysis: PythonAnalysis, word: Word) -> Iterator[Finding]:
    """What a shell does with the text of `word`."""
    match word.flow.kind:
        case Kind.DOWNLOAD:
            yield high("runs what it downloads")
        case Kind.DECODED:
            yield high("hides what it runs")
    shell = ShellAnalysis()
    shell.scope.downloads = analysis.scope.downloads
    if shell.run_text(word.text).kind is Kind.SECRET:
        yield high("shows credentials")
    yield from shell.findings


def run_words(words: list[Word]) -> Iterator[Finding]:
    """What the command of these words does, without a shell."""
    if not words:
        return
    shell = ShellAnalysis()
    plain = [
        Word(w.text, w.flow if w.flow.kind > Kind.TEXT else NOTHING, w.variables) for w in words
    ]
    if shell.call(plain, NOTHING).kind is Kind.SECRET:
        yield high("shows credentials")
    yield from shell.findings


def subprocess_call(analysis: PythonAnalysis, node: ast.Call, name: str) -> Iterator[Finding]:
    args = node.args[1:] if name.startswith(("os.spawn", "os.posix_spawn")) else node.args
    given = (
        args[0] if args else next((one.value for one in node.keywords if one.arg == "args"), None)
    )
    if given is None:
        return
    in_shell = any(one.arg == "shell" and not _is_false(one.value) for one in node.keywords)
    elements = _list_of(analysis, given)
    if elements is not None and not in_shell:
        yield from run_words(_elements(analysis, elements))
    elif name == "asyncio.create_subprocess_exec":
        yield from run_words(_elements(analysis, node.args))
    else:
        yield from run_shell(analysis, analysis.values.word(given))


def _list_of(analysis: PythonAnalysis, node: ast.expr) -> list[ast.expr] | None:
    value: object = node
    for _ in range(5):
        if isinstance(value, ast.Name):
            value = analysis.values.variables.get(value.id)
        elif isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add):
            left, right = _list_of(analysis, value.left), _list_of(analysis, value.right)
            return None if left is None else [*left, *(right or [value.right])]
    return value.elts if isinstance(value, ast.List | ast.Tuple) else None


def _elements(analysis: PythonAnalysis, nodes: list[ast.expr]) -> list[Word]:
    words: list[Word] = []
    for node in nodes:
        if isinstance(node, ast.Starred):
            word = analysis.values.word(node.value)
            words.append(Word(word.text, word.flow, word.variables, is_wild=True))
        elif isinstance(node, ast.List | ast.Tuple):
            words += _elements(analysis, node.elts)
        else:
            words.append(analysis.values.word(node))
    return words


def _is_false(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and not node.value


def _code(analysis: PythonAnalysis, node: ast.Call, name: str) -> Iterator[Finding]:
    from oh_kernel.security.python.risk import python_findings  # code inside of code is walked anew

    if not node.args:
        return
    word = analysis.values.word(node.args[0])
    match word.flow.kind:
        case Kind.DOWNLOAD:
            yield high("runs what it downloads")
        case Kind.DECODED | Kind.SECRET:
            yield high("hides what it runs")
        case Kind.DATA | Kind.NOTHING:
            yield medium("runs code of the workspace")
        case Kind.UNKNOWN if name != "compile":
            yield high("runs code that the text does not show")
        case Kind.TEXT:
            if word.is_joined:
                yield high("hides what it runs")
            yield from python_findings(word.text, shows_last=True)


def _spawn(analysis: PythonAnalysis, node: ast.Call, name: str) -> Iterator[Finding]:
    yield high("opens a shell that a person cannot see")


def _fork(analysis: PythonAnalysis, node: ast.Call, name: str) -> Iterator[Finding]:
    yield high("starts processes without end") if analysis.loops else medium("starts a process")


def _kill(analysis: PythonAnalysis, node: ast.Call, name: str) -> Iterator[Finding]:
    source = ast.unparse(node.args[0]) if node.args else ""
    number = ast.unparse(node.args[1]) if len(node.args) > 1 else ""
    if number == "0":
        return
    own = re.search(r"\.pid$|read_text|open\(|pid_?file|child|proc", source)
    yield (
        medium("ends a process of its own") if own else high("ends processes that are not its own")
    )


def ends(analysis: PythonAnalysis, node: ast.Call, name: str) -> Iterator[Finding]:
    value = node.func.value if isinstance(node.func, ast.Attribute) else None
    base = name.rpartition(".")[0]
    source = ast.unparse(value) if value is not None else ""
    found = analysis.values.word(value) if value is not None else Word("")
    # psutil finds any process; one that this code started is its own.
    if "psutil" in base or "psutil" in found.text or "process_iter" in found.text:
        yield high("ends processes that are not its own")
    elif source in analysis.own_processes or _OWN_FORK_ENDS.match(source) or "Popen" in base:
        yield medium("ends a process of its own")
    else:
        yield medium("ends something")


RULES = {
    **dict.fromkeys(_CODE, _code),
    **by_name(
        {
            "os.kill os.killpg signal.pthread_kill": _kill,
            "pty.spawn": _spawn,
            "os.fork os.forkpty": _fork,
        }
    ),
}
