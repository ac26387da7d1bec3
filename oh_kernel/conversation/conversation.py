"""What can be done with one conversation, from any thread and from Python as from a notebook?"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from pydantic import BaseModel

from oh_kernel.conversation.branching import LentLLM
from oh_kernel.conversation.confirmation import Approver, Decision, Unattended
from oh_kernel.conversation.core import Core
from oh_kernel.conversation.log import Listener
from oh_kernel.conversation.metrics import Metrics
from oh_kernel.conversation.remarks import remarks
from oh_kernel.conversation.state import Status, Trigger
from oh_kernel.conversation.stats import ConversationStats
from oh_kernel.conversation.stored import StoredConversation
from oh_kernel.conversation.tool_choice import tool_choice
from oh_kernel.conversation.turns import answer_of, structured_output_of, turns_of
from oh_kernel.events import ActionEvent, Event, new_id
from oh_kernel.llm.base import LLM
from oh_kernel.loop import on_agent_loop, on_agent_thread, run_blocking, spawn
from oh_kernel.security.policies import ConfirmationPolicy
from oh_kernel.security.registry import SecretWarning
from oh_kernel.security.secret_sources import SecretValue
from oh_kernel.settings import Settings, load_settings
from oh_kernel.store import EventStore
from oh_kernel.tools.base import Tool
from oh_kernel.tools.presets import Resources
from oh_kernel.tools.response_schema import ResponseSchema


class Conversation(StoredConversation):
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
        tools: str | Sequence[type[Tool] | str] | None = None,
        response_schema: type[BaseModel] | Mapping[str, Any] | None = None,
        policy: str | ConfirmationPolicy | None = None,
        secrets: Mapping[str, SecretValue] | None = None,
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
            "tools": tools if isinstance(tools, str) else None,
            "policy": policy if isinstance(policy, str) else None,
            "max_steps": max_steps,
        }
        flags = {name: value for name, value in given.items() if value is not None}
        settings = (settings or load_settings()).with_("Conversation(...)", **flags)
        self._made_alike = partial(
            Conversation,
            tools=None if isinstance(tools, str) else tools,
            response_schema=response_schema,
            policy=None if isinstance(policy, str) else policy,
            llm=LentLLM(llm) if llm else None,
            store=store,
            resources=resources,
            unattended=unattended,
            label=label,
        )
        self._form = ResponseSchema(response_schema) if response_schema is not None else None
        self.id = conversation_id or new_id()
        self._own_store = None if store else EventStore.open(settings.store_file)
        store = store or self._own_store
        assert store is not None
        self._core = Core(
            self.id,
            settings,
            store,
            choose_tools=tool_choice(tools, self._form, llm),
            resources=replace(resources or Resources(), output_folder=store.outputs_of(self.id)),
            policy=policy if policy and not isinstance(policy, str) else None,
            unattended=unattended,
            llm=llm,
            label=label,
        )
        self.approver = approver
        self._core.secrets.update(secrets or {})
        self._warn_of_secrets()

    @property
    def settings(self) -> Settings:
        """What it goes by."""
        return self._core.settings

    @property
    def workspace(self) -> Path:
        """The folder that the agent works in."""
        return self._core.workspace

    @property
    def approver(self) -> Approver | None:
        """Who is asked about calls that wait; None: nobody is there."""
        return self._core.approver

    @approver.setter
    def approver(self, approver: Approver | None) -> None:
        self._core.approver = approver

    @property
    def events(self) -> tuple[Event, ...]:
        """The log so far, oldest first."""
        return tuple(self._core.log.events)

    @property
    def status(self) -> Status:
        """What the conversation is doing."""
        return self._core.log.status

    @property
    def metrics(self) -> Metrics:
        """Tokens and cost of all model calls so far."""
        return self._core.log.metrics

    @property
    def stats(self) -> ConversationStats:
        """The same for each use of a model, in the shape of the agent-server API."""
        return self._core.log.accounts.stats(self.settings.budget)

    @property
    def unknown_events(self) -> int:
        """How many events are of a kind that this version does not know."""
        return self._core.log.unknown_events

    @property
    def remarks(self) -> tuple[str, ...]:
        """What a person should know of it: events lost or not understood, a turn that was cut,
        hooks that do not run, secrets that cannot be hidden.
        """
        events = self._core.log.events
        found = remarks(self._core.store, self.id, events, unknown_events=self.unknown_events)
        return (*found, *self._core.hooks.remarks, *self._core.secrets.remarks)

    @property
    def waiting_calls(self) -> tuple[ActionEvent, ...]:
        """The calls that wait for `approve` or `reject`."""
        return self._core.waiting_calls

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Have `listener` told of events and deltas on the agent thread; the result ends that."""
        return self._core.log.subscribe(listener)

    @property
    def secrets(self) -> dict[str, str]:
        """Where the value of each secret comes from, by name; never the value."""
        return self._core.secrets.registry.origins

    @property
    def missing_secrets(self) -> tuple[str, ...]:
        """The secrets whose values are not here any more; to be given again, or forgotten."""
        return tuple(self._core.secrets.registry.missing)

    def update_secrets(self, secrets: Mapping[str, SecretValue | None]) -> None:
        """Add or replace secrets, by name; None forgets one. Warns of values that hide badly.

        A value is text, a source such as `LookupSecret`, or a function that returns text. Commands
        that name one get it as a variable; it is masked in all that is stored, shown and sent.
        """
        run_blocking(self._core.update_secrets(secrets))
        self._warn_of_secrets()

    async def aupdate_secrets(self, secrets: Mapping[str, SecretValue | None]) -> None:
        """`update_secrets` for callers on an event loop; `remarks` holds what it would warn of."""
        await on_agent_loop(self._core.update_secrets(secrets))

    def send_message(self, text: str, *, context: Sequence[str] = ()) -> None:
        """Store a message of the user. `context` is for the model only: what holds right now.

        While the agent runs, the message is seen at its next step.
        """
        run_blocking(self._core.send(text, context))

    async def asend_message(self, text: str, *, context: Sequence[str] = ()) -> None:
        """`send_message` for callers on an event loop."""
        await on_agent_loop(self._core.send(text, context))

    def run(self) -> Status:
        """Run the agent to the end of its turn and return how that ended.

        Errors are stored in the log and then raised. KeyboardInterrupt stops the agent first.
        """
        return run_blocking(self._core.run())

    async def arun(self) -> Status:
        """`run` for callers on an event loop. Cancelling it stops the agent, in good order."""
        return await on_agent_loop(self._core.run())

    @property
    def answer(self) -> str:
        """The agent's last word of the last turn; "" while there is none."""
        turns = turns_of(self.events)
        return answer_of(turns[-1]) if turns else ""

    @property
    def structured_output(self) -> BaseModel | dict[str, Any] | None:
        """The last turn's answer as `response_schema` has it: an object of the class that was
        given, else data. None where the agent did not finish with one.
        """
        turns = turns_of(self.events)
        data = structured_output_of(turns[-1]) if turns else None
        return self._form.read(data) if self._form and data is not None else data

    @property
    def model_name(self) -> str:
        """The model as it calls itself; raises ModelNotConfigured for a name that means none."""
        return self._core.models.for_use().model

    def check_at_rest(self) -> None:
        """Raise ConversationError while the agent runs: no other turn can begin."""
        self._core.check_at_rest()

    def open_model(self) -> None:
        """Have the model there; raises ModelNotConfigured for a name that means none."""
        self._core.models.for_use()

    async def warm_up(self) -> None:
        """Do what the first request would have to wait for; best beside `asend_message`."""
        await on_agent_loop(self._core.warm_up())

    def pause(self) -> None:
        """Stop before the next step; a call of the model and what it asks for are ended first."""
        self._stop(Trigger.PAUSE)

    def interrupt(self) -> None:
        """Stop now: the model's stream is closed, the running tool is stopped, a question that
        waits is taken back. Does not wait until that is done.
        """
        self._stop(Trigger.INTERRUPT)

    def approve(self, call_ids: Sequence[str] | None = None) -> None:
        """Allow waiting calls, all unless named; `run` carries them out."""
        run_blocking(self.aapprove(call_ids))

    async def aapprove(self, call_ids: Sequence[str] | None = None) -> None:
        """`approve` for callers on an event loop."""
        await on_agent_loop(self._core.decide(Decision(approved=True), call_ids))

    def reject(
        self, reason: str = "User rejected the action", call_ids: Sequence[str] | None = None
    ) -> None:
        """Refuse waiting calls, all unless named; the model is told `reason`."""
        run_blocking(self.areject(reason, call_ids))

    async def areject(
        self, reason: str = "User rejected the action", call_ids: Sequence[str] | None = None
    ) -> None:
        """`reject` for callers on an event loop."""
        await on_agent_loop(self._core.decide(Decision(approved=False, reason=reason), call_ids))

    async def use(self, settings: Settings) -> None:
        """Go on with other settings: model, tools, policy, limits. Not while the agent runs."""
        if settings != self.settings:
            await on_agent_loop(self._core.use(settings))

    async def revert_edit(self, event_id: str, reason: str = "") -> str | None:
        """Take an edit back and tell the model; the reason why not, if it cannot be done."""
        return await on_agent_loop(self._core.revert(event_id, reason))

    def close(self) -> None:
        """Stop what was started: tools, the model's connections, the store."""
        run_blocking(self._close())

    async def aclose(self) -> None:
        """`close` for callers on an event loop."""
        await on_agent_loop(self._close())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _alike(self) -> "Conversation":
        secrets = self._core.secrets.registry.sources
        return self._made_alike(self.workspace, settings=self.settings, secrets=secrets)

    def _warn_of_secrets(self) -> None:
        for remark in self._core.secrets.remarks:
            warnings.warn(remark, SecretWarning, stacklevel=3)

    async def _close(self) -> None:
        await self._core.close()
        if self._own_store is not None:
            self._own_store.close()

    def _stop(self, trigger: Trigger) -> None:
        """From a listener at once, so that no step begins in between."""
        if not on_agent_thread():
            run_blocking(self._core.stop(trigger))
        elif not self._core.stop_run(trigger):
            spawn(self._core.stop(trigger))
