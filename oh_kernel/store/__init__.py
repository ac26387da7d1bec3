"""Where events last: one SQLite file of conversations, with one writer each."""

from oh_kernel.store.conversations import ConversationInfo, PruneReport
from oh_kernel.store.damage import RepairReport
from oh_kernel.store.lease import HEARTBEAT_S, Lease
from oh_kernel.store.listing import ConversationPage
from oh_kernel.store.queries import EventPage
from oh_kernel.store.sqlite import EventStore

__all__ = [
    "HEARTBEAT_S",
    "ConversationInfo",
    "ConversationPage",
    "EventPage",
    "EventStore",
    "Lease",
    "PruneReport",
    "RepairReport",
]
