"""How does a model run Python where the user's variables live?"""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import Field

from oh_kernel.events import Action, ImageContent, Observation, TextContent, ToolAnnotations
from oh_kernel.tools.base import Tool, ToolContext, ToolExecutor, clip
from oh_kernel.tools.output_text import model_images, model_text

if TYPE_CHECKING:
    from oh_kernel.sessions.namespace import Execution, Namespace

MAX_OUTPUT_CHARS = 30_000
NO_OUTPUT = "[The code ran without output.]"


class IpythonAction(Action):
    """What to run."""

    code: str = Field(
        description="Python to run, with top-level await, %magics and !commands. The value of the "
        "last expression is shown; names stay bound for later calls and for the user."
    )
    timeout: float | None = Field(
        default=None, gt=0, description="Seconds until it is interrupted; for long computations."
    )


class IpythonObservation(Observation):
    """What it printed and showed."""

    timed_out: bool = False
    interrupted: bool = False


class IpythonExecutor(ToolExecutor[IpythonAction, IpythonObservation]):
    """Runs Python on the main thread, in the notebook's namespace or else in a shell of its own."""

    def __init__(
        self,
        workspace: str | Path,
        *,
        namespace: "Namespace | None" = None,
        timeout_s: float = 600.0,
        mask: Callable[[str], str] | None = None,
    ) -> None:
        """`mask` hides secrets in what appears in the notebook, and before output is clipped."""
        super().__init__(workspace)
        self._mask = mask
        self._namespace = namespace
        self._timeout_s = timeout_s

    def resources(self, action: IpythonAction) -> tuple[str, ...]:
        return ()  # there is one main thread, and code in it may itself run a conversation

    async def run(self, action: IpythonAction, context: ToolContext) -> IpythonObservation:
        """Run the code; cancelled, it is interrupted and what it printed so far is kept."""
        if self._namespace is None:
            from oh_kernel.sessions.namespace import Namespace  # imports IPython

            self._namespace = await Namespace.in_process(self.workspace)
        execution = await self._namespace.run(
            action.code,
            timeout_s=action.timeout or self._timeout_s,
            on_output=context.show,
            on_rich=context.make_room,
            mask=self._mask,
        )
        return observation_of(execution, self._mask)


class IpythonTool(Tool):
    """Running Python, as a model calls it."""

    name = "ipython"
    prose = (
        "Run Python in the user's live notebook session. Output, the last value, errors and plots "
        "come back; long output is cut in its middle. After a timeout or error, names bound so far "
        "are kept. input() and debuggers are refused."
    )
    action = IpythonAction
    observation = IpythonObservation
    executor = IpythonExecutor
    hints = ToolAnnotations(title="ipython")


def observation_of(
    execution: "Execution", mask: Callable[[str], str] | None = None
) -> IpythonObservation:
    """What the model is told of an execution: its text, masked, then clipped, and its pictures."""
    text = model_text(execution.outputs)
    if mask is not None:
        text = mask(text)
    images = model_images(execution.outputs)
    note = execution.note or ("" if text or images else NO_OUTPUT)
    shown = "\n".join(part for part in (clip(text, MAX_OUTPUT_CHARS), note) if part)
    parts: list[TextContent | ImageContent] = [TextContent(text=shown)] if shown else []
    if images:
        parts.append(ImageContent(image_urls=images))
    return IpythonObservation(
        content=parts,
        is_error=not execution.ok,
        timed_out=execution.timed_out,
        interrupted=execution.interrupted,
    )
