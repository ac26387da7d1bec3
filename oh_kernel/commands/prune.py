"""How are old conversations deleted?"""

import argparse

from oh_kernel.cli import options_given
from oh_kernel.errors import SettingsError
from oh_kernel.settings import load_settings
from oh_kernel.store import EventStore
from oh_kernel.store.conversations import outdated

MB = 1_000_000


def prune(arguments: argparse.Namespace) -> int:
    """`oh-kernel prune`: what is beyond any limit that was given goes, oldest first."""
    limits = (arguments.older_than, arguments.keep, arguments.max_size)
    if all(limit is None for limit in limits):
        raise SettingsError(
            "Nothing says what may go.", remedy="Give --older-than, --keep or --max-size."
        )
    if any(limit is not None and limit < 0 for limit in limits):
        raise SettingsError("A limit is below 0.", remedy="Give 0 or more.")
    path = load_settings(options_given(arguments)).store_file
    if not path.exists():
        print(f"There is no store at {path}.")
        return 0
    max_bytes = None if arguments.max_size is None else int(arguments.max_size * MB)
    with EventStore.open(path) as store:
        if arguments.dry_run:
            _say_what_would_go(store, arguments.older_than, arguments.keep, max_bytes)
            return 0
        report = store.prune(
            older_than_days=arguments.older_than, keep=arguments.keep, max_bytes=max_bytes
        )
    print(f"{len(report.deleted)} conversations deleted, {len(report.in_use)} left as in use.")
    print(f"The store has {report.bytes_after / MB:.1f} MB, before {report.bytes_before / MB:.1f}.")
    return 0


def _say_what_would_go(
    store: EventStore, older_than: float | None, keep: int | None, max_bytes: int | None
) -> None:
    infos = store.conversations(limit=-1)
    going = set(outdated(infos, older_than, keep, max_bytes))
    for info in infos:
        if info.id in going:
            used = info.updated_at[:16].replace("T", " ")
            print(f"{info.id}  {used}  {info.size_bytes / MB:8.2f} MB  {info.title}")
    print(f"{len(going)} of {len(infos)} conversations would go.")
