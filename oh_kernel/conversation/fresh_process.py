"""How are recorded actions carried out again without touching what runs here?

The Python of a conversation runs in its process: in a notebook, among the user's variables. So a
rerun has a process to itself, the command `oh-kernel rerun`, whose report is read back.
"""

import asyncio
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path

from oh_kernel.conversation.core import Core
from oh_kernel.conversation.rerun import check_apart
from oh_kernel.conversation.rerun_report import RerunReport
from oh_kernel.errors import ConversationError

# With -P, a file of the user's that is called like a library is not imported in its place.
COMMAND = (sys.executable, "-P", "-m", "oh_kernel.cli", "rerun")
END_S = 5.0


async def rerun_elsewhere(core: Core, workspace: Path, *, allow_risky: bool) -> RerunReport:
    """The report on a rerun of what is stored of the conversation; cancelled, it is ended."""
    workspace = workspace.expanduser().resolve()
    check_apart(core.workspace, workspace)
    given = [core.id, "--workspace", str(workspace), "--store-path", str(core.store.path)]
    given += ["--json", *(["--allow-risky"] if allow_risky else [])]
    process = await asyncio.create_subprocess_exec(
        *COMMAND,
        *given,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    try:
        report, remarks = await process.communicate()
    finally:
        if process.returncode is None:
            await _end(process)
    if not report:
        said = remarks.decode(errors="replace").strip()
        raise ConversationError(f"The rerun failed: {said[-1000:] or 'it said nothing.'}")
    return RerunReport.model_validate_json(report)


async def _end(process: asyncio.subprocess.Process) -> None:
    """End it in good order, so that it ends its shell; else at once."""
    with suppress(ProcessLookupError):
        process.terminate()
        with suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), END_S)
            return
        os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
