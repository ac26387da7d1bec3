"""How risky is an action?

The model says what it thinks; analyzers read what a tool would run. The highest counts, and an
analyzer that fails says HIGH: what nobody understood is what a person should see.
"""

import logging
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from oh_kernel.events import Action, SecurityRisk
from oh_kernel.security.findings import Finding, high, worst
from oh_kernel.security.guarded_files import guarded_findings

Analyzer = Callable[[str], Sequence[Finding]]
"""Says what a text does when it is run."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Assessment:
    """A risk and why it is thought to be so, in words for a person."""

    risk: SecurityRisk
    reasons: tuple[str, ...] = ()
    always_ask: bool = False
    """Whether a person is asked whatever the policy allows."""


def assess(
    tool_name: str, action: Action, claimed: SecurityRisk, workspace: Path | None = None
) -> Assessment:
    """How risky `action` is; `claimed` is what the model said.

    What a tool will run is looked at, and which files it will write, never their text.
    """
    if guarded := guarded_findings(tool_name, action, workspace):
        return Assessment(SecurityRisk.HIGH, tuple(one.reason for one in guarded), True)
    reader = _READERS.get(tool_name)
    text = getattr(action, reader[0], None) if reader is not None else None
    if reader is None or not isinstance(text, str):
        return _from_claim(claimed)
    findings = examined(reader[1], _seen_from(workspace, text))
    risk = worst([*findings, Finding(claimed, "")])
    if risk is not SecurityRisk.HIGH:
        return Assessment(risk)
    reasons = dict.fromkeys(f.reason for f in findings if f.risk is SecurityRisk.HIGH)
    always_ask = any(finding.always_ask for finding in findings)
    return Assessment(risk, tuple(reasons) or _from_claim(claimed).reasons, always_ask)


def examined(analyzer: Analyzer, text: str) -> Sequence[Finding]:
    """What `analyzer` finds in `text`; that it fails is a finding."""
    try:
        return analyzer(text)
    except Exception:  # whatever it is, nobody has understood the text
        _log.exception("the risk of a text could not be judged")
        return [high("could not be judged")]


def _seen_from(workspace: Path | None, text: str) -> str:
    """`text` with each path into the workspace as one from there, where it is run.

    Left as it is for a workspace that the user's home is in: that is more than a project.
    """
    if workspace is None or Path.home().is_relative_to(workspace):
        return text
    path = rf"(?<![\w.~/$}}-]){re.escape(str(workspace))}(?![\w.-])"
    return re.sub(path, ".", text)


def _from_claim(claimed: SecurityRisk) -> Assessment:
    if claimed is SecurityRisk.HIGH:
        return Assessment(claimed, ("the model marks it as high risk",))
    return Assessment(claimed)


def _shell(text: str) -> Sequence[Finding]:
    from oh_kernel.security.shell.risk import shell_findings  # tree-sitter and large tables

    return shell_findings(text)


def _cell(text: str) -> Sequence[Finding]:
    from oh_kernel.security.cells import cell_findings  # tree-sitter and large tables

    return cell_findings(text)


_READERS: dict[str, tuple[str, Analyzer]] = {
    "terminal": ("command", _shell),
    "ipython": ("code", _cell),
}
