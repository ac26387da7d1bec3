"""Who may use a thing at a time, when several calls want the same file or the same session?"""

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping, MutableMapping
from contextlib import AsyncExitStack, asynccontextmanager
from weakref import WeakValueDictionary

# Seconds to wait for a key, by what stands before its colon.
TIMEOUTS_S = {"file": 30.0, "terminal": 300.0, "browser": 300.0, "mcp": 300.0, "tool": 60.0}
OTHER_TIMEOUT_S = 30.0

_Locks = MutableMapping[str, asyncio.Lock]
# A lock lasts while somebody holds it or waits for it, so the tables do not grow.
_of_files: _Locks = WeakValueDictionary()


class LockTimeout(Exception):
    """A thing stayed in use; the text is for the model."""

    def __init__(self, key: str, timeout_s: float) -> None:
        super().__init__(f"Could not acquire lock for '{key}' within {timeout_s:g}s")


class ResourceLocks:
    """The locks of one conversation. Used on the agent thread.

    Files are the same for all conversations of a process and so are their locks; a shell or a tool
    is each conversation's own. Other processes are kept from half-written files by renames alone.
    """

    def __init__(self, timeouts_s: Mapping[str, float] = TIMEOUTS_S) -> None:
        self._timeouts_s = timeouts_s
        self._own: _Locks = WeakValueDictionary()

    @asynccontextmanager
    async def held(self, keys: Iterable[str]) -> AsyncIterator[None]:
        """Have every one of `keys` to oneself; raises LockTimeout when one stays in use."""
        async with AsyncExitStack() as stack:
            for key in sorted(set(keys)):  # one order for all, so that none wait for each other
                lock = self._lock(key)
                await self._acquire(lock, key)
                stack.callback(lock.release)
            yield

    def _lock(self, key: str) -> asyncio.Lock:
        table = _of_files if key.startswith("file:") else self._own
        return table.setdefault(key, asyncio.Lock())

    async def _acquire(self, lock: asyncio.Lock, key: str) -> None:
        timeout_s = self._timeouts_s.get(key.partition(":")[0], OTHER_TIMEOUT_S)
        try:
            async with asyncio.timeout(timeout_s):
                await lock.acquire()
        except TimeoutError:
            raise LockTimeout(key, timeout_s) from None
