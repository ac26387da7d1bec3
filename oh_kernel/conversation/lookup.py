"""Which stored conversation does a person mean?"""

from oh_kernel.errors import ConversationNotFound
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
