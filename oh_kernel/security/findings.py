"""What did an analyzer see, and which of several things is the worst?"""

from collections.abc import Iterable
from dataclasses import dataclass

from oh_kernel.events import SecurityRisk


@dataclass(frozen=True)
class Finding:
    """One thing that a text does: its risk, and what it is in words for a person.

    `always_ask` marks the few that no policy lets through.
    """

    risk: SecurityRisk
    reason: str
    always_ask: bool = False


class TooInvolved(Exception):
    """A text is so involved that it is not read to its end; a person has to."""


def high(reason: str) -> Finding:
    """A person must be asked."""
    return Finding(SecurityRisk.HIGH, reason)


def medium(reason: str) -> Finding:
    """It changes something that can be put right."""
    return Finding(SecurityRisk.MEDIUM, reason)


def rail(reason: str) -> Finding:
    """A person is asked whatever the policy says."""
    return Finding(SecurityRisk.HIGH, reason, always_ask=True)


def worst(findings: Iterable[Finding]) -> SecurityRisk:
    """The highest risk; LOW when nothing was found.

    >>> worst([medium("writes a file"), high("deletes folders")])
    <SecurityRisk.HIGH: 'HIGH'>
    """
    order = list(SecurityRisk)
    risks = [SecurityRisk.LOW, *(finding.risk for finding in findings)]
    return max(risks, key=order.index)


def capped(findings: Iterable[Finding]) -> list[Finding]:
    """The same things, done where they can be put right: a rehearsal, a temporary folder."""
    return [medium(finding.reason) for finding in findings]
