"""Which conversations are stored, and which of them does a person mean?"""

from pathlib import Path

from oh_kernel.errors import ConversationNotFound, StoreError
from oh_kernel.store import ConversationInfo, EventStore


def stored_conversation(store: EventStore, given: str | None = None) -> ConversationInfo:
    """The conversation whose id is `given` or begins with it; without one, that used last."""
    infos = store.conversations(limit=-1)
    if not infos:
        raise ConversationNotFound(f"No conversation is stored in {store.path} yet.")
    if given is None:
        return infos[0]
    found = [info for info in infos if info.id.startswith(given.lower())]
    exact = [info for info in found if info.id == given.lower()]
    if len(exact or found) == 1:
        return (exact or found)[0]
    if found:
        some = ", ".join(info.id for info in found[:3])
        raise ConversationNotFound(
            f"{len(found)} conversations begin with {given}: {some} ...",
            remedy="Give more characters.",
        )
    newest = ", ".join(info.id for info in infos[:3])
    raise ConversationNotFound(
        f"No stored conversation begins with {given}.", remedy=f"The newest are {newest}."
    )


def newest_conversations(file: Path, limit: int) -> tuple[ConversationInfo, ...]:
    """The conversations in this store that were used last, newest first; none if it is not there.

    It is looked at without being changed.
    """
    if not file.exists():
        return ()
    with EventStore.open(file, read_only=True) as store:
        return tuple(store.conversations(limit=limit))


def found_in(file: Path, given: str | None = None) -> ConversationInfo:
    """The conversation that is meant, of the store in this file, which is only looked at."""
    if not file.exists():
        raise StoreError(f"There is no store at {file}.", remedy="Name one with --store-path.")
    with EventStore.open(file, read_only=True) as store:
        return stored_conversation(store, given)
