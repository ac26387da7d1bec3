"""How is a provider's key stored from a terminal?"""

import argparse
import getpass
import sys

from oh_kernel.credentials import store_key
from oh_kernel.errors import SettingsError
from oh_kernel.providers import BY_NAME, PROVIDERS
from oh_kernel.settings import config_folder


def login(arguments: argparse.Namespace) -> int:
    """`oh-kernel login PROVIDER`: asks without echo, or reads one line that is piped in."""
    provider = BY_NAME.get(arguments.provider)
    if provider is None or not provider.needs_key:
        names = ", ".join(one.name for one in PROVIDERS if one.needs_key)
        raise SettingsError(
            f"{arguments.provider!r} is no provider that takes a key.", remedy=f"There are {names}."
        )
    key = _key(f"Key for {provider.name} (not shown): ")
    if not key:
        raise SettingsError(
            "No key was given.", remedy="Run it again and type the key, or pipe it in as one line."
        )
    place = store_key(provider.name, key, config_folder())
    print(f"The key for {provider.name} is stored in {place}.")
    return 0


def _key(prompt: str) -> str:
    """What is typed, or without a terminal the first line there is; "" at the end of either."""
    if not sys.stdin.isatty():
        return sys.stdin.readline().strip()
    try:
        return getpass.getpass(prompt).strip()
    except EOFError:
        print()  # the cursor stands behind the prompt
        return ""
