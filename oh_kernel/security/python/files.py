"""How risky is a call in Python that deletes, moves or writes files?"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from oh_kernel.security.findings import Finding, high, medium
from oh_kernel.security.places import Place, is_secret_path, is_store, place_of
from oh_kernel.security.shell.files import deleted_findings, written_findings
from oh_kernel.security.shell.model import Kind, Word
from oh_kernel.security.tables import by_name

if TYPE_CHECKING:
    from oh_kernel.security.python.risk import PythonAnalysis

LIBRARY_WRITES = re.compile(r"(?:to_(?:csv|json|excel|parquet|feather|hdf|pickle|stata|html"
                            r"|latex|markdown|netcdf|zarr|file|disk)"
                     r"|save\w*|write_\w+|sink_\w+|savetxt|dump|imwrite|export\w*|make_archive"
                     r"|extractall|save_pretrained)$")  # fmt: skip
_TARGETS = (
    "path",
    "path_or_buf",
    "fname",
    "file",
    "filename",
    "excel_writer",
    "save_directory",
    "fp",
    "buf",
    "dst",
)


def written(analysis: PythonAnalysis, target: Word) -> Iterator[Finding]:
    """What it means that the file `target` is written."""
    if is_store(target.text):
        yield high("writes into a shared store")
    elif place_of(target.text) is Place.OUTSIDE:
        yield high("overwrites a file outside of the workspace")
    yield from written_findings(target.text, analysis.scope)


def _rmtree(analysis: PythonAnalysis, node: ast.Call, name: str) -> Iterator[Finding]:
    yield from deleted_findings(_first(analysis, node), analysis.scope, recursive=True)


def _remove(analysis: PythonAnalysis, node: ast.Call, name: str) -> Iterator[Finding]:
    yield from _deleted(analysis, _first(analysis, node))


def _deleted(analysis: PythonAnalysis, words: list[Word]) -> Iterator[Finding]:
    yield from deleted_findings(words, analysis.scope, recursive=False)


def _first(analysis: PythonAnalysis, node: ast.Call) -> list[Word]:
    given = node.args[:1] or [one.value for one in node.keywords[:1]]
    return [analysis.values.word(one) for one in given]


def _rmdir(analysis: PythonAnalysis, node: ast.Call, name: str) -> Iterator[Finding]:
    yield medium("removes an empty folder")


def _moves(analysis: PythonAnalysis, node: ast.Call, name: str) -> Iterator[Finding]:
    words = [analysis.values.word(one) for one in node.args[:2]]
    far = bool(words) and place_of(words[0].text) in (Place.OUTSIDE, Place.SYSTEM)
    if far and "copy" not in name and not analysis.scope.is_own(words[0].text):
        yield high("moves files away from outside of the workspace")
    if len(words) == 2:
        if words[1].text == "/dev/null" and "copy" not in name:
            yield high("throws files away")
        yield from written_findings(words[1].text, analysis.scope)
    is_secret = words and (words[0].flow.kind is Kind.SECRET or is_secret_path(words[0].text))
    if "copy" in name and is_secret:
        yield high("copies credentials")


def _open(analysis: PythonAnalysis, node: ast.Call, name: str) -> Iterator[Finding]:
    word = analysis.values.word(node.args[0]) if node.args else Word("")
    yield from _opened(analysis, node, word, node.args[1] if len(node.args) > 1 else None)


def opening(analysis: PythonAnalysis, node: ast.Call) -> Iterator[Finding]:
    assert isinstance(node.func, ast.Attribute)
    word = analysis.values.word(node.func.value)
    yield from _opened(analysis, node, word, node.args[0] if node.args else None)


def _opened(
    analysis: PythonAnalysis, node: ast.Call, word: Word, mode: ast.expr | None
) -> Iterator[Finding]:
    given = next((one.value for one in node.keywords if one.arg == "mode"), mode)
    text = analysis.values.word(given).text if given is not None else "r"
    if not re.search(r"[wax+]", text) or len(text) > 4:
        return
    if "a" in text or "x" in text:
        yield from written_findings(word.text, analysis.scope)
    else:
        yield from written(analysis, word)


def of_a_path(analysis: PythonAnalysis, node: ast.Call, name: str) -> Iterator[Finding]:
    """`path.unlink()` and the like; `list.remove(x)` and `text.replace(a, b)` touch no disk."""
    base, _, method = name.rpartition(".")
    value = node.func.value if isinstance(node.func, ast.Attribute) else None
    if value is None:
        return
    word = analysis.values.word(value)
    match method:
        case "unlink":
            yield from _deleted(analysis, [word])
        case "rmtree":
            yield from deleted_findings(
                [word] if not node.args else _first(analysis, node), analysis.scope, recursive=True
            )
        case "rmdir":
            yield medium("removes an empty folder")
        case "rm" | "remove" if re.search(r"fs|ftp|hdfs|client|storage", base, re.I):
            yield high("deletes in a shared store")
        case "touch" | "mkdir" | "symlink_to" | "hardlink_to":
            yield from written_findings(word.text, analysis.scope)
        case "rename" | "replace" if len(node.args) == 1 and not node.keywords:
            yield from written_findings(analysis.values.word(node.args[0]).text, analysis.scope)


def by_a_library(analysis: PythonAnalysis, node: ast.Call) -> Iterator[Finding]:
    words = [
        analysis.values.word(one)
        for one in [*node.args[:2], *(k.value for k in node.keywords if k.arg in _TARGETS)]
    ]
    for word in words:
        if is_store(word.text):
            yield high("writes into a shared store")
        elif not word.text.startswith("$") and re.search(r"[/.~]", word.text):
            yield from written_findings(word.text, analysis.scope)
            if place_of(word.text) is Place.OUTSIDE and re.match(r"[~/$]", word.text):
                yield medium("writes outside of the workspace")
    if words or isinstance(node.func, ast.Attribute):
        yield medium("writes a file")


def _rights(analysis: PythonAnalysis, node: ast.Call, name: str) -> Iterator[Finding]:
    for word in _first(analysis, node):
        place = place_of(word.text)
        if place in (Place.SYSTEM, Place.DEVICE) or (
            analysis.loops and place not in (Place.WORKSPACE, Place.REMADE)
        ):
            yield high("changes the rights of files that are not its own")
    yield medium("changes the rights of a file")


RULES = by_name(
    {
        "shutil.rmtree": _rmtree,
        "os.remove os.unlink os.truncate": _remove,
        "os.rmdir os.removedirs send2trash.send2trash": _rmdir,
        "shutil.move os.rename os.replace os.renames os.symlink os.link": _moves,
        "shutil.copy shutil.copy2 shutil.copyfile shutil.copytree": _moves,
        "open io.open codecs.open builtins.open gzip.open": _open,
        "os.chmod os.chown shutil.chown": _rights,
    }
)
