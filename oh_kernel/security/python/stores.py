"""How risky is a call in Python for databases, shared stores and what was fetched?"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from oh_kernel.security.findings import Finding, capped, high, medium
from oh_kernel.security.places import is_address, is_store
from oh_kernel.security.shell.model import Kind, Word
from oh_kernel.security.shell.words import MADE_HERE
from oh_kernel.security.sql_risk import looks_like_sql, sql_findings

if TYPE_CHECKING:
    from oh_kernel.security.python.risk import PythonAnalysis

_DELETES = re.compile(
    r".*\.(?:drop_database|drop_collection|drop_all|drop_table|drop_schema|drop_index"
    r"|delete_(?:bucket|objects?|table|database|dataset"
    r"|collection|index|repo|model|stack|cluster|instances?|volume|snapshot|topic|queue|blobs?"
    r"|file|folder|space|namespace\w*|item"
    r"|experiment|run|stream|container|secret|user|project|messages?|by_query|keys?|endpoint|db"
    r"|vm)|terminate_instances|flushall"
    r"|flushdb|flush_all|delete_all|truncate|delete_by_query|destroy|rmtree_remote"
    r"|delete_recursive|delete_blob\w*|trash)$"
)
_UNPICKLES = re.compile(
    r"(?:pickle|cPickle|_pickle|dill|cloudpickle|joblib|torch|jsonpickle|pandas|skops\.io"
    r"|shelve|keras\.models|tf\.keras\.models"
    r"|tensorflow\.keras\.models|pd|numpy|np|yaml|ruamel\.yaml|fickling|sklearn\.externals\.joblib)"
    r"\.(?:loads?|load_all|full_load|unsafe_load\w*|read_pickle|load_model|open|decode"
    r"|Unpickler)$|.*Unpickler\(\)\.load$"
)
_FETCHES = re.compile(
    r".*\b(?:download\w*|fetch\w*|load_dataset|from_pretrained|hf_hub_download"
    r"|snapshot_download|urlretrieve|urlopen|get_file|create_engine|read_sql\w*)$"
)
_SQL_CALLS = re.compile(
    r".*\.(?:execute|executescript|executemany|exec_driver_sql|sql|query|raw|run_query"
    r"|execute_sql|read_sql\w*|text|command)$|^text$|^sql$"
)
_CONNECTS = re.compile(
    r"(?:sqlite3|duckdb|psycopg2?|pymysql|MySQLdb|mysql\.connector|sqlalchemy|aiosqlite|asyncpg"
    r"|pyodbc|cx_Oracle|snowflake\.connector)\.(?:connect|create_engine)$|^create_engine$"
)

_WRITES_TABLE = re.compile(
    r"\.(?:to_sql|to_gbq|write_database|saveAsTable|insertInto|save_as_table|write_table)$"
)
_REPLACES = re.compile(
    r"(?:if_exists|if_table_exists|mode)\(?=?\(?['\"](?:replace|overwrite)|overwrite=True"
    r"|mode\(['\"]overwrite"
)
_MEMORY = ("", ":memory:", "sqlite://", "sqlite:///:memory:")


def findings(analysis: PythonAnalysis, node: ast.Call, name: str) -> Iterator[Finding]:
    """What the call `node` of the function `name` does with stored or fetched things."""
    yield from _foreign_code(analysis, node, name)
    yield from _stores(analysis, node, name)
    yield from _sql(analysis, node, name)
    if _FETCHES.match(name):
        yield medium("fetches from the network")
        _remember_download(analysis, node, name)


def _foreign_code(analysis: PythonAnalysis, node: ast.Call, name: str) -> Iterator[Finding]:
    words = [analysis.values.word(one) for one in node.args[:2]]
    first = words[0] if words else Word("")
    fetched = any(
        word.flow.kind in (Kind.DOWNLOAD, Kind.DECODED) or is_address(word.text)
        or is_store(word.text)
        or analysis.scope.downloaded(word.text) for word in words
    )  # fmt: skip
    if _UNPICKLES.match(name) and _may_run(node, name):
        yield (
            high("loads from the network what may run code")
            if fetched
            else medium("loads what may run code")
        )
    is_run = name == "get_ipython().run_line_magic" and first.text == "run" and len(words) == 2
    if is_run and any(analysis.scope.downloaded(one) for one in words[1].text.split()):
        yield high("runs what it downloads")
    if name == "torch.hub.load" and "local" not in ast.unparse(node):
        yield high("runs code of a model from the network")
    if name in (
        "runpy.run_path",
        "runpy.run_module",
        "ctypes.CDLL",
        "importlib.util.spec_from_file_location",
    ):
        yield high("runs what it downloads") if fetched else medium("runs a program")
    if name.endswith("install_github") or (
        name.startswith("importlib") and first.flow.kind is Kind.DOWNLOAD
    ):
        yield high("runs what it downloads")


def _may_run(node: ast.Call, name: str) -> bool:
    source = ast.unparse(node)
    if name.startswith(("pandas.", "pd.")):
        return name.endswith("read_pickle")
    if name.startswith(("numpy", "np.")):
        return "allow_pickle=True" in source
    if "yaml" in name:
        return (
            bool(re.search(r"unsafe|full_load|(?:Unsafe|Full|\.)Loader\b|yaml\.Loader", source))
            and "SafeLoader" not in source
        )
    return "weights_only=True" not in source


def _remember_download(analysis: PythonAnalysis, node: ast.Call, name: str) -> None:
    if not name.endswith(("urlretrieve", "download", "download_url_to_file", "download_file")):
        return
    for given in [*node.args[1:], *(one.value for one in node.keywords)]:
        word = analysis.values.word(given)
        if word.is_known or word.flow.kind is Kind.TEXT:
            analysis.scope.downloads.add(word.text.removeprefix("./"))


def _stores(analysis: PythonAnalysis, node: ast.Call, name: str) -> Iterator[Finding]:
    source = ast.unparse(node)
    if _DELETES.match(name) and not re.match(
        r"(?:df|pandas|polars|pl|np|numpy|spark\.catalog\.dropTemp)", name
    ):
        yield high("deletes what is not on this machine")
    if name.endswith((".delete_many", ".remove", ".update_many")) and re.search(r"\(\{\}", source):
        yield high("changes or deletes all rows of a table")
    elif name.endswith(
        (".delete_many", ".delete_one", ".insert_one", ".insert_many", ".update_one")
    ):
        yield medium("changes a database")
    if name.endswith(".delete") and re.search(
        r"\.objects\.all\(\)|\.query\([^)]*\)\.delete\(\)|\.query\.delete\(\)|delete\(\)\.all",
        source,
    ):
        yield high("changes or deletes all rows of a table")
    if name.endswith(".delete") and re.search(
        r"indices|s3|bucket|blob|Object\(|\.objects\.(?:all|filter)|index\.", source
    ):
        yield high("deletes what is not on this machine")
    if name.endswith(".drop") and re.search(
        r"bind=|engine|\.__table__|collection|db\[|client\[|\bdb\.", source
    ):
        yield high("drops or empties a table or database")
    if _WRITES_TABLE.search(name):
        yield from _written_table(analysis, replaces=_REPLACES.search(source) is not None)
    if re.search(r"\.(?:parquet|csv|json|save|orc|text)$", name) and ".write" in source:
        target = analysis.values.word(node.args[0]).text if node.args else ""
        yield high("writes into a shared store") if is_store(target) else medium("writes a folder")


def _written_table(analysis: PythonAnalysis, *, replaces: bool) -> Iterator[Finding]:
    if replaces:
        found = [high("replaces a table that may hold data")]
        yield from capped(found) if _all_temporary(analysis) else found
    elif not _in_memory(analysis):
        yield medium("adds rows to a database")


def _in_memory(analysis: PythonAnalysis) -> bool:
    return bool(analysis.databases) and all(word.text in _MEMORY for word in analysis.databases)


def _all_temporary(analysis: PythonAnalysis) -> bool:
    """Whether all databases that the code opens are in memory or in a folder that it made."""
    return _in_memory(analysis) or (
        bool(analysis.databases) and all(MADE_HERE in word.text for word in analysis.databases)
    )


def _sql(analysis: PythonAnalysis, node: ast.Call, name: str) -> Iterator[Finding]:
    if _CONNECTS.match(name):
        given = [
            *node.args[:1],
            *(one.value for one in node.keywords if one.arg in ("database", "dsn", "url")),
        ]
        word = analysis.values.word(given[0]) if given else Word("")
        analysis.databases.append(word)
        if word.text not in _MEMORY:
            yield medium("opens a database")
    if not _SQL_CALLS.match(name) or not node.args:
        return
    word = analysis.values.word(node.args[0])
    if name.startswith("spark") and re.match(r"\s*drop\s+(?:temp\w*\s+)?view", word.text, re.I):
        return
    if not name.endswith(
        ("execute", "executescript", "executemany", "text", "sql")
    ) and not looks_like_sql(word.text):
        return
    if _in_memory(analysis):
        return
    found = list(sql_findings(word.text))
    yield from capped(found) if _all_temporary(analysis) else found
