"""What is done to one conversation, on the agent thread?

Everything here is awaited or called on the agent loop; `conversation.py` is the way in from other
threads. The store, the model and the tools belong to the conversation and are closed with it.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

from oh_kernel.agents.codeact import CodeActAgent
from oh_kernel.agents.prompt import system_prompt_event
from oh_kernel.conversation.approvals import Approvals
from oh_kernel.conversation.aside import Aside
from oh_kernel.conversation.attendants import Attendant
from oh_kernel.conversation.condensing import Condensing
from oh_kernel.conversation.confirmation import Approver, Decision, Gate, Unattended
from oh_kernel.conversation.cuts import cut_short
from oh_kernel.conversation.guards import guards_of_steps, judges_of_ends
from oh_kernel.conversation.hooks import Hooks, HooksInRun
from oh_kernel.conversation.known_secrets import KnownSecrets
from oh_kernel.conversation.limits import Limits
from oh_kernel.conversation.log import ConversationLog
from oh_kernel.conversation.models import Models, model_event, settings_of_models
from oh_kernel.conversation.recovery import answer_open_calls
from oh_kernel.conversation.run import Run
from oh_kernel.conversation.state import Status, Trigger, next_status
from oh_kernel.conversation.stopping import STOP_GRACE_S, Stop
from oh_kernel.conversation.toolbox import Toolbox
from oh_kernel.conversation.writing import Writing
from oh_kernel.errors import ConversationError
from oh_kernel.events import (
    ActionEvent,
    Message,
    MessageEvent,
    ObservationEvent,
    PauseEvent,
    SystemPromptEvent,
    TextContent,
    new_id,
)
from oh_kernel.llm.base import LLM
from oh_kernel.logs import hide_in_logs
from oh_kernel.security.policies import ConfirmationPolicy, policy_named
from oh_kernel.security.secret_sources import SecretValue
from oh_kernel.security.secrets import SecretMask
from oh_kernel.settings import Settings
from oh_kernel.store import EventStore
from oh_kernel.tools.base import Tool, ToolExecutor
from oh_kernel.tools.files import Files
from oh_kernel.tools.presets import Resources, make_executor

logger = logging.getLogger(__name__)

TITLE_CHARS = 60
RESTARTED = (
    "[The kernel was restarted since your last step: the variables, imports and the shell session "
    "from before are gone. Files are as they were left. Check before you rely on anything.]"
)


class Core:
    """One conversation: its log, its tools, its model, and the run that goes on."""

    def __init__(
        self,
        conversation_id: str,
        settings: Settings,
        store: EventStore,
        *,
        choose_tools: Callable[[Settings], Sequence[type[Tool]]],
        resources: Resources,
        policy: ConfirmationPolicy | None,
        unattended: Unattended,
        llm: LLM | None,
        label: str,
    ) -> None:
        self.id = conversation_id
        self.settings = settings
        self.workspace = Path(settings.workspace or Path.cwd()).resolve()
        self.approver: Approver | None = None
        self.mask = SecretMask()
        hide_in_logs(self.mask)
        self.store = store
        self.log = ConversationLog(store, conversation_id, self.mask)
        self.log.load()
        self.approvals = Approvals(self.log)
        self._was_stored = bool(self.log.events)
        self.secrets = KnownSecrets(self.log, self.mask)
        self.secrets.restore()
        self._resources = replace(
            resources,
            events=lambda: self.log.events,
            secrets=self.secrets.registry,
            mask=self.mask,
        )
        self._choose_tools = choose_tools
        tools = choose_tools(settings)
        self._toolbox = Toolbox(tools, self.workspace, self._executor, self.mask)
        self._policy = policy
        self._unattended = unattended
        self.models = Models(settings, self.workspace, llm)
        self._limits = Limits(self.log, self.models.for_use, lambda: self.settings)
        self.aside = Aside(self.log, self.models.for_use, self._limits)
        self.hooks = Hooks(self.log, self.aside, self.workspace)
        self.condensing = Condensing(
            self.log,
            self.aside,
            self.models,
            lambda: self.settings,
            lambda: self._toolbox.tools,
        )
        self._writing = Writing(store, conversation_id, label)
        self._becoming_writer = asyncio.Lock()
        self._changing = asyncio.Lock()  # held while a state of rest is left, from whatever side
        self._stop: Stop | None = None  # of the run that goes on
        self._running: asyncio.Task[Status] | None = None
        self._hide_key()

    @property
    def waiting_calls(self) -> tuple[ActionEvent, ...]:
        """The calls that wait for a decision."""
        return tuple(self.approvals.undecided)

    @property
    def tools(self) -> tuple[type[Tool], ...]:
        """The tools that the model is given."""
        return self._toolbox.tools

    @cached_property
    def files(self) -> Files:
        """What its file tools share: where they may write, what the agent saw, what it edited."""
        return Files(
            self.workspace,
            allowed_folders=self.settings.allowed_folders,
            history=self.store.edits_of(self.id),
        )

    @property
    def is_running(self) -> bool:
        """Whether a run goes on, also while it asks a person."""
        return self._stop is not None

    def check_at_rest(self) -> None:
        """Raise ConversationError while the agent runs."""
        if self.is_running:
            raise ConversationError(
                "The agent is already running in this conversation.",
                remedy="Wait for it, or stop it with %openhands stop or the stop button.",
            )

    async def warm_up(self) -> None:
        """Do what the first request would have to wait for.

        Whatever goes wrong here goes wrong again, and is told, when the model is asked.
        """
        try:
            await self.models.for_use().warm_up()
        except Exception:
            logger.debug("the model could not be made ready", exc_info=True)

    async def send(self, text: str, context: Sequence[str]) -> None:
        """Store a message of the user; `context` is for the model alone."""
        await self._begin_session()
        message_id = new_id()
        heard = await self.hooks.prompt(text, message_id)
        extended = [TextContent(text=part) for part in (*context, *heard.context) if part]
        if self._was_stored and not heard.blocked:
            extended.insert(0, TextContent(text=RESTARTED))
            self._was_stored = False
        message = Message.of("user", text)
        first = not any(isinstance(event, MessageEvent) for event in self.log.events)
        async with self._changing:  # a run ends before it or after it
            await self.log.happen(Trigger.SEND)
            await self.log.append(
                MessageEvent(
                    id=message_id, source="user", llm_message=message, extended_content=extended
                )
            )
        if first:
            info = self.store.conversation(self.id)
            title = None if info and info.title else _title(self.mask(text))  # a person's stays
            self.store.set_meta(self.id, title=title, workspace=str(self.workspace))

    async def run(self) -> Status:
        """One run in a task of its own, which the cancellation of its caller only interrupts."""
        self.check_at_rest()
        stop = self._stop = Stop()
        try:
            await self._begin_session()
            self._check_can_run()
            await self._tell_of_model()
            self._running = asyncio.ensure_future(self._carried_out(self._new_run(stop)))
            return await asyncio.shield(self._running)
        except asyncio.CancelledError:
            stop.interrupt()
            if self._running is not None:
                await asyncio.wait({self._running})
            raise
        finally:
            self._stop = self._running = None

    async def _carried_out(self, run: Run) -> Status:
        try:
            async with self._changing:
                await run.begin()
            return await run.to_its_end()
        finally:
            self.store.set_meta(self.id, status=str(self.log.status), model=self.models.name)

    def _check_can_run(self) -> None:
        next_status(self.log.status, Trigger.RUN)
        if not any(isinstance(event, MessageEvent) for event in self.log.events):
            raise ConversationError(
                "There is nothing to answer yet.", remedy="Call send_message first."
            )

    def _new_run(self, stop: Stop) -> Run:
        gate = Gate(
            self._policy or policy_named(self.settings.policy),
            unattended=self._unattended,
            allow=self.settings.allow,
            workspace=self.workspace,
        )
        return Run(
            self.log,
            CodeActAgent(self.models.for_use(), self._toolbox.tools),
            self._toolbox,
            gate,
            self.files,
            self.approvals,
            stop,
            self._changing,
            approver=self.approver,
            attendants=self._attendants(),
            max_steps=self.settings.max_steps,
        )

    def _attendants(self) -> list[Attendant]:
        """Who is heard in a run, in this order."""
        tools = self._toolbox.tools
        return [
            *guards_of_steps(self.log, self.settings, self._limits, tools),
            HooksInRun(self.hooks),
            self.condensing,
            *judges_of_ends(self.log, self.settings, self.aside, self.workspace),
        ]

    async def condense(self) -> None:
        """Condense the history now; while the agent runs, before its next step."""
        await self.begin_writing()
        if not self.is_running:
            await self.condensing.condense_now()
        else:
            await self.condensing.request()

    async def stop(self, trigger: Trigger) -> None:
        """Pause or interrupt: the run that goes on, else the conversation at rest."""
        if self.stop_run(trigger) or not self._leads_on(trigger):
            return
        await self.begin_writing()
        async with self._changing:
            if self.stop_run(trigger) or not self._leads_on(trigger):
                return
            if trigger is Trigger.PAUSE:
                await self.log.append(PauseEvent())
            else:
                await cut_short(self.log)
            await self.log.happen(trigger)
        self.store.set_meta(self.id, status=str(self.log.status))

    def stop_run(self, trigger: Trigger) -> bool:
        """Pause or interrupt the run that goes on, at once; whether one does."""
        if self._stop is None:
            return False
        if trigger is Trigger.PAUSE:
            self._stop.pause()
        else:
            self._stop.interrupt()
        return True

    def _leads_on(self, trigger: Trigger) -> bool:
        return next_status(self.log.status, trigger) is not self.log.status

    async def decide(self, decision: Decision, call_ids: Sequence[str] | None) -> None:
        """Take a person's decision about waiting calls, all unless named."""
        await self.begin_writing()
        async with self._changing:
            await self.approvals.take(decision, call_ids)

    async def revert(self, event_id: str, reason: str) -> str | None:
        """Take an edit back and tell the model; the reason why not, if it cannot be done."""
        event = next((e for e in self.log.events if e.id == event_id), None)
        if not isinstance(event, ObservationEvent):
            return f"there is no edit {event_id}"
        if trouble := self._toolbox.revert(event):
            return trouble
        await self.begin_writing()
        names = ", ".join(edit.name for edit in event.observation.edits())
        why = f" Reason: {reason}" if reason else ""
        note = f"[The user rejected your edit of {names}: all is as it was before it.{why}]"
        message = Message.of("user", note)
        await self.log.append(MessageEvent(source="environment", llm_message=message))
        return None

    async def use(self, settings: Settings) -> None:
        """Go on with other settings. Not while the agent runs."""
        self.settings = settings
        self._hide_key()
        self.files.allow(settings.allowed_folders)
        self._toolbox.tools = tuple(self._choose_tools(settings))
        if self._writing.has_begun:
            await self._tell_of_tools()
        await self.models.use(settings)

    async def close(self) -> None:
        """Stop the run, then what it used: tools, the model's connections, the lease."""
        if self._stop is not None and self._running is not None:
            self._stop.interrupt()
            await asyncio.wait({self._running}, timeout=STOP_GRACE_S)
        await self.hooks.close()
        self._toolbox.close()
        await self.models.aclose()
        self._writing.end()

    async def _begin_session(self) -> None:
        """Become the writer, and hear the hooks as they are now; SettingsError for bad ones."""
        self.hooks.look(self.settings)
        await self.begin_writing()
        await self.hooks.session_begins()

    async def begin_writing(self) -> None:
        """Become the writer of this conversation, and put right what a dead one left open."""
        async with self._becoming_writer:
            self.secrets.require_all()
            if self._writing.has_begun:
                return
            await self._writing.begin()
            try:
                await self._put_right()
            except BaseException:
                self._writing.end()  # so that it is all done when it is tried again
                raise

    async def _put_right(self) -> None:
        self.log.load()  # another process may have written since
        self.secrets.restore()
        self.secrets.require_all()
        await answer_open_calls(self.log)
        await self._tell_of_tools()

    async def update_secrets(self, secrets: Mapping[str, SecretValue | None]) -> None:
        """Add, replace or (by None) forget secrets; the model is told at the next message."""
        self.secrets.update(secrets)
        if self._writing.has_begun:
            await self.secrets.tell()

    async def _tell_of_tools(self) -> None:
        """The system prompt, at the start and when the set of tools has changed."""
        tools = [tool.__name__ for tool in self._toolbox.tools]
        prompts = [event for event in self.log.events if isinstance(event, SystemPromptEvent)]
        if not prompts or [tool.kind for tool in prompts[-1].tools] != tools:
            notes = self.secrets.note
            await self.log.append(
                system_prompt_event(self._toolbox.tools, self.workspace, notes=notes)
            )
        await self.secrets.tell()

    async def _tell_of_model(self) -> None:
        """Record that another model than before is asked from here on."""
        info, name = self.store.conversation(self.id), self.models.for_use().model
        if info and info.model and info.model != name:
            await self.log.append(model_event(name))

    def _executor(self, tool: type[Tool]) -> ToolExecutor[Any, Any]:
        resources = replace(self._resources, files=self.files)
        return make_executor(tool, self.workspace, self.settings, resources)

    def _hide_key(self) -> None:
        for settings in settings_of_models(self.settings):
            for value in settings.secret_values:
                self.mask.add(value)


def _title(text: str) -> str:
    """What a list of conversations says this one is about."""
    line = " ".join(text.split())
    return line if len(line) <= TITLE_CHARS else line[: TITLE_CHARS - 1] + "…"
