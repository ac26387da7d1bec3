"""How risky are the commands for the system, its processes, its disks and its keys?"""

import re
from collections.abc import Callable, Iterator

from oh_kernel.security.findings import Finding, high, medium, rail
from oh_kernel.security.places import Place, is_secret_path, place_of
from oh_kernel.security.shell.model import Call, Kind
from oh_kernel.security.shell.packages import installing
from oh_kernel.security.tables import names

# What only asks, by program: the line then changes nothing.
_ONLY_ASKS = {
    "apt": r"list|show|search|policy|depends|--installed",
    "apt-get": r"-s\b|--simulate|check|changelog",
    "dpkg": r"-l|-L|-s|-S|--list|--status|--get-selections",
    "rpm": r"-q",
    "yum": r"list|info|search|check-update",
    "dnf": r"list|info|search|check-update",
    "pacman": r"-Q|-Ss|-Si",
    "apk": r"info|search|list",
    "snap": r"list|info|find",
    "brew": r"list|ls|info|search|outdated|config|doctor|--prefix|deps|leaves|home|shellenv",
    "systemctl": r"(?:--\S+ )*(?:status|list-\S+|show|is-\S+|cat|get-default)",
    "service": r"\S+ status|--status-all",
    "launchctl": r"list|print",
    "crontab": r"(?:-u \S+ )?-l",
    "at": r"-l",
    "iptables": r"-L|-S|--list|-nL|-vnL|-nvL",
    "ip6tables": r"-L|-S",
    "nft": r"list",
    "ufw": r"status|show",
    "firewall-cmd": r"--(?:list|state|get)",
    "sysctl": r"-a|-n|[\w.]+$",
    "mount": r"$|-l",
    "fdisk": r"-l",
    "sfdisk": r"-l|-d",
    "parted": r"(?:-\w+ )*(?:-l|--list)|\S+ print",
    "hdparm": r"-[iIt]",
    "swapon": r"-s|--show",
    "ip": r"(?:-\S+ )*(?:a|addr|address|r|route|link|l|neigh|rule)?(?: show| list| get)?(?: \S+)?$",
    "ifconfig": r"$|-a|\w+$",
    "hostnamectl": r"$|status",
    "timedatectl": r"$|status|show",
    "passwd": r"-S|--status",
    "chage": r"-l",
    "lvs": r"",
    "zpool": r"list|status|get|iostat",
    "zfs": r"list|get",
    "xhost": r"$",
    "modprobe": r"-n|--show",
    "ulimit": r"$|-a|-\w$",
    "setenforce": r"^$",
    "update-alternatives": r"--(?:list|display|query)",
    "atq": r"",
    "nmcli": r"$|(?:device|dev|d|connection|con|c|general|g)(?: show| status)?$",
    "defaults": r"read",
    "csrutil": r"status",
    "spctl": r"--status",
    "screen": r"-ls|-list",
}
_SYSTEM = names(
    """
    apt apt-get aptitude dpkg rpm yum dnf zypper pacman apk snap flatpak brew port choco winget
    emerge nix-env systemctl service launchctl crontab at batch initctl chkconfig rc-update
    update-rc.d shutdown reboot halt poweroff init telinit useradd usermod userdel groupadd
    groupdel adduser deluser passwd chpasswd visudo chsh chage gpasswd mount umount modprobe
    insmod rmmod sysctl hostnamectl timedatectl update-alternatives ldconfig chattr setcap ip
    ifconfig route nmcli swapoff swapon chroot nsenter kexec defaults installer softwareupdate
    add-apt-repository apt-key update-grub grub-install efibootmgr loadkeys localectl ntpdate
    hwclock depmod
    """
)
_PROTECTION = names(
    """
    iptables ip6tables nft ufw firewall-cmd setenforce spctl csrutil xhost auditctl aa-disable
    """
)
_DISKS = names(
    """
    mkfs mke2fs mkswap fdisk sfdisk cfdisk gdisk sgdisk parted wipefs blkdiscard cryptsetup
    lvremove vgremove pvremove pvcreate mdadm zpool zfs hdparm badblocks nvme losetup tune2fs
    resize2fs fsck diskutil format
    """
)
_CREDENTIALS = re.compile(
    r"^security (?:find-\S+|dump-keychain|export)|^secret-tool (?:lookup|search)|^pass (?!git"
    r"|init|generate)\S"
    r"|^gpg2? .*(?:--export-secret|--decrypt|-d\b)|^ssh-add -D|^openssl (?:rsa|pkey|ec"
    r"|pkcs12)\b(?!.*-pubout)"
    r"|^ps .*\be(?:ww?|au)|^ps (?:auxe|axe|eww)|^keyctl (?:print|pipe)|^kwallet|^mimikatz"
    r"|^lsof .*environ"
    r"|^fc\b.*-l|^dconf dump /"
)


def _system(call: Call) -> Iterator[Finding]:
    if _asks(call):
        return
    if call.name in ("shutdown", "reboot", "halt", "poweroff"):
        yield high("stops the machine")
    yield high("changes the system")


def _protection(call: Call) -> Iterator[Finding]:
    if not _asks(call):
        yield high("takes protection down")


def _asks(call: Call) -> bool:
    pattern = _ONLY_ASKS.get(call.name)
    return pattern is not None and bool(re.match(f"(?:{pattern})", " ".join(call.texts)))


def _disk(call: Call) -> Iterator[Finding]:
    if _asks(call):
        return
    places = [place_of(word.text) for word in call.operands(("-t", "-L", "-n", "-b", "-O", "-o"))]
    if Place.DEVICE in places and (
        call.name.startswith(("mkfs", "mke2fs")) or call.name in ("wipefs", "blkdiscard")
    ):
        yield rail("overwrites a disk")
    elif places and all(place in (Place.WORKSPACE, Place.TEMPORARY) for place in places[:1]):
        image = call.name.startswith("mk") or call.name in (
            "fsck",
            "fdisk",
            "sfdisk",
            "parted",
            "sgdisk",
        )
        yield medium("writes an image file") if image else high("changes a disk")
    else:
        yield high("changes a disk")


def _kill(call: Call) -> Iterator[Finding]:
    texts = call.texts
    if "-0" in texts or texts[:1] in (["-l"], ["-L"]) or (texts[:2] == ["-s", "0"]):
        return
    words = [
        word
        for word in call.args
        if not re.match(r"-(?:\d{1,2}|[A-Z]\w*|s|n|-signal\S*)$", word.text)
    ]
    if "-1" in texts[1:] or texts == ["-1"]:
        yield high("ends all processes of the user")
        return
    for word in words:
        own = word.text.startswith("%") or word.text in ("$!", "TERM", "KILL", "INT", "HUP", "--")
        # A pid file, a variable set from `$!`: its own. A number or a port: who knows whose.
        from_file = word.flow.kind is Kind.DATA
        named = (
            bool(word.variables)
            and re.search(r"PID$|^!$|^\w*pid$", word.variables[0])
            and word.text != "$PPID"
        )
        if not (own or from_file or named):
            yield high("ends processes that are not its own")
    yield medium("ends a process of its own")


def _kill_by_name(call: Call) -> Iterator[Finding]:
    if call.has("-0", "-l") or (call.name == "fuser" and not call.has("-k")):
        return
    yield high("ends processes by their name or port")


def _session(call: Call) -> Iterator[Finding]:
    if re.search(r"\bkill-server\b|kill-session -a|-X quit|--all|-u\b", call.line):
        yield high("ends sessions that are not its own")
    for_keys = re.search(r"send-keys", call.line)
    yield medium("types into a session") if for_keys else medium("changes a session")


def _slurm(call: Call) -> Iterator[Finding]:
    if call.has("-u", "--user", "-A", "-p", "-t", "--state") or any(
        word.variables for word in call.args
    ):
        yield high("ends jobs by their owner")
    yield medium("ends a job")


def _keys(call: Call) -> Iterator[Finding]:
    if _CREDENTIALS.search(call.line):
        yield high("shows or deletes credentials")
    elif call.name in ("ssh-keygen", "gpg", "openssl", "pass"):
        yield medium("works with keys")


def _ssh_copy(call: Call) -> Iterator[Finding]:
    yield high("changes who may log in")


def _history(call: Call) -> Iterator[Finding]:
    if call.has("-c", "-d"):
        yield high("deletes the history of commands")


def _shell_settings(call: Call) -> Iterator[Finding]:
    if call.texts[:2] == ["+o", "history"]:
        yield high("hides what is run")
    if call.name == "unset" and "HISTFILE" in call.texts:
        yield high("hides what is run")
    if call.name == "umask" and call.texts[:1] in (["000"], ["0"], ["0000"]):
        yield high("opens new files to everybody")


def _searches(call: Call) -> Iterator[Finding]:
    """A search for secrets themselves, outside of the workspace."""
    far = any(place_of(word.text) in (Place.OUTSIDE, Place.SYSTEM) for word in call.operands()[1:])
    if (
        re.search(r"PRIVATE KEY|AKIA|ghp_|passw|secret|api.?key|token|credential", call.line, re.I)
        and far
    ):
        yield high("looks for credentials")


def _python(call: Call) -> Iterator[Finding]:
    if call.texts[:1] == ["-m"] or call.has("-m"):
        words = call.texts[call.texts.index("-m") + 1 :] if "-m" in call.texts else []
        yield from _module(words)


def _module(words: list[str]) -> Iterator[Finding]:
    name, rest = (words[0], words[1:]) if words else ("", [])
    if name == "pip":
        yield from installing(rest)
    elif name == "flit" or (name == "twine" and "upload" in rest):
        yield high("publishes a package")
    elif name == "keyring" and rest[:1] == ["get"]:
        yield high("shows credentials")
    elif name not in (
        "json.tool",
        "this",
        "site",
        "sysconfig",
        "platform",
        "tokenize",
        "dis",
        "ast",
        "calendar",
    ):
        yield medium("runs a program")


def _make(call: Call) -> Iterator[Finding]:
    if call.has("-n", "--dry-run", "--just-print", "--recon", "-q"):
        return
    if call.scope.folder and call.scope.downloaded(call.scope.folder):
        yield high("runs what it downloads")
    if re.search(
        r"(?:^| )(?:drop|reset|wipe|destroy|purge|nuke|deploy|publish|release)(?:[-_]?\w*)(?: |$)",
        call.line,
    ):
        yield high("runs a target that destroys or publishes")
    yield medium("runs the project's program")


def _reads(call: Call) -> Iterator[Finding]:
    if any(is_secret_path(word.text) for word in call.args):
        yield medium("reads credentials")


RULES: dict[str, Callable[[Call], Iterator[Finding]]] = {
    **dict.fromkeys(_SYSTEM, _system),
    **dict.fromkeys(_PROTECTION, _protection),
    **dict.fromkeys(_DISKS, _disk),
    **dict.fromkeys(names("pkill killall killall5 skill xkill fuser taskkill"), _kill_by_name),
    **dict.fromkeys(names("tmux screen"), _session),
    **dict.fromkeys(names("scancel qdel bkill"), _slurm),
    **dict.fromkeys(
        names(
            """
    security secret-tool pass gpg gpg2 ssh-add ssh-keygen openssl ps keyctl fc dconf
    """
        ),
        _keys,
    ),
    **dict.fromkeys(names("grep egrep fgrep rg zgrep ag"), _searches),
    **dict.fromkeys(names("python python3 python2 ipython ipython3 pypy pypy3"), _python),
    **dict.fromkeys(names("set unset umask"), _shell_settings),
    **dict.fromkeys(names("make gmake ninja just task invoke"), _make),
    **dict.fromkeys(names("cat head tail less more echo printf"), _reads),
    "kill": _kill,
    "ssh-copy-id": _ssh_copy,
    "history": _history,
}
