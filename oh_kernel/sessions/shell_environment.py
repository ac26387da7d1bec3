"""What does a shell of the agent inherit from the process that it works for?"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from oh_kernel.options import OPTIONS

# Keys of this program and of the reference's server; those of options are in the options' table.
_OWN_KEYS = re.compile(r"SESSION_API_KEY|OPENHANDS_SESSION_API_KEY|OH_SESSION_API_KEYS(_\d+)?")

# A dumb terminal: there is no screen, and most programs then leave out what only moves about.
_TERMINAL = {"TERM": "dumb", "PAGER": "cat", "GIT_PAGER": "cat", "MANPAGER": "cat"}
# Shells that the agent starts in its own would write what it types among the user's own commands.
_NO_HISTORY = {"HISTFILE": "/dev/null"}


def shell_environment(env: Mapping[str, str] | None = None) -> dict[str, str]:
    """`env` (default: this process's own) for a shell: no key of ours, no pager, no history."""
    source = os.environ if env is None else env
    kept = {name: value for name, value in source.items() if not is_own_key(name)}
    kept["AI_AGENT"] = kept.get("AI_AGENT") or "openhands"
    return kept | _TERMINAL | _NO_HISTORY


def is_own_key(name: str) -> bool:
    """Whether the variable holds a key with which this program itself is reached or reaches."""
    return name in _secret_variables() or _OWN_KEYS.fullmatch(name) is not None


def _secret_variables() -> set[str]:
    secret = [option for option in OPTIONS if option.secret]
    return {name for option in secret for name in (option.variable, *option.aliases)}
