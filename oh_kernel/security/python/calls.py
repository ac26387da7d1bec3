"""How risky is one call in Python: does it delete, run, end or hide something?"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from oh_kernel.security.findings import Finding, high, medium
from oh_kernel.security.python import files, network, runs, stores
from oh_kernel.security.shell.model import Kind, Word
from oh_kernel.security.tables import names

if TYPE_CHECKING:
    from oh_kernel.security.python.risk import PythonAnalysis

Rule = Callable[["PythonAnalysis", ast.Call, str], Iterator[Finding]]

_ENDS_KERNEL = re.compile(
    r"(?:os\._exit|os\.abort|exit|quit|os\.exec[lv]\w*|signal\.raise_signal"
    r"|faulthandler\._sigsegv|ctypes\.string_at"
    r"|.*\.do_shutdown|.*\.shutdown_kernel|.*\.kernel\.\w*(?:restart|shutdown)\w*"
    r"|get_ipython\(\)\.(?:reset|ask_exit|magic_reset)"
    r"|globals\(\)\.clear|get_ipython\(\)\.user_ns\.clear|locals\(\)\.clear|vars\(\)\.clear"
    r"|.*kernel_manager\w*\.\w*shutdown\w*)$"
)
_BACK_DOORS = re.compile(
    r"(?:types\.(?:FunctionType|CodeType)|marshal\.loads?|.*\.__subclasses__|.*__globals__.*)$"
)
_STRONG_MODULES = re.compile(
    r"(?:os|sys|subprocess|shutil|builtins|__builtins__|posix|__import__\(\)|ctypes)$"
)
_OF_A_PATH = names(
    "remove unlink rmtree rmdir rm rename replace touch mkdir symlink_to hardlink_to"
)
_STRONG_NAMES = names("system popen exec eval rmtree run remove unlink")


def findings(analysis: PythonAnalysis, node: ast.Call, name: str) -> Iterator[Finding]:
    """What the call `node` of the function `name` does."""
    rule = _RULES.get(name)
    method = name.rsplit(".", 1)[-1]
    if rule is not None:
        yield from rule(analysis, node, name)
    elif (
        name in runs.SHELL_TEXTS
        or method in ("exec_command", "run_command", "sudo")
        or name.startswith("os.exec")
    ):
        yield from runs.shell_text(analysis, node, name)
    elif name in runs.SUBPROCESS or re.match(r"os\.(?:spawn|posix_spawn)", name):
        yield from runs.subprocess_call(analysis, node, name)
    elif name.startswith("sh.") and name.count(".") == 1:
        yield from runs.run_words(
            [Word(name[3:]), *(analysis.values.word(one) for one in node.args)]
        )
    elif method in _OF_A_PATH:
        yield from files.of_a_path(analysis, node, name)
    elif method in ("kill", "terminate", "send_signal"):
        yield from runs.ends(analysis, node, name)
    elif method in ("write_text", "write_bytes") and isinstance(node.func, ast.Attribute):
        yield from files.written(analysis, analysis.values.word(node.func.value))
    elif method == "open" and isinstance(node.func, ast.Attribute):
        yield from files.opening(analysis, node)
    elif files.LIBRARY_WRITES.match(method) and not name.startswith(("json.dumps", "pickle.dumps")):
        yield from files.by_a_library(analysis, node)
    if _ENDS_KERNEL.match(name):
        yield high("ends the kernel or empties its names")
    yield from _handed_on(analysis, node)
    yield from _hidden(analysis, node, name)
    yield from network.findings(analysis, node, name)
    yield from stores.findings(analysis, node, name)


def _handed_on(analysis: PythonAnalysis, node: ast.Call) -> Iterator[Finding]:
    """`map(os.remove, paths)` calls what it is given, over and over."""
    values = [*node.args, *(one.value for one in node.keywords)]
    for given in values:
        if not isinstance(given, ast.Name | ast.Attribute):
            continue
        name = analysis.values.dotted(given)
        if (name in _RULES and name != "open") or name in runs.SHELL_TEXTS:
            rest = [one for one in values if one is not given]
            analysis.scope.loops += 1
            yield from findings(analysis, ast.Call(func=given, args=rest, keywords=[]), name)
            analysis.scope.loops -= 1


def _hidden(analysis: PythonAnalysis, node: ast.Call, name: str) -> Iterator[Finding]:
    """Names that are put together, and doors behind the language."""
    looks_up = name in ("getattr", "builtins.getattr", "setattr") and len(node.args) > 1
    if looks_up and _hides_attribute(analysis, *node.args[:2]):
        yield high("hides the function's name")
    if name in ("__import__", "importlib.import_module", "importlib.__import__") and node.args:
        word = analysis.values.word(node.args[0])
        if _is_put_together(word) or (name == "__import__" and not word.is_known):
            yield high("hides a module's name")
        else:
            yield medium("runs a module by its name")
    if _BACK_DOORS.match(name):
        yield high("hides what it runs")
    if (
        isinstance(node.func, ast.Subscript)
        and re.search(r"globals\(\)|__builtins__|__dict__", analysis.values.dotted(node.func))
        and not isinstance(node.func.slice, ast.Constant)
    ):
        yield high("hides the function's name")
    if name.startswith("__import__().") and isinstance(node.func, ast.Attribute):
        yield from _imported_call(analysis, node, name)


def _hides_attribute(analysis: PythonAnalysis, owner: ast.expr, attribute: ast.expr) -> bool:
    """`getattr(os, "sys" + "tem")`, or any name in a module that runs or deletes."""
    word = analysis.values.word(attribute)
    is_dangerous = _STRONG_MODULES.match(analysis.values.dotted(owner)) is not None
    return _is_put_together(word) or (
        is_dangerous and (not word.is_known or word.text in _STRONG_NAMES)
    )


def _is_put_together(word: Word) -> bool:
    return word.flow.kind is Kind.DECODED or word.is_joined


def _imported_call(analysis: PythonAnalysis, node: ast.Call, name: str) -> Iterator[Finding]:
    """`__import__("os").system(...)` is judged as `os.system(...)`."""
    for one in ast.walk(node.func):
        if (
            isinstance(one, ast.Call)
            and analysis.values.dotted(one.func) == "__import__"
            and one.args
        ):
            full = analysis.values.word(one.args[0]).text + name.removeprefix("__import__()")
            if "__import__" not in full:
                yield from findings(analysis, node, full)
            return


# Bindings


def assigning(analysis: PythonAnalysis, target: ast.expr, value: ast.expr) -> Iterator[Finding]:
    """What it means that `target` gets `value`."""
    source = ast.unparse(target)
    name = analysis.values.dotted(target) if isinstance(target, ast.Attribute) else source
    is_check = name.startswith("ssl.") or re.search(
        r"\.(?:verify|verify_mode|check_hostname)$", source
    )
    if is_check and ast.unparse(value) not in ("True", "ssl.CERT_REQUIRED"):
        yield high("turns certificate checks off")
    if re.match(r"os\.environ\[", source):
        text = analysis.values.word(value).text
        if re.search(r"PYTHONHTTPSVERIFY|CA_BUNDLE|SSL_NO_VERIFY|TLS_REJECT", source) and text in (
            "",
            "0",
            "1",
        ):
            yield high("turns certificate checks off")
        if re.search(r"LD_PRELOAD|BASH_ENV|PYTHONSTARTUP", source):
            yield high("makes later programs run other code")
        yield medium("sets a variable")


def forgetting(target: ast.expr) -> Iterator[Finding]:
    """What it means that a name or an element is deleted."""
    source = ast.unparse(target)
    if re.match(r"(?:globals|locals|vars)\(\)\[|.*\buser_ns\[|sys\.modules\[", source):
        yield high("empties the names of the session")
    else:
        yield medium("forgets a name")


def naming(node: ast.Attribute) -> Iterator[Finding]:
    """What a name alone tells: the doors behind the language."""
    if node.attr in ("__subclasses__", "__globals__"):
        yield high("hides what it runs")


_RULES: dict[str, Rule] = {**files.RULES, **runs.RULES}
