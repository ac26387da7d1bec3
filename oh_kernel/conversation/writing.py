"""How does one process become the writer of a conversation, and stay it?"""

import asyncio
from contextlib import suppress

from oh_kernel.errors import StoreError
from oh_kernel.store import HEARTBEAT_S, EventStore, Lease


class Writing:
    """The lease of one conversation, from `begin` to `end`. Used on the agent thread."""

    def __init__(self, store: EventStore, conversation_id: str, label: str) -> None:
        self._store = store
        self._id = conversation_id
        self._label = label
        self._lease: Lease | None = None
        self._heartbeat: asyncio.Task[None] | None = None

    @property
    def has_begun(self) -> bool:
        """Whether this process is the writer."""
        return self._lease is not None

    async def begin(self) -> None:
        """Become the writer; raises ConversationInUse while another process is it."""
        # On a thread of its own: another process may hold the lock's file for a moment.
        label = self._label or None
        self._lease = await asyncio.to_thread(self._store.lease, self._id, label=label)
        self._heartbeat = asyncio.ensure_future(_beat(self._lease))

    def end(self) -> None:
        """Leave it to others."""
        if self._heartbeat is not None:
            self._heartbeat.cancel()
        if self._lease is not None:
            self._lease.release()
        self._lease = self._heartbeat = None


async def _beat(lease: Lease) -> None:
    with suppress(StoreError):  # taken over meanwhile: the next append is told so
        while True:
            await asyncio.sleep(HEARTBEAT_S)
            await lease.beat_async()
