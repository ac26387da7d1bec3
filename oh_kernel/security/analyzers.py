"""How risky is an action?

The model says what it thinks; a short list of patterns that cannot be undone says HIGH whatever
the model thinks. The higher of the two counts.
"""

import re
from dataclasses import dataclass
from typing import Any

from oh_kernel.events import Action, SecurityRisk

# A word of a command line, as it begins a simple command: after `;`, `&&`, `|`, `(`, sudo, env ...
_START = r"(?:^|[\n;&|(`]|\$\(|\b(?:sudo|env|nohup|time|xargs|exec|command)\s(?:\S+\s)*?)\s*"
_RULES = (
    (_START + r"(?:/\S*/)?rm\s(?:[^\n;&|]*\s)?(?:-\w*[rR]\w*|--recursive)\b", "deletes folders"),
    (r"\bfind\b[^\n;|]*\s-delete\b", "deletes every file that is found"),
    (r"\bsudo\b", "acts as the administrator"),
    (_START + r"(?:mkfs\S*|fdisk|parted|shred|wipefs)\b", "overwrites a disk or a file for good"),
    (_START + r"dd\s[^\n;&|]*\bof=/dev/", "writes to a device"),
    (r">\s*/dev/(?:sd|nvme|hd|vd|mmcblk)", "writes to a device"),
    (r"\b(?:curl|wget)\b[^\n;&]*\|\s*(?:\S+\s+)*?(?:ba|z|da)?sh\b", "runs what it downloads"),
    (r"\b(?:ba|z)?sh\s+(?:-c\s+)?[\"']?(?:<\(|\$\()\s*(?:curl|wget)\b", "runs what it downloads"),
    (
        r"\bgit\s(?:[^\n;&|]*\s)?push\s[^\n;&|]*(?:--force\b|-f\b|\s\+\S)",
        "rewrites a shared history",
    ),
    (r"\bgit\s(?:[^\n;&|]*\s)?(?:reset\s+--hard|clean\s+-\w*f)", "throws uncommitted work away"),
    (
        r"\bch(?:mod|own)\s(?:[^\n;&|]*\s)?-\w*R[^\n;&|]*\s/(?:\s|$|\w+(?:\s|$))",
        "opens system folders",
    ),
    (_START + r"(?:shutdown|reboot|halt|poweroff)\b", "stops the machine"),
    (r":\(\)\s*\{\s*:\|:&\s*\}", "is a fork bomb"),
    (
        r"(?:~|\$HOME|/home/\w+|/root)/\.(?:ssh/id_|aws/credentials|netrc|gnupg)",
        "reads credentials",
    ),
    (r"/etc/shadow\b", "reads credentials"),
    (r"\bshutil\.rmtree\s*\(", "deletes folders"),
    (r"\bDROP\s+(?:TABLE|DATABASE|SCHEMA)\b", "drops a table or database"),
)
_PATTERNS = tuple((re.compile(pattern, re.IGNORECASE), reason) for pattern, reason in _RULES)
_TEXT_FIELDS = ("command", "code")


@dataclass(frozen=True)
class Assessment:
    """A risk and why it is thought to be so, in words for a person."""

    risk: SecurityRisk
    reasons: tuple[str, ...] = ()


def assess(tool_name: str, action: Action, claimed: SecurityRisk) -> Assessment:
    """How risky `action` is; `claimed` is what the model said.

    Only what a tool will run is looked at, never a file's text that it will write.
    """
    reasons = dict.fromkeys(
        reason
        for text in _run_texts(tool_name, action)
        for pattern, reason in _PATTERNS
        if pattern.search(text)
    )
    if reasons:
        return Assessment(SecurityRisk.HIGH, tuple(reasons))
    if claimed is SecurityRisk.HIGH:
        return Assessment(claimed, ("the model marks it as high risk",))
    return Assessment(claimed)


def _run_texts(tool_name: str, action: Action) -> list[str]:
    if tool_name not in ("terminal", "ipython"):
        return []
    values: list[Any] = [getattr(action, name, None) for name in _TEXT_FIELDS]
    return [value for value in values if isinstance(value, str)]
