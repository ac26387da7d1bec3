"""How risky is it to run a command or a text, whoever runs it: a shell, xargs, ssh, Python?"""

import re
from collections.abc import Iterator
from typing import Any

from oh_kernel.security.findings import Finding, TooInvolved, high, medium
from oh_kernel.security.places import is_address, is_secret_path
from oh_kernel.security.shell import flows, interpreters, rules, wrappers
from oh_kernel.security.shell.model import NOTHING, Call, Flow, Kind, Scope, Word, merged
from oh_kernel.security.sql_risk import sql_findings
from oh_kernel.tools.shell_syntax import syntax_tree

_DEEPEST = 12
_HARMLESS_NAMES = re.compile(
    r"(?:PYTHON\d?|PIP|CC|CXX|MAKE|EDITOR|PAGER|CONDA_EXE|JULIA|NODE|TIME)$"
)
_WORDS_READ = 20
_MOST_CALLS = 2_000
_BRACES = re.compile(r"\{([^{}\s]*,[^{}\s]*)\}")
_SEPARATORS = re.compile(r"[\n;&|(){}`]|\$\(")


class ShellRuns:
    """What was found, what is known at this point, and how commands and texts are judged.

    Whoever walks the syntax tree of a text says how, in `visit`.
    """

    def __init__(self) -> None:
        self.scope = Scope()
        self._findings: dict[Finding, None] = {}
        self._depth = 0
        self._calls = 0

    @property
    def findings(self) -> list[Finding]:
        """What was found, each once, in the order of the text."""
        return list(self._findings)

    def add(self, *findings: Finding) -> None:
        """Remember findings."""
        self._findings.update(dict.fromkeys(findings))

    def run_text(self, text: str, stdin: Flow = NOTHING) -> Flow:
        """Judge a text that a shell would run; gives what it writes."""
        if self._depth >= _DEEPEST:
            self.add(high("runs text inside of text many times over"))
            return Flow(Kind.UNKNOWN)
        self._depth += 1
        root = syntax_tree(text)
        flow = self.visit(root, stdin)
        if root.has_error:
            self._judge_each_word(text)
        self._depth -= 1
        return flow

    def visit(self, node: Any, stdin: Flow = NOTHING) -> Flow:
        """Judge a node of the syntax tree; gives what it writes."""
        raise NotImplementedError

    def call(self, words: list[Word], stdin: Flow, variables: dict[str, str] | None = None) -> Flow:
        """Judge a command that is given as its words."""
        if self._depth >= _DEEPEST:
            self.add(high("runs commands inside of commands many times over"))
            return Flow(Kind.UNKNOWN)
        self._calls += 1
        if self._calls > _MOST_CALLS:
            raise TooInvolved("more commands than are worth reading")
        words = _without_joints(words)
        first = words[0]
        self.add(*_hidden(first))
        if first.flow.kind is Kind.DOWNLOAD:
            self.add(high("runs what it downloads"))
        name = first.text.removeprefix("\\").rsplit("/", 1)[-1] or first.text
        call = Call(name, words[1:], stdin, self.scope, variables or {})
        if "/" in first.text and self.scope.downloaded(first.text):
            self.add(high("runs what it downloads"))
        elif "/" in first.text and (script := self.scope.kept(first.text)) is not None:
            self._run_flow(script, "shell")
        self._depth += 1
        written = self._wrapped(call)
        if not written or wrappers.is_more_than_wrapper(call):
            written.append(self._plain(call))
        self._depth -= 1
        return merged(written)

    def _wrapped(self, call: Call) -> list[Flow]:
        """What a command does that runs another: env, xargs, `bash -c`, ssh, find -exec ..."""
        self.add(*wrappers.findings(call))
        written: list[Flow] = []
        for inner in wrappers.inner(call):
            if isinstance(inner, interpreters.Text):
                written.append(self._run_flow(inner.flow, inner.language, inner.stdin))
            elif inner.words:
                self.scope.loops += inner.repeats
                written.append(self.call(list(inner.words), inner.stdin))
                self.scope.loops -= inner.repeats
        return written

    def _run_flow(self, flow: Flow, language: str, stdin: Flow = NOTHING) -> Flow:
        """Judge text that a program runs: the text itself if it is there."""
        match flow.kind:
            case Kind.TEXT | Kind.PLAIN:
                return self._run_language(flow.text, language, stdin)
            case Kind.NOTHING | Kind.DATA:
                self.add(medium("runs a program"))
            case Kind.DOWNLOAD:
                self.add(high("runs what it downloads"))
            case Kind.DECODED:
                self.add(high("hides what it runs"))
            case _:
                self.add(high("runs text that is not shown"))
        return Flow(Kind.DATA)

    def _run_language(self, text: str, language: str, stdin: Flow) -> Flow:
        if language == "shell":
            return self.run_text(text, stdin)
        if language == "python":
            # It judges shell lines in turn: a cycle.
            from oh_kernel.security.python.risk import python_findings

            self.add(*python_findings(text))
        elif language == "sql":
            self.add(*sql_findings(text))
        else:
            self.add(*interpreters.other_language(text))
        return Flow(Kind.DATA)

    def _plain(self, call: Call) -> Flow:
        self.add(*rules.findings(call))
        rules.remember(call)
        return flows.output_of(call)

    def _judge_each_word(self, text: str) -> None:
        """Each word that could begin a command is taken to begin one."""
        self.add(medium("cannot be read as a command line"))
        depth, self._depth = self._depth, _DEEPEST - 3
        text = _BRACES.sub(lambda found: found[1].replace(",", " "), text)
        for part in _SEPARATORS.split(text):
            words = [Word(re.sub(r"[\"'\\]", "", one), is_wild="*" in one) for one in part.split()]
            for start, word in enumerate(words):
                if word.text and rules.is_known_program(word.text):
                    self.call(words[start : start + _WORDS_READ], NOTHING)
        self._depth = depth
        self.add(*_across(text))


def _across(text: str) -> Iterator[Finding]:
    bare = re.sub(r"[\"'\\]", "", text)
    if re.search(r"\b(?:curl|wget)\b.*\|\s*\S*(?:sh|python\d?)\b", bare):
        yield high("runs what it downloads")
    if re.search(r"\|\s*\S*(?:ba|z|da)?sh\b|\beval\b", bare):
        yield high("runs text that is not shown")
    if any(is_secret_path(word) and not is_address(word) for word in bare.split()):
        yield high("reads credentials")


def _without_joints(words: list[Word]) -> list[Word]:
    """Blanks that came from `$IFS` part words."""
    first = words[0]
    if not first.is_joined or " " not in first.text.strip():
        return words
    parts = [Word(text, is_joined=True) for text in first.text.split()]
    return parts + words[1:]


def _hidden(first: Word) -> Iterator[Finding]:
    if first.flow.kind is Kind.DECODED:
        yield high("hides what it runs")
    elif first.is_joined:
        yield high("hides the command's name")
    elif _is_unknown(first):
        yield high("runs text that is not shown")


def _is_unknown(first: Word) -> bool:
    if re.search(r"\$\(|`", first.text) and first.flow.kind > Kind.PLAIN:
        return True
    usual = all(_HARMLESS_NAMES.search(one) for one in first.variables)
    return first.text.startswith("$") and "/" not in first.text and not usual
