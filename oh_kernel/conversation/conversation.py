"""What can be done with one conversation, from any thread and from Python as from a notebook?"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from oh_kernel.agents.codeact import CodeActAgent
from oh_kernel.agents.prompt import system_prompt_event
from oh_kernel.conversation.confirmation import Approver, Decision, Gate, Unattended
from oh_kernel.conversation.log import ConversationLog, Listener
from oh_kernel.conversation.metrics import Metrics
from oh_kernel.conversation.recovery import answer_open_calls
from oh_kernel.conversation.remarks import remarks
from oh_kernel.conversation.run import Run, rejection
from oh_kernel.conversation.state import Status
from oh_kernel.conversation.toolbox import Toolbox
from oh_kernel.errors import ConversationError, ModelNotConfigured
from oh_kernel.events import (
    ActionEvent,
    Event,
    Message,
    MessageEvent,
    ObservationEvent,
    SystemPromptEvent,
    TextContent,
    new_id,
)
from oh_kernel.llm import RetryPolicy, open_llm
from oh_kernel.llm.base import LLM
from oh_kernel.loop import on_agent_thread, run_blocking, spawn
from oh_kernel.security.policies import ConfirmationPolicy, policy_named
from oh_kernel.security.secrets import SecretMask
from oh_kernel.settings import Settings, load_settings
from oh_kernel.store import HEARTBEAT_S, EventStore, Lease
from oh_kernel.tools.base import Tool, ToolExecutor
from oh_kernel.tools.presets import Resources, make_executor, tools_of_preset

T = TypeVar("T")

logger = logging.getLogger(__name__)

TITLE_CHARS = 60

RESTARTED = (
    "[The kernel was restarted since your last step: the variables, imports and the shell session "
    "from before are gone. Files are as they were left. Check before you rely on anything.]"
)


class Conversation:
    """One conversation of a person with the agent, stored as it happens.

        conversation = Conversation(workspace=".", model="openai:gpt-6-luna")
        conversation.send_message("What is in this folder?")
        conversation.run()

    A call that waits for a person is run only after `approve`; `run` alone never approves. May be
    used from any thread, and from an event loop with `arun`. What it opens, `close` closes.
    """

    def __init__(
        self,
        workspace: str | Path | None = None,
        *,
        model: str | None = None,
        base_url: str | None = None,
        api_key: str | None = None,
        store_path: str | Path | None = None,
        conversation_id: str | None = None,
        tools: str | Sequence[type[Tool]] | None = None,
        policy: str | ConfirmationPolicy | None = None,
        max_steps: int | None = None,
        settings: Settings | None = None,
        llm: LLM | None = None,
        store: EventStore | None = None,
        resources: Resources | None = None,
        approver: Approver | None = None,
        unattended: Unattended = "wait",
        label: str = "",
    ) -> None:
        given = {
            "workspace": workspace,
            "model": model,
            "base_url": base_url,
            "api_key": api_key,
            "store_path": store_path,
            "policy": policy if isinstance(policy, str) else None,
            "max_steps": max_steps,
        }
        flags = {name: value for name, value in given.items() if value is not None}
        self.settings = settings.with_(**flags) if settings else load_settings(flags)
        self.workspace = Path(self.settings.workspace or Path.cwd()).resolve()
        self.id = conversation_id or new_id()
        self.approver = approver
        key = self.settings.api_key
        self.mask = SecretMask([key.get_secret_value()] if key else ())
        self._owns_store = store is None
        self._store = store or EventStore.open(self.settings.store_file)
        self._log = ConversationLog(self._store, self.id, self.mask)
        self._log.load()
        self._was_stored = bool(self._log.events)
        self._label = label
        self._lease: Lease | None = None
        self._heartbeat: asyncio.Task[None] | None = None
        self._llm = llm
        self._owns_llm = llm is None
        self._resources = replace(
            resources or Resources(), output_folder=self._store.outputs_of(self.id)
        )
        self._toolbox = Toolbox(_chosen_tools(tools, self.settings), self.workspace, self._executor)
        self._policy = policy if policy and not isinstance(policy, str) else None
        self._unattended = unattended
        self._decisions: dict[str, Decision] = {}
        self._run: Run | None = None

    # -- looking ---------------------------------------------------------------------------------

    @property
    def events(self) -> tuple[Event, ...]:
        """The log so far, oldest first."""
        return tuple(self._log.events)

    @property
    def status(self) -> Status:
        """What the conversation is doing."""
        return self._log.status

    @property
    def metrics(self) -> Metrics:
        """Tokens and cost of all model calls so far."""
        return self._log.metrics

    @property
    def unknown_events(self) -> int:
        """How many events are of a kind that this version does not know."""
        return self._log.unknown_events

    @property
    def remarks(self) -> tuple[str, ...]:
        """What a person should know of it as it was loaded: events lost, events not understood."""
        return remarks(self._store, self.id, self.unknown_events)

    @property
    def waiting_calls(self) -> tuple[ActionEvent, ...]:
        """The calls that wait for `approve` or `reject`."""
        if self.status is not Status.WAITING_FOR_CONFIRMATION:
            return ()
        return tuple(c for c in self._log.open_calls if c.tool_call_id not in self._decisions)

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Have `listener` told of events and deltas on the agent thread; the result ends that."""
        return self._log.subscribe(listener)

    # -- talking ---------------------------------------------------------------------------------

    def send_message(self, text: str, *, context: Sequence[str] = ()) -> None:
        """Store a message of the user. `context` is for the model only: what holds right now.

        While the agent runs, the message is seen at its next step.
        """
        run_blocking(self._send(text, context))

    async def asend_message(self, text: str, *, context: Sequence[str] = ()) -> None:
        """`send_message` for callers on an event loop."""
        await _on_agent_loop(self._send(text, context))

    def run(self) -> Status:
        """Run the agent to the end of its turn and return how that ended.

        Errors are stored in the log and then raised. KeyboardInterrupt stops the agent first.
        """
        return run_blocking(self._run_guarded())

    async def arun(self) -> Status:
        """`run` for callers on an event loop. Cancelling it stops the agent, in good order."""
        return await _on_agent_loop(self._run_guarded())

    def open_model(self) -> None:
        """Have the model there; raises ModelNotConfigured for a name that means none."""
        self._model()

    async def warm_up(self) -> None:
        """Do what the first request would have to wait for; best beside `asend_message`.

        Whatever goes wrong here goes wrong again, and is told, when the model is asked.
        """
        try:
            await _on_agent_loop(self._model().warm_up())
        except Exception:
            logger.debug("the model could not be made ready", exc_info=True)

    def pause(self) -> None:
        """Stop before the next step. Returns at once."""
        self._tell_run(Run.pause)

    def interrupt(self) -> None:
        """Stop now: the model's stream is closed, the running tool is stopped. Returns at once."""
        self._tell_run(Run.interrupt)

    # -- deciding --------------------------------------------------------------------------------

    def approve(self, call_ids: Sequence[str] | None = None) -> None:
        """Allow waiting calls, all unless named; `run` carries them out."""
        run_blocking(self._decide(Decision(approved=True), call_ids))

    def reject(
        self, reason: str = "User rejected the action", call_ids: Sequence[str] | None = None
    ) -> None:
        """Refuse waiting calls, all unless named; the model is told `reason`."""
        run_blocking(self._decide(Decision(approved=False, reason=reason), call_ids))

    async def use(self, settings: Settings) -> None:
        """Go on with other settings: model, tools, policy, limits. Not while the agent runs."""
        if settings != self.settings:
            await _on_agent_loop(self._use(settings))

    async def revert_edit(self, event_id: str, reason: str = "") -> str | None:
        """Take an edit back and tell the model; the reason why not, if it cannot be done."""
        return await _on_agent_loop(self._revert(event_id, reason))

    def close(self) -> None:
        """Stop what was started: tools, the model's connections, the store."""
        run_blocking(self._close())

    async def aclose(self) -> None:
        """`close` for callers on an event loop."""
        await _on_agent_loop(self._close())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # -- on the agent thread ---------------------------------------------------------------------

    async def _send(self, text: str, context: Sequence[str]) -> None:
        await self._begin_writing()
        if self.status in (Status.FINISHED, Status.STUCK):
            await self._log.set_status(Status.IDLE)
        extended = [TextContent(text=part) for part in context if part]
        if self._was_stored:
            extended.insert(0, TextContent(text=RESTARTED))
            self._was_stored = False
        message = Message.of("user", text)
        first = not any(isinstance(event, MessageEvent) for event in self._log.events)
        await self._log.append(
            MessageEvent(source="user", llm_message=message, extended_content=extended)
        )
        if first:
            self._store.set_meta(
                self.id, title=_title(self.mask(text)), workspace=str(self.workspace)
            )

    async def _begin_writing(self) -> None:
        """Become the writer of this conversation, and put right what a dead one left open."""
        if self._lease is not None:
            return
        # On a thread of its own: another process may hold the lock's file for a moment.
        self._lease = await asyncio.to_thread(self._store.lease, self.id, label=self._label or None)
        self._heartbeat = asyncio.ensure_future(self._beat(self._lease))
        self._log.load()  # another process may have written since
        await answer_open_calls(self._log)
        await self._tell_of_tools()

    async def _beat(self, lease: Lease) -> None:
        while True:
            await asyncio.sleep(HEARTBEAT_S)
            await lease.beat_async()

    async def _tell_of_tools(self) -> None:
        """The system prompt, at the start and when the set of tools has changed."""
        tools = [tool.__name__ for tool in self._toolbox.tools]
        prompts = [event for event in self._log.events if isinstance(event, SystemPromptEvent)]
        if not prompts or [tool.kind for tool in prompts[-1].tools] != tools:
            await self._log.append(system_prompt_event(self._toolbox.tools, self.workspace))

    async def _run_guarded(self) -> Status:
        """One run in a task of its own, which the cancellation of its caller only interrupts."""
        if self._run is not None:
            raise ConversationError(
                "The agent is already running in this conversation.",
                remedy="Wait for it, stop it, or start another conversation with --new.",
            )
        await self._begin_writing()
        if not any(isinstance(event, MessageEvent) for event in self._log.events):
            raise ConversationError(
                "There is nothing to answer yet.", remedy="Call send_message first."
            )
        self._run = self._new_run()
        task = asyncio.ensure_future(self._run())
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            self._run.interrupt()
            await asyncio.wait({task})
            raise
        finally:
            self._run = None
            self._decisions.clear()
            model = self._llm.model if self._llm else ""
            self._store.set_meta(self.id, status=str(self.status), model=model)

    def _new_run(self) -> Run:
        gate = Gate(
            self._policy or policy_named(self.settings.policy),
            unattended=self._unattended,
            allow=self.settings.allow,
        )
        return Run(
            self._log,
            CodeActAgent(self._model(), self._toolbox.tools),
            self._toolbox,
            gate,
            approver=self.approver,
            decisions=self._decisions,
            max_steps=self.settings.max_steps,
        )

    async def _use(self, settings: Settings) -> None:
        old, self.settings = self.settings, settings
        if key := settings.api_key:
            self.mask.add(key.get_secret_value())
        if settings.tools != old.tools:
            self._toolbox.tools = tools_of_preset(settings.tools)
            if self._lease is not None:
                await self._tell_of_tools()
        if self._owns_llm and self._llm is not None:
            await self._llm.aclose()
            self._llm = None

    def _tell_run(self, tell: Callable[[Run], None]) -> None:
        """From a listener at once, so that no step begins in between; from elsewhere soon."""
        if not on_agent_thread():
            spawn(self._told_run(tell))
        elif self._run is not None:
            tell(self._run)

    async def _told_run(self, tell: Callable[[Run], None]) -> None:
        self._tell_run(tell)

    async def _decide(self, decision: Decision, call_ids: Sequence[str] | None) -> None:
        await self._begin_writing()
        waiting = {call.tool_call_id: call for call in self.waiting_calls}
        chosen = list(waiting) if call_ids is None else list(call_ids)
        for call_id in chosen:
            if call_id not in waiting:
                raise ConversationError(
                    f"No call {call_id!r} is waiting.",
                    remedy=f"Waiting: {', '.join(waiting) or 'none'}.",
                )
        for call_id in chosen:
            if decision.approved:
                self._decisions[call_id] = decision
            else:
                await self._log.append(rejection(waiting[call_id], decision.reason))
        if not self._log.open_calls and self.status is Status.WAITING_FOR_CONFIRMATION:
            await self._log.set_status(Status.IDLE)

    async def _revert(self, event_id: str, reason: str) -> str | None:
        event = next((e for e in self._log.events if e.id == event_id), None)
        if not isinstance(event, ObservationEvent):
            return f"there is no edit {event_id}"
        if trouble := self._toolbox.revert(event):
            return trouble
        await self._begin_writing()
        path = getattr(event.observation, "path", "")
        why = f" Reason: {reason}" if reason else ""
        note = f"[The user rejected your edit of {path}: the file is as it was before it.{why}]"
        message = Message.of("user", note)
        await self._log.append(MessageEvent(source="environment", llm_message=message))
        return None

    async def _close(self) -> None:
        if self._run is not None:
            self._run.interrupt()
        if self._heartbeat is not None:
            self._heartbeat.cancel()
        self._toolbox.close()
        if self._llm is not None:
            await self._llm.aclose()
        if self._owns_store:
            self._store.close()
        elif self._lease is not None:
            self._lease.release()
        self._lease = self._heartbeat = None

    def _model(self) -> LLM:
        if self._llm is None:
            self._llm = model_of(self.settings, self.workspace)
        return self._llm

    def _executor(self, tool: type[Tool]) -> ToolExecutor[Any, Any]:
        return make_executor(tool, self.workspace, self.settings, self._resources)


def model_of(settings: Settings, workspace: Path) -> LLM:
    """The model that the settings name; raises ModelNotConfigured when they name none."""
    if settings.model is None:
        raise ModelNotConfigured(
            "No model is chosen.",
            remedy="Set one: OPENHANDS_MODEL=openai:NAME, or ollama:NAME for a local one.",
        )
    key = settings.api_key
    return open_llm(
        settings.model,
        base_url=settings.base_url,
        api_key=key.get_secret_value() if key else None,
        timeout_s=settings.timeout_s,
        retry=RetryPolicy(attempts=settings.max_retries),
        workspace=workspace,
        stream=settings.stream,
    )


def _chosen_tools(
    tools: str | Sequence[type[Tool]] | None, settings: Settings
) -> tuple[type[Tool], ...]:
    if tools is None or isinstance(tools, str):
        return tools_of_preset(tools or settings.tools)
    return tuple(tools)


def _title(text: str) -> str:
    """What a list of conversations says this one is about."""
    line = " ".join(text.split())
    return line if len(line) <= TITLE_CHARS else line[: TITLE_CHARS - 1] + "…"


async def _on_agent_loop(coro: Coroutine[Any, Any, T]) -> T:
    if on_agent_thread():
        return await coro
    return await asyncio.wrap_future(spawn(coro))
