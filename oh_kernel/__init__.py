"""A software agent inside the notebook."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from oh_kernel.conversation.conversation import Conversation
    from oh_kernel.errors import OpenHandsError
    from oh_kernel.security.policies import AlwaysConfirm, ConfirmRisky, NeverConfirm
    from oh_kernel.settings import Settings, load_settings
    from oh_kernel.store import EventStore

    __version__: str

__all__ = [
    "AlwaysConfirm",
    "ConfirmRisky",
    "Conversation",
    "EventStore",
    "NeverConfirm",
    "OpenHandsError",
    "Settings",
    "__version__",
    "load_ipython_extension",
    "load_settings",
]

# Imported when first asked for: a kernel that starts pays for none of them.
_HOMES = {
    "AlwaysConfirm": "oh_kernel.security.policies",
    "ConfirmRisky": "oh_kernel.security.policies",
    "Conversation": "oh_kernel.conversation.conversation",
    "EventStore": "oh_kernel.store",
    "NeverConfirm": "oh_kernel.security.policies",
    "OpenHandsError": "oh_kernel.errors",
    "Settings": "oh_kernel.settings",
    "load_settings": "oh_kernel.settings",
}


def load_ipython_extension(shell: Any) -> None:
    """`%load_ext oh_kernel`: the magics, in any IPython."""
    from oh_kernel.kernel.front import install  # IPython, which whoever calls this has

    install(shell)


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version  # reads files

        return version("oh-kernel")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
