"""Which text does an interpreter run: a shell, Python, another language, a database's program?"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from oh_kernel.security.findings import Finding, high, medium
from oh_kernel.security.shell.flows import SHELL_HOOK, content_of, flow_of_words
from oh_kernel.security.shell.model import NOTHING, Call, Flow, Kind, Word
from oh_kernel.security.tables import names


@dataclass(frozen=True)
class Words:
    """A command that is run, as its words."""

    words: tuple[Word, ...]
    stdin: Flow = NOTHING
    repeats: bool = False


@dataclass(frozen=True)
class Text:
    """A text that is run."""

    flow: Flow
    language: str = "shell"
    stdin: Flow = NOTHING


Inner = Words | Text

SHELLS = set(names("sh bash zsh dash ksh mksh fish ash rbash csh tcsh"))
PYTHON = re.compile(r"i?python[\d.]*$|pypy3?$")
OTHERS = {
    "perl": ("-e", "-E", "-ne", "-pe", "-ane", "-lne"),
    "ruby": ("-e",),
    "node": ("-e", "--eval", "-p"),
    "deno": ("eval",),
    "bun": ("-e",),
    "php": ("-r",),
    "Rscript": ("-e",),
    "R": ("-e",),
    "julia": ("-e", "-E"),
    "lua": ("-e",),
    "osascript": ("-e",),
    "pwsh": ("-c", "-Command"),
}
SQL_PROGRAMS = set(names(
    """
    psql mysql mariadb sqlite3 duckdb clickhouse-client clickhouse snowsql sqlcmd bq cqlsh
    presto trino beeline hive spark-sql impala-shell usql litecli pgcli mycli athena redis-cli
    """
))  # fmt: skip
_DANGEROUS = re.compile(
    r"rm_rf|rm_r\b|rmtree|remove_tree|unlink|rmSync|rmdirSync|unlinkSync|fs\.rm|file\.remove"
    r"|File\.delete|FileUtils"
    r"|\bsystem\s*\(|\bsystem\s+[\"']|\bexec\b|\bspawn|child_process|\bpopen|`[^`]+`|qx[/({]"
    r"|\beval\b|decode"
    r"|\bpack\b|fromCharCode|\batob\b|IO\.popen|shell_exec|passthru|Socket|base64|unlink\s*\("
    r"|process\.env\b(?!\.)"
    r"|%ENV|Sys\.getenv\(\)|\bENV\.to_h|\bENV\.each|install_github|source\s*\(\s*[\"']https?:"
    r"|rm\s*\(\s*list",
    re.I,
)


def other_language(text: str) -> Iterator[Finding]:
    """What a line of Perl, Ruby, R or JavaScript does, by its words."""
    yield (
        high("runs code that deletes, hides or starts programs")
        if _DANGEROUS.search(text)
        else medium("runs code")
    )


def of_a_shell(call: Call) -> Iterator[Inner]:
    given = _after(
        call, ("-c", "-lc", "-ic", "-xc", "-ec", "-euc", "-exc", "-lic", "--command", "-cl")
    )
    if given is not None:
        yield Text(flow_of_words([given]), stdin=call.stdin)
        return
    if call.name == "su" or call.has("--version", "--help"):
        return
    scripts = call.operands(("-o", "-O", "--rcfile", "--init-file"))
    if call.has("-n") and not call.has("-c"):
        yield Text(Flow(Kind.TEXT, ":"))
    elif scripts and not call.has("-s") and scripts[0].text not in ("-", "/dev/stdin"):
        yield Text(_script(call, scripts[0]))
    else:
        yield Text(call.stdin)


def _script(call: Call, word: Word) -> Flow:
    if word.variables:
        return Flow(Kind.DATA) if "/" in word.text else Flow(Kind.UNKNOWN)
    return content_of(word, call.scope)


def _after(call: Call, options: tuple[str, ...]) -> Word | None:
    for index, word in enumerate(call.args[:-1]):
        if word.text in options:
            return call.args[index + 1]
        if not word.text.startswith("-"):
            return None
    return None


def of_an_interpreter(call: Call) -> Iterator[Inner]:
    is_python = PYTHON.match(call.name) is not None
    language = "python" if is_python else call.name
    options = ("-c", "-uc", "-Ic", "-sc", "-Wc", "-ic", "-Bc") if is_python else OTHERS[call.name]
    given = _after(call, options)
    if (
        given is None
        and is_python
        and (attached := call.value("-c")) is not None
        and not call.operands()
    ):
        given = attached
    if given is not None:
        yield Text(flow_of_words([given]), language, call.stdin)
        return
    if is_python and call.has("-m"):
        return
    scripts = call.operands(("-W", "-X", "-I", "-f"))
    if scripts and scripts[0].text not in ("-", "/dev/stdin"):
        yield Text(_script(call, scripts[0]), language)
    elif call.stdin.kind is not Kind.NOTHING:
        yield Text(call.stdin, language)


def of_a_builtin(call: Call) -> Iterator[Inner]:
    if call.name == "eval":
        flow = flow_of_words(call.args)
        if any(word.flow.text == SHELL_HOOK for word in call.args):
            flow = Flow(Kind.DATA)
        elif flow.kind is Kind.DATA:
            flow = Flow(Kind.UNKNOWN)
        yield Text(flow, stdin=call.stdin)
    elif call.name == "alias":
        # Its text is judged here, since a later call shows only its name.
        yield from (Text(Flow(Kind.TEXT, word.text.partition("=")[2])) for word in call.args)
    elif call.name == "trap" and call.args:
        yield Text(flow_of_words(call.args[:1]))
    elif call.name in ("source", ".") and call.args:
        flow = (
            call.stdin
            if call.args[0].text == "/dev/stdin"
            else content_of(call.args[0], call.scope)
        )
        yield Text(Flow(Kind.DATA) if flow.kind is Kind.SECRET else flow)


def of_a_database(call: Call) -> Iterator[Inner]:
    texts = [
        word for word in call.args if re.search(r"\s|;", word.text) or call.name == "redis-cli"
    ]
    for word in texts:
        yield Text(flow_of_words([word]) if word.is_known else Flow(Kind.TEXT, word.text), "sql")
    if call.stdin.kind is Kind.TEXT:
        yield Text(call.stdin, "sql")
