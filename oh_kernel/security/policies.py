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
    """Actions wait from `threshold` on; those of unknown risk if `confirm_unknown` says so."""

    def __init__(
        self, threshold: SecurityRisk = SecurityRisk.HIGH, *, confirm_unknown: bool = False
    ) -> None:
        self.threshold = threshold
        self.confirm_unknown = confirm_unknown

    def should_confirm(self, risk: SecurityRisk) -> bool:
        if risk is SecurityRisk.UNKNOWN:
            return self.confirm_unknown
        return risk.at_least(self.threshold)


def policy_named(name: str) -> ConfirmationPolicy:
    """The policy for the setting's value `never`, `always` or `risky`."""
    match name:
        case "never":
            return NeverConfirm()
        case "always":
            return AlwaysConfirm()
        case "risky":
            return ConfirmRisky()
    raise SettingsError(
        f"policy {name!r} is not known.", remedy="Choose never, always or risky (the default)."
    )
