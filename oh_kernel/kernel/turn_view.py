"""What does a person see of one turn, and how do their decisions come back?"""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from oh_kernel.conversation.confirmation import Approver, Decision, Question
from oh_kernel.conversation.conversation import Conversation
from oh_kernel.conversation.log import NativeOutput, Passing
from oh_kernel.conversation.toolbox import is_edit
from oh_kernel.events import Event, ObservationEvent
from oh_kernel.loop import spawn
from oh_kernel.views import approval
from oh_kernel.views.calls import diff_of
from oh_kernel.views.console import ConsoleTranscript
from oh_kernel.views.transcript import Transcript

if TYPE_CHECKING:
    from oh_kernel.views.diff_widget import DiffWidget, State


class FrontEnd(Protocol):
    """The front end that shows a cell's output. Any thread may call it."""

    @property
    def can_click(self) -> bool:
        """Whether widgets are shown, and clicks on them arrive while a cell runs."""

    @property
    def can_type(self) -> bool:
        """Whether a person can answer a question by typing."""

    def publish(
        self,
        data: Mapping[str, Any],
        metadata: Mapping[str, Any] | None = None,
        *,
        display_id: str | None = None,
        update: bool = False,
    ) -> None:
        """Show a bundle of MIME data in the running cell."""

    @property
    def redraws(self) -> bool:
        """Whether a display is replaced by its update; a terminal only goes on."""

    def write(self, text: str) -> None:
        """Show text behind what the cell has shown so far."""

    def take_status(self) -> str:
        """The display id of a status line that stands in the cell already, or ""."""

    async def ask(self, prompt: str) -> str:
        """The line that a person types."""

    def own_comm(self, comm_id: str) -> None:
        """Have messages of this comm served at once, also while a cell runs."""

    def disown_comm(self, comm_id: str) -> None:
        """End that."""


class TurnView:
    """The transcript of one turn, its diffs, and the questions to a person.

    Owned by the agent thread; clicks arrive on the comm thread, which only hands them over.
    """

    def __init__(self, front_end: FrontEnd, conversation: Conversation) -> None:
        self._front_end = front_end
        self._conversation = conversation
        self.transcript = transcript_in(front_end, conversation.workspace)
        self._decisions = Decisions(front_end, conversation, self.transcript)

    @property
    def approver(self) -> Approver | None:
        """Who decides; None when nobody can answer."""
        can_answer = self._front_end.can_click or self._front_end.can_type
        return self._decisions if can_answer else None

    def event(self, event: Event) -> None:
        """An event was stored."""
        self.transcript.event(event)
        if isinstance(event, ObservationEvent) and is_edit(event):
            self._decisions.show_applied(event)

    def delta(self, delta: Passing) -> None:
        """A piece of something that is on its way."""
        if isinstance(delta, NativeOutput):
            self.transcript.segment()  # so that it stands in its place
        else:
            self.transcript.delta(delta)

    def close(self) -> None:
        """Make everything static."""
        self._decisions.close()
        self.transcript.close()


def transcript_in(front_end: FrontEnd, workspace: Path) -> Transcript | ConsoleTranscript:
    """The transcript that suits the running cell's front end."""
    if not front_end.redraws:
        return ConsoleTranscript(_CellText(front_end), workspace=workspace)
    return Transcript(
        front_end.publish,
        workspace=workspace,
        open_edits=not front_end.can_click,
        display_id=front_end.take_status(),
    )


class _CellText:
    """The text of the running cell as a stream to write to."""

    def __init__(self, front_end: FrontEnd) -> None:
        self._front_end = front_end

    def write(self, text: str) -> None:
        self._front_end.write(text)

    def flush(self) -> None:
        """Nothing is held back."""


class Decisions:
    """The widget with a turn's edits and questions, made when the first of them comes.

    Where no widget is shown, questions are asked by a line to type, and diffs stand in the
    transcript alone.
    """

    def __init__(
        self,
        front_end: FrontEnd,
        conversation: Conversation,
        transcript: Transcript | ConsoleTranscript | None = None,
    ) -> None:
        self._front_end = front_end
        self._conversation = conversation
        self._transcript = transcript
        self._widget: DiffWidget | None = None
        self._display_id = ""
        self._asked: dict[str, asyncio.Future[Decision]] = {}
        self._shown_calls: set[str] = set()

    def show_applied(self, event: ObservationEvent) -> None:
        """Show an edit that is written already; Reject takes it back."""
        if event.tool_call_id in self._shown_calls or not self._front_end.can_click:
            return
        workspace = self._conversation.workspace
        diffs = [diff_of(edit, workspace) for edit in event.observation.edits()]
        self._live_widget().add_edit(event.id, diffs, "applied")

    async def decide(self, questions: Sequence[Question]) -> Sequence[Decision]:
        """Ask about each call."""
        if not self._front_end.can_click:
            return [await self._typed(question) for question in questions]
        waiting = [self._ask_by_click(question) for question in questions]
        try:
            return await asyncio.gather(*waiting)
        except asyncio.CancelledError:
            for question in questions:
                self._set_state(question.call.tool_call_id, "closed", "taken back")
            raise

    def close(self) -> None:
        """Take the buttons away and put a static form in the widget's place."""
        widget, self._widget = self._widget, None
        if widget is None:
            return
        widget.close_open()
        static = widget.static(with_diffs=self._transcript is None)
        self._front_end.publish(static.bundle(), display_id=self._display_id, update=True)
        self._front_end.disown_comm(widget.model_id)
        widget.close()

    def _live_widget(self) -> "DiffWidget":
        if self._widget is None:
            from oh_kernel.views.diff_widget import DiffWidget  # anywidget takes 0.2 s to import

            self._widget = DiffWidget(self._hand_over)
            self._front_end.own_comm(self._widget.model_id)
            self._display_id = f"decisions-{self._widget.model_id}"
            if self._transcript is not None:
                self._transcript.segment()
            self._front_end.publish(self._widget.live_bundle(), display_id=self._display_id)
        return self._widget

    def _ask_by_click(self, question: Question) -> "asyncio.Future[Decision]":
        call_id = question.call.tool_call_id
        self._shown_calls.add(call_id)
        answer = self._asked[call_id] = asyncio.get_running_loop().create_future()
        widget = self._live_widget()
        if diffs := approval.previews(question, self._conversation.workspace):
            widget.add_edit(call_id, diffs, "waiting")
        else:
            widget.add_question(
                call_id,
                approval.subject(question),
                lines=approval.reasons(question),
                code=approval.code(question),
            )
        return answer

    async def _typed(self, question: Question) -> Decision:
        prompt = f"{approval.question_text(question)}\n{approval.PROMPT}"
        while (decision := approval.read_answer(await self._front_end.ask(prompt))) is None:
            prompt = f"{approval.HOW_TO_ANSWER} "
        return decision

    def _hand_over(self, item_id: str, accepted: bool, reason: str) -> None:
        """A click, on the comm thread."""
        spawn(self._clicked(item_id, accepted, reason))

    async def _clicked(self, item_id: str, accepted: bool, reason: str) -> None:
        if answer := self._asked.pop(item_id, None):
            if not answer.done():
                answer.set_result(Decision(accepted, reason))
            self._set_state(item_id, "accepted" if accepted else "rejected")
        elif accepted:
            self._set_state(item_id, "accepted", "kept")
        else:
            trouble = await self._conversation.revert_edit(item_id, reason)
            words = f"not taken back: {trouble}" if trouble else "taken back"
            self._set_state(item_id, "failed" if trouble else "rejected", words)

    def _set_state(self, item_id: str, state: "State", words: str = "") -> None:
        if self._widget is not None:
            self._widget.set_state(item_id, state, words)


class Review:
    """The edits of a turn that has ended, opened again for decisions until `close`."""

    def __init__(
        self, front_end: FrontEnd, conversation: Conversation, edits: Sequence[ObservationEvent]
    ) -> None:
        self._decisions = Decisions(front_end, conversation)
        for edit in edits:
            self._decisions.show_applied(edit)

    def close(self) -> None:
        """Make it static."""
        self._decisions.close()


def changed_files(edits: Sequence[ObservationEvent], workspace: Path) -> tuple[str, ...]:
    """The files that `edits` changed, each once; those below `workspace` by their path in it."""
    changed = (diff_of(each, workspace) for edit in edits for each in edit.observation.edits())
    return tuple(dict.fromkeys(diff.path for diff in changed))
