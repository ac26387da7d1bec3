"""How risky is a call in Python that talks to other machines, databases and shared stores?"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from oh_kernel.security.findings import Finding, high, medium
from oh_kernel.security.places import (
    is_address,
    is_metadata_address,
    is_secret_path,
    is_this_machine,
)
from oh_kernel.security.shell.model import Kind, Word
from oh_kernel.security.shell.packages import installing

if TYPE_CHECKING:
    from oh_kernel.security.python.risk import PythonAnalysis

_HTTP = re.compile(
    r"(?:requests|httpx|aiohttp|urllib3|cloudscraper|http\.client|urllib\.request|urlopen"
    r"|session|sess|client|http|s|conn|c)\b.*"
    r"\.(get|post|put|patch|delete|request|send|urlopen|Request|stream|head|options"
    r"|ws_connect)$|^urllib\.request\.(urlopen|Request)$"
)
_BODY = ("json", "data", "files", "content", "body", "fields", "media_body")
_SENDS = re.compile(
    r".*\.(?:upload\w*|put_object|push_to_hub|push_to_\w+|sendmail|send_message|storbinary"
    r"|storlines|send_document|files_upload\w*"
    r"|send_file|send_photo|create_commit|dataset_create\w*|competition_submit\w*|upload_folder"
    r"|put_file|import_data|send_email"
    r"|send_raw_email|publish|create_gist|basic_publish|put_records?|upload_from_\w+|copy_to_s3"
    r"|share|dataset_push|run_server_public"
    r"|upload_large_folder|put_blob|send_audio|create_release)$|smtplib\.\w+\(\)\.\w*send\w*$"
    r"|yagmail\..*\.send$|.*SFTPClient.*\.put$"
    r"|.*(?:sftp|scp|ftp|scpclient)\w*(?:\(\))?\.put$"
)
_HARMLESS_SENDS = re.compile(r"(?:st|streamlit|widgets|ipywidgets)\.")
_LOOKS_UP = re.compile(
    r"socket\.(?:gethostbyname\w*|getaddrinfo|create_connection)$|dns\.resolver\.\w+$"
    r"|.*\bresolver\w*\.(?:resolve|query)$|webbrowser\.open\w*$"
)
_OPEN_HOSTS = ("0.0.0.0", "", "::")


def findings(analysis: PythonAnalysis, node: ast.Call, name: str) -> Iterator[Finding]:
    """What the call `node` of the function `name` does beyond this machine."""
    yield from _keywords(node, name)
    yield from _http(analysis, node, name)
    yield from _sends(analysis, node, name)
    yield from _secrets(analysis, node, name)
    if name in ("pip.main", "pip._internal.main", "pip._internal.cli.main.main"):
        yield from installing(analysis.values.word(node.args[0]).text.split() if node.args else [])


def _keywords(node: ast.Call, name: str) -> Iterator[Finding]:
    for keyword in node.keywords:
        value = keyword.value.value if isinstance(keyword.value, ast.Constant) else None
        match keyword.arg:
            case "trust_remote_code" if value is not False:
                yield high("runs code of a model from the network")
            case "verify" | "ssl" | "verify_ssl" if value is False:
                whole = re.search(r"partial|Session$|Client$", name)
                yield (
                    high("turns certificate checks off")
                    if whole
                    else medium("one unchecked connection")
                )
            case "share" if value is True:
                yield high("opens a server to everybody")
            case "host" | "ip" | "server_name" | "bind" | "address" | "server_address" if (
                value in _OPEN_HOSTS
            ):
                yield high("opens a server to everybody")
    if re.search(r"HTTPServer$|TCPServer$|make_server$|\.bind$", name) and node.args:
        first = node.args[0]
        host = first.elts[0] if isinstance(first, ast.Tuple) and first.elts else first
        if isinstance(host, ast.Constant) and host.value in _OPEN_HOSTS:
            yield high("opens a server to everybody")


def _http(analysis: PythonAnalysis, node: ast.Call, name: str) -> Iterator[Finding]:
    found = _HTTP.match(name)
    address = _address(analysis, node)
    body = [one.value for one in node.keywords if one.arg in _BODY]
    method = name.rsplit(".", 1)[-1].lower()
    if found is None and not (
        method in ("post", "put", "patch", "delete") and (body or is_address(address.text))
    ):
        return
    known = is_address(address.text) or re.match(
        r"requests|httpx|aiohttp|urllib|http\.client", name
    )
    if not known and not body and method not in ("post", "put", "patch"):
        return
    yield medium("talks to the network")
    here = is_this_machine(address.text)
    yield from _asked(analysis, node, address)
    verb = _verb(analysis, node, method)
    if verb == "delete" and not here and known:
        yield high("deletes at a server")
    if method in ("post", "put", "patch", "urlopen") and len(node.args) > 1:
        body.append(node.args[1])
    if any(_is_data(analysis, one) for one in body):
        yield medium("sends to this machine") if here else high("sends data to a server")


def _verb(analysis: PythonAnalysis, node: ast.Call, method: str) -> str:
    given = next((one.value for one in node.keywords if one.arg == "method"), None)
    if given is None and method in ("request", "stream") and node.args:
        given = node.args[0]
    return method if given is None else analysis.values.word(given).text.lower()


def _address(analysis: PythonAnalysis, node: ast.Call) -> Word:
    given = [*node.args[:2], *(one.value for one in node.keywords if one.arg in ("url", "fullurl"))]
    words = [analysis.values.word(one) for one in given]
    return next((word for word in words if is_address(word.text)), words[0] if words else Word(""))


def _asked(analysis: PythonAnalysis, node: ast.Call, address: Word) -> Iterator[Finding]:
    if is_metadata_address(address.text):
        yield high("asks for the machine's credentials")
    if address.flow.kind is Kind.SECRET:
        yield high("puts a secret into an address")
    elif address.flow.kind in (Kind.DATA, Kind.DECODED) and is_address(address.text):
        yield high("puts data into an address")
    for keyword in node.keywords:
        if keyword.arg == "params":
            kind = analysis.values.kind(keyword.value)
            if kind is Kind.SECRET or kind is Kind.DATA or _is_table(keyword.value):
                yield high("puts data or a secret into an address")


def _is_table(node: ast.expr) -> bool:
    return bool(
        re.search(
            r"\.to_(?:csv|json|dict|string|records)\(|read_(?:text|bytes)\(|\bopen\(|b64encode",
            ast.unparse(node),
        )
    )


def _is_data(analysis: PythonAnalysis, node: ast.expr) -> bool:
    """Whether more than literal words is sent; a secret for a login is given, not shown."""
    return analysis.values.kind(node) > Kind.TEXT


def _sends(analysis: PythonAnalysis, node: ast.Call, name: str) -> Iterator[Finding]:
    words = [
        analysis.values.word(one) for one in [*node.args, *(one.value for one in node.keywords)]
    ]
    if _SENDS.match(name) and not _HARMLESS_SENDS.match(name):
        here = any(is_this_machine(word.text) for word in words)
        yield medium("sends to this machine") if here else high("sends data out")
    if re.search(r"socket.*\.(?:send|sendall|sendto|sendfile)$", name) or name.endswith(
        (".sendall", ".sendfile")
    ):
        literal = all(word.flow.kind <= Kind.TEXT for word in words)
        yield (
            medium("talks to another machine") if literal else high("sends data to another machine")
        )
    if name.startswith("os.dup2") and "fileno" in ast.unparse(node):
        yield high("opens a shell to another machine")
    if _LOOKS_UP.match(name) and words:
        first = words[0]
        hides = (first.variables and "." in first.text) or first.flow.kind in (
            Kind.SECRET,
            Kind.DATA,
            Kind.DECODED,
        )
        yield (
            high("puts data into names that are looked up")
            if hides
            else medium("talks to the network")
        )
    if re.search(
        r"ngrok\.connect$|ngrok\.forward$|pyngrok|run_with_ngrok|sshtunnel.*remote"
        r"|request_port_forward",
        name,
    ):
        yield high("opens a tunnel from outside into this machine")
    if name.endswith((".chat_postMessage", ".send")) and re.search(
        r"slack|webhook|bot|smtp|mail", name, re.I
    ):
        literal = all(word.flow.kind <= Kind.TEXT for word in words)
        yield medium("sends a notice") if literal else high("sends data out")


def _secrets(analysis: PythonAnalysis, node: ast.Call, name: str) -> Iterator[Finding]:
    paths = [analysis.values.word(one) for one in node.args[:1]]
    if isinstance(node.func, ast.Attribute) and node.func.attr in (
        "read_text",
        "read_bytes",
        "open",
    ):
        paths.append(analysis.values.word(node.func.value))
    reads = re.search(
        r"(?:^|\.)(?:open|read_text|read_bytes|read|read_\w+|load|loadtxt|getline"
        r"|fileinput\.input)$",
        name,
    )
    if reads and any(is_secret_path(word.text) for word in paths) and not _is_written(node):
        yield high("reads credentials")
    if name.endswith(("load_dotenv", "getpass")):
        yield medium("reads secrets for programs")
    if re.match(r"sqlite3\.connect$", name) and any(is_secret_path(word.text) for word in paths):
        yield high("reads credentials")


def _is_written(node: ast.Call) -> bool:
    modes = [
        one
        for one in [*node.args[:2], *(k.value for k in node.keywords if k.arg == "mode")]
        if isinstance(one, ast.Constant)
    ]
    return any(
        isinstance(one.value, str) and re.fullmatch(r"[wax][bt+]*", one.value) for one in modes
    )
