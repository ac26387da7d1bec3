"""How does a conversation end for good?"""

import asyncio

from oh_kernel.conversation.core import Core
from oh_kernel.conversation.state import Trigger


async def delete(core: Core) -> None:
    """Close the conversation and delete all that is stored of it; not while it runs, here or in
    another process.

    Its state says so first: whoever finds it after a crash in between can tell.
    """
    core.check_at_rest()
    await core.begin_writing()
    await core.log.happen(Trigger.DELETE)
    await core.close()
    await asyncio.to_thread(core.store.delete, core.id)
