"""How risky are the commands that talk to other machines? What goes out counts most."""

import re
from collections.abc import Iterator

from oh_kernel.security.findings import Finding, high, medium
from oh_kernel.security.places import (
    is_address,
    is_metadata_address,
    is_secret_variable,
    is_this_machine,
)
from oh_kernel.security.shell.files import is_remote, written_findings
from oh_kernel.security.shell.model import Call, Kind, Word
from oh_kernel.security.tables import by_name, names

_CURL = names(
    """
    -o -O -H -d -F -T -X -u -A -e -b -c -m -w -x -r -C -K -E --output --header --data --data-raw
    --data-binary --data-urlencode --form --form-string --json --upload-file --request --user
    --user-agent --max-time --connect-timeout --retry --cookie --cookie-jar --proxy --cacert
    --cert --key --url -U --write-out --range --resolve --limit-rate --oauth2-bearer
    --retry-delay --output-dir
    """
)
_CURL_OPTIONS = [one for one in _CURL if one != "-O"]
_BODY = (
    "-d", "--data", "--data-raw", "--data-binary", "--data-urlencode", "--data-ascii", "-F",
    "--form",
    "--json", "-T", "--upload-file", "--post-data", "--post-file", "--body-data", "--body-file",
)  # fmt: skip
_FILES = ("-T", "--upload-file", "--post-file", "--body-file")
_WGET = names(
    """
    -O -o -P -a -i -U -e -t -T -w --output-document --header --user --password --user-agent
    """
)


def _fetch(call: Call) -> Iterator[Finding]:
    addresses = _addresses(call)
    if any(is_metadata_address(word.text) for word in call.args):
        yield high("asks for the machine's credentials")
    here = bool(addresses) and all(is_this_machine(word.text) for word in addresses)
    for word in addresses:
        yield from _address(word)
    yield from _body(call, here=here)
    method = call.value("-X", "--request", "--method")
    if method is not None and method.text.upper() == "DELETE":
        yield (
            high("deletes at a server")
            if not here
            else medium("deletes at a server of this machine")
        )
    if call.has("-K", "--config") and call.stdin.kind > Kind.TEXT:
        yield high("runs what it cannot show")
    target = call.value(
        "-o", "--output", "-O", "--output-document", "-P", "--directory-prefix", "--output-dir"
    )
    if target is not None and not is_address(target.text):
        yield from written_findings(target.text, call.scope)
    yield medium("talks to the network")


def _addresses(call: Call) -> list[Word]:
    valued = _WGET if call.name == "wget" else _CURL_OPTIONS
    given = call.value("--url")
    return [*call.operands(valued), *([given] if given else [])]


def _address(word: Word) -> Iterator[Finding]:
    if any(is_secret_variable(name) for name in word.variables) or word.flow.kind is Kind.SECRET:
        yield high("puts a secret into an address")
    # A substitution as a whole is an unknown address; one with a part put in carries data.
    elif (
        word.flow.kind > Kind.TEXT
        and not word.text.startswith("$")
        and not is_this_machine(word.text)
    ):
        yield high("puts data into an address")


def _body(call: Call, *, here: bool) -> Iterator[Finding]:
    for index, word in enumerate(call.args):
        option = next((one for one in _BODY if _gives(word.text, one)), None)
        if option is None:
            continue
        rest = word.text[len(option) :].lstrip("=") if word.text != option else ""
        value = word if rest else (call.args[index + 1] if index + 1 < len(call.args) else Word(""))
        if _is_data(call, option, value, rest or value.text):
            yield medium("sends to this machine") if here else high("sends data to a server")


def _gives(text: str, option: str) -> bool:
    if len(option) == 2:
        return text.startswith(option) and not text.startswith("--")
    return text == option or text.startswith(option + "=")


def _is_data(call: Call, option: str, value: Word, text: str) -> bool:
    if option in _FILES:
        return True
    if re.search(r"(?:^|=|:)[@<]-", text):
        return call.stdin.kind is not Kind.TEXT
    # `--data-raw` and `--form-string` take `@` as it is.
    if option != "--data-raw" and re.search(r"(?:^|=)[@<].", text):
        return True
    return value.flow.kind > Kind.TEXT or any(is_secret_variable(name) for name in value.variables)


def fetched(call: Call) -> list[str]:
    """The names of the files that `call` gets from the network, or unpacks of such."""
    words = _addresses(call) if call.name in ("curl", "wget") else call.operands()
    names = [
        word.text.split("?")[0].rstrip("/").rsplit("/", 1)[-1]
        for word in words
        if is_address(word.text)
    ]
    match call.name:
        case "curl":
            target = call.value("-o", "--output")
            return (
                [target.text.removeprefix("./")]
                if target
                else names
                if call.has("-O", "-J", "--remote-name")
                else []
            )
        case "wget":
            target = call.value("-O", "--output-document")
            return [target.text.removeprefix("./")] if target else names
        case "git" if "clone" in call.texts:
            rest = call.operands(("-b", "--branch", "--depth", "-C", "-c", "-o"))[1:]
            place = (
                rest[1:2] or [Word(re.sub(r"\.git$", "", re.split(r"[/:]", rest[0].text)[-1]))]
                if rest
                else []
            )
            return [word.text for word in place]
        case "tar" | "unzip" | "gunzip" | "bunzip2" | "7z":
            packed = [word.text for word in call.args if call.scope.downloaded(word.text)]
            if packed or (call.stdin.kind is Kind.DOWNLOAD):
                folder = call.value("-C", "-d", "--directory")
                stems = [
                    re.sub(r"\.(?:tar\.\w+|tgz|zip|tar|gz|bz2|xz)$", "", one) for one in packed
                ]
                return (
                    [folder.text.rstrip("/")]
                    if folder
                    else [*stems, *(one + "-src" for one in stems)]
                )
    return []


def _copies(call: Call) -> Iterator[Finding]:
    words = call.operands(("-i", "-P", "-o", "-l", "-F", "-c", "-J", "-S"))
    if words and is_remote(words[-1].text):
        yield high("copies files to another machine")
    elif words:
        yield from written_findings(words[-1].text, call.scope)
    yield medium("talks to another machine")


def _transfers(call: Call) -> Iterator[Finding]:
    text = call.line + call.stdin.text
    if re.search(r"\b(?:put|mput|mirror\s+(?:-R|--reverse)|reput)\b|ftpput", text) or (
        call.has("-u") and call.name == "ncftpput"
    ):
        yield high("copies files to another machine")
    elif call.has("-b") or call.stdin.kind > Kind.TEXT:
        yield high("does at another machine what is not shown")
    yield medium("talks to another machine")


def _ssh(call: Call) -> Iterator[Finding]:
    if call.has("-R") or any(text.startswith("-R") for text in call.texts):
        yield high("opens a tunnel from outside into this machine")
    if call.stdin.kind > Kind.TEXT and call.operands():
        yield high("sends data to another machine")
    yield medium("talks to another machine")


def _netcat(call: Call) -> Iterator[Finding]:
    if call.has("-e", "-c", "--exec", "--sh-exec") or re.search(r"(?:EXEC|SYSTEM):", call.line):
        yield high("opens a shell to another machine")
    elif call.stdin.kind > Kind.TEXT or re.search(r"(?:FILE|OPEN):", call.line):
        yield high("sends data to another machine")
    yield medium("talks to another machine")


def _looks_up(call: Call) -> Iterator[Finding]:
    if any(word.flow.kind > Kind.PLAIN or _is_hidden_data(word) for word in call.args):
        yield high("puts data into names that are looked up")
    yield medium("talks to the network")


def _is_hidden_data(word: Word) -> bool:
    return (bool(word.variables) and "." in word.text) or any(
        is_secret_variable(one) for one in word.variables
    )


def _sends(call: Call) -> Iterator[Finding]:
    yield high("sends data out")


def _wormhole(call: Call) -> Iterator[Finding]:
    yield high("sends data out") if "send" in call.texts else medium("talks to another machine")


def _tunnel(call: Call) -> Iterator[Finding]:
    yield high("opens a tunnel from outside into this machine")


def _asks(call: Call) -> Iterator[Finding]:
    yield medium("talks to the network")


def _httpie(call: Call) -> Iterator[Finding]:
    words = call.operands(("-a", "--auth", "-o"))
    here = any(is_this_machine(word.text) or word.text.startswith(":") for word in words[:2])
    if words and words[0].text.upper() == "DELETE" and not here:
        yield high("deletes at a server")
    sends = (
        any(re.search(r"\w:?=?@.|^@", word.text) for word in words[1:])
        or call.stdin.kind > Kind.TEXT
    )
    if sends and not here:
        yield high("sends data to a server")
    yield medium("talks to the network")


RULES = by_name(
    {
        "curl wget aria2c axel": _fetch,
        "http https xh httpie": _httpie,
        "scp pscp": _copies,
        "sftp ftp lftp ncftpput tftp smbclient": _transfers,
        "ssh autossh": _ssh,
        "nc ncat netcat socat telnet": _netcat,
        "dig nslookup host drill getent ping": _looks_up,
        "mail mailx mutt sendmail swaks msmtp ssmtp pastebinit telegram-send ffsend termbin"
        " gist s-nail": _sends,
        "croc wormhole magic-wormhole": _wormhole,
        "ngrok cloudflared localtunnel lt bore frpc chisel zrok pagekite surge": _tunnel,
        "traceroute mtr nmap whois iperf3 speedtest": _asks,
    }
)
