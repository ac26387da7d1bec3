"""What does a text of SQL change for good?"""

import re
from collections.abc import Iterator

from oh_kernel.security.findings import Finding, high, medium

_COMMENT = re.compile(r"--[^\n]*|/\*.*?\*/", re.S)
_LITERAL = re.compile(r"'(?:[^']|'')*'")
_TEMPORARY = re.compile(
    r"\bcreate\s+(?:local\s+|global\s+)?temp(?:orary)?\s+table\s+(?:if\s+not\s+exists\s+)?(\S+)",
    re.I,
)
_DROP = re.compile(
    r"^(?:drop\s+(?:table|database|schema|keyspace|collection|user|role|owned|tablespace|warehouse"
    r"|dataset|measurement|bucket|catalog|materialized|external\s+table|foreign\s+table)\b"
    r"|truncate\b)(.*)",
    re.I | re.S,
)
_WHOLE = (
    (
        re.compile(r"^alter\s+table\b.*\bdrop\b(?!\s+(?:constraint|index|default))", re.I | re.S),
        "drops a column",
    ),
    (re.compile(r"^create\s+or\s+replace\s+(?:transient\s+)?table\b", re.I), "replaces a table"),
    (re.compile(r"^insert\s+overwrite\b", re.I), "overwrites a table"),
    (re.compile(r"\bpg_terminate_backend\s*\(", re.I), "ends connections of others"),
    (re.compile(r"^copy\b.*\b(?:to|from)\s+program\b", re.I | re.S), "runs a program from SQL"),
    (re.compile(r"^(?:exec(?:ute)?\s+)?xp_cmdshell\b", re.I), "runs a program from SQL"),
    (re.compile(r"^(?:grant|revoke)\b", re.I), "changes the rights of others"),
    (re.compile(r"^purge\b|^flushall\b|^flushdb\b|^shutdown\b", re.I), "empties a database"),
)
_ROWS = re.compile(r"^(?:with\b.*?\)\s*)?(delete\s+from|delete|update)\b(.*)", re.I | re.S)
_UPDATE = re.compile(r"\bset\b", re.I)
_WHERE = re.compile(r"\b(?:where|using)\b(.*)", re.I | re.S)
_ALWAYS = re.compile(r"^\s*\(?\s*(?:(\d+)\s*=\s*\1|true|1|''\s*=\s*'')\s*\)?\s*$", re.I)
_CHANGES = re.compile(
    r"^(?:insert|create|alter|merge|replace|drop|vacuum|reindex|copy|load|attach|call|upsert"
    r"|comment)\b",
    re.I,
)


def sql_findings(text: str) -> Iterator[Finding]:
    """What the statements of `text` do; words inside literals and comments count for nothing.

    >>> [f.reason for f in sql_findings("select 1; delete from runs where true")]
    ['changes or deletes all rows of a table']
    """
    bare = _LITERAL.sub("''", _COMMENT.sub(" ", text))
    temporary = {name.strip('"`;(').lower() for name in _TEMPORARY.findall(bare)}
    for statement in bare.split(";"):
        yield from _statement(statement.strip(), temporary)


def looks_like_sql(text: str) -> bool:
    """Whether `text` begins like a statement that changes something."""
    bare = _COMMENT.sub(" ", text).strip()
    return bool(_DROP.match(bare) or _CHANGES.match(bare) or _ROWS.match(bare)) and " " in bare


def _statement(statement: str, temporary: set[str]) -> Iterator[Finding]:
    if found := _DROP.match(statement):
        names = re.findall(r"[\w.\"`#]+", found[1].lower())
        own = bool(names) and (names[-1] in temporary or names[-1].startswith("#"))
        yield (
            medium("drops its own temporary table")
            if own
            else high("drops or empties a table or database")
        )
        return
    for pattern, reason in _WHOLE:
        if pattern.search(statement):
            yield high(reason)
    if found := _ROWS.match(statement):
        yield from _rows(found[1].lower(), found[2])
    elif _CHANGES.match(statement):
        yield medium("changes a database")


def _rows(verb: str, rest: str) -> Iterator[Finding]:
    if verb == "update" and not _UPDATE.search(rest):
        return
    where = _WHERE.search(rest)
    if where is None or _ALWAYS.match(where[1]):
        yield high("changes or deletes all rows of a table")
    else:
        yield medium("changes or deletes chosen rows")
