"""When does an action wait for a person?"""

from typing import Protocol

from oh_kernel.errors import SettingsError
from oh_kernel.events import SecurityRisk


class ConfirmationPolicy(Protocol):
    """Decides by an action's risk whether a person is asked first."""

    def should_confirm(self, risk: SecurityRisk) -> bool:
        """Whether an action of this risk waits."""


class AlwaysConfirm:
    """Every action waits."""

    def should_confirm(self, risk: SecurityRisk) -> bool:
        return True


class NeverConfirm:
    """No action waits."""

    def should_confirm(self, risk: SecurityRisk) -> bool:
        return False


class ConfirmRisky:
    """Actions wait from `threshold` on; those of unknown risk if `confirm_unknown` says so.

    >>> ConfirmRisky("MEDIUM").should_confirm(SecurityRisk.HIGH)
    True
    """

    def __init__(
        self, threshold: SecurityRisk | str = SecurityRisk.HIGH, *, confirm_unknown: bool = False
    ) -> None:
        self.threshold = SecurityRisk(threshold)
        if self.threshold is SecurityRisk.UNKNOWN:
            raise SettingsError(
                "The threshold of ConfirmRisky cannot be UNKNOWN.",
                remedy="Choose LOW, MEDIUM or HIGH; confirm_unknown=True asks about unknown risk.",
            )
        self.confirm_unknown = confirm_unknown

    def should_confirm(self, risk: SecurityRisk) -> bool:
        if risk is SecurityRisk.UNKNOWN:
            return self.confirm_unknown
        return risk.at_least(self.threshold)


def policy_named(name: str) -> ConfirmationPolicy:
    """The policy for the setting's value; `cautious` asks from MEDIUM on, and when in doubt."""
    match name:
        case "never":
            return NeverConfirm()
        case "always":
            return AlwaysConfirm()
        case "risky":
            return ConfirmRisky()
        case "cautious":
            return ConfirmRisky(SecurityRisk.MEDIUM, confirm_unknown=True)
    raise SettingsError(
        f"policy {name!r} is not known.",
        remedy="Choose never, always, cautious or risky (the default).",
    )
