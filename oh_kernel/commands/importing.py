"""How does a conversation that another program wrote get into the store?"""

import argparse
from pathlib import Path

from oh_kernel.cli import options_given
from oh_kernel.settings import load_settings
from oh_kernel.store import EventStore
from oh_kernel.store.interchange import import_conversation


def importing(arguments: argparse.Namespace) -> int:
    """`oh-kernel import`: a folder of the reference's layout, or a file of JSON lines."""
    with EventStore.open(load_settings(options_given(arguments)).store_file) as store:
        print(import_conversation(store, Path(arguments.path).expanduser()))
    return 0
