"""What is the agent's side of one notebook: its conversation, its views, its settings?"""

import asyncio
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from oh_kernel.conversation.confirmation import Unattended
from oh_kernel.conversation.conversation import Conversation
from oh_kernel.conversation.lookup import stored_conversation
from oh_kernel.conversation.metrics import Metrics, metrics_of
from oh_kernel.conversation.state import Status
from oh_kernel.conversation.stats import ConversationStats
from oh_kernel.conversation.toolbox import edits_of
from oh_kernel.conversation.turns import answer_of, turns_of
from oh_kernel.errors import OpenHandsError, SettingsError
from oh_kernel.events import (
    ConversationErrorEvent,
    Event,
    MessageEvent,
    ObservationEvent,
)
from oh_kernel.events.untrusted import untrusted
from oh_kernel.kernel.history import found, listed
from oh_kernel.kernel.notebook_secrets import NotebookSecrets
from oh_kernel.kernel.notes import Table
from oh_kernel.kernel.recent_cells import last_count, recent_cells
from oh_kernel.kernel.requests import answered
from oh_kernel.kernel.turn_view import FrontEnd, Review, TurnView, changed_files
from oh_kernel.kernel.variables import summary
from oh_kernel.kernel.whole import carry_out
from oh_kernel.loop import run_on_main
from oh_kernel.security.hooks.trust import trust_hooks
from oh_kernel.sessions.namespace import Namespace
from oh_kernel.settings import Settings, load_settings
from oh_kernel.store import EventStore
from oh_kernel.tools.presets import Resources, tools_of
from oh_kernel.views.result import TurnResult

WHAT_LEAVES = (
    "To {model} go: your request, the names, types and shapes of your variables, the cells you ran "
    "since the last turn with a little of their output, and what the agent reads or prints. "
    "context=none keeps variables and cells here."
)
NOTHING_LEAVES = "{model} answers from a file: nothing leaves this machine."

_sessions: "weakref.WeakKeyDictionary[Any, NotebookSession]" = weakref.WeakKeyDictionary()


def session_for(shell: Any) -> "NotebookSession":
    """The session of the notebook that `shell` runs; made at first use."""
    if shell not in _sessions:
        bridge = shell.openhands.bridge
        session = _sessions[shell] = NotebookSession(shell, bridge, load_settings())
        bridge.on_request(lambda content: answered(session.conversation, content))
    return _sessions[shell]


class NotebookSession:
    """One notebook's conversation and its views. Used on the agent thread."""

    def __init__(self, shell: Any, front_end: FrontEnd, settings: Settings) -> None:
        self.settings = settings
        self._shell = shell
        self._front_end = front_end
        self._store: EventStore | None = None
        self._conversation: Conversation | None = None
        self._namespace = Namespace(shell)
        self._review: Review | None = None
        self._known_cells = 0  # the execution count up to which the model knows the user's cells
        self._said_what_leaves = False
        self._told: set[str] = set()  # remarks on logs
        self._secrets = NotebookSecrets()

    async def turn(
        self, prompt: str, *, new: bool = False, overrides: dict[str, object] | None = None
    ) -> TurnResult:
        """Give the agent `prompt` and show what it does, to the end of its turn."""
        settings = self.settings.with_("a flag", **(overrides or {}))
        conversation = await self._ready(settings, new=new)
        view = TurnView(self._front_end, conversation)
        view.transcript.begin("starting")
        warming = asyncio.ensure_future(conversation.warm_up())
        start = len(conversation.events)
        unsubscribe = conversation.subscribe(view)
        conversation.approver = view.approver
        try:
            await conversation.asend_message(prompt, context=await self._context(settings))
            self._say_what_was_found(view, conversation)
            self._say_what_leaves(view, settings, conversation)
            await conversation.arun()
        except OpenHandsError:
            if not _ended_by_error(conversation.events[start:]):
                raise  # what is in the log is in the view, too
        finally:
            warming.cancel()
            unsubscribe()
            view.close()
            conversation.approver = None
        return turn_result(conversation, conversation.events[start:])

    async def _ready(self, settings: Settings, *, new: bool) -> Conversation:
        """The conversation, set to take a turn; raises for what a turn could not begin with."""
        if self._conversation is not None:
            self._conversation.check_at_rest()  # the agent's own code may ask for a turn
        if new:
            await self.new()
        self._close_review()
        conversation = self._open_conversation(settings)
        _check_workspace(settings, conversation)
        await self._secrets.give_to(conversation)
        await conversation.use(settings)
        conversation.open_model()
        return conversation

    def _say_what_was_found(self, view: TurnView, conversation: Conversation) -> None:
        """Once for each log: what of it is lost or not understood."""
        new = [remark for remark in conversation.remarks if remark not in self._told]
        self._told.update(new)
        for remark in new:
            view.transcript.notice(remark)

    def _say_what_leaves(
        self, view: TurnView, settings: Settings, conversation: Conversation
    ) -> None:
        """Once a session, in its first turn."""
        if not self._said_what_leaves:
            self._said_what_leaves = True
            is_file = str(settings.model).startswith(("scripted:", "replay:"))
            text = NOTHING_LEAVES if is_file else WHAT_LEAVES
            model = conversation.model_name
            view.transcript.notice(text.format(model=model))

    async def _context(self, settings: Settings) -> list[str]:
        """What the model is told of the notebook. Looked up on main, where the namespace lives."""
        if settings.context == "none":
            return []
        return await run_on_main(lambda: self._look(settings))

    def _look(self, settings: Settings) -> list[str]:
        shell = self._shell
        cells = recent_cells(shell, self._known_cells)
        self._known_cells = last_count(shell)
        hidden = {*shell.user_ns_hidden, "skills"}
        told = (summary(shell.user_ns, hidden, settings.context), cells)
        return [untrusted(text) for text in told if text]

    async def new(self) -> str:
        """Begin a new conversation with the next turn."""
        if self._conversation is not None:
            self._conversation.check_at_rest()
            await self._conversation.aclose()
            self._conversation = None
        self._known_cells = 0
        return "The next %%openhands cell begins a new conversation."

    async def resume(self, conversation_id: str | None) -> str:
        """Go on with a stored conversation, named by its id or how that begins; else the last."""
        store = self._open_store(self.settings)
        conversation_id = stored_conversation(store, conversation_id).id
        await self.new()
        conversation = self._open_conversation(self.settings, conversation_id)
        await self._secrets.give_to(conversation)
        return f"Going on with {conversation_id}: {_in_words(conversation)}"

    async def take_secret(self, name: str, value: str, *, keep: bool) -> str:
        """Have commands know a secret; with `keep`, conversations after a restart too."""
        return await self._secrets.take(name, value, self._conversation, keep=keep)

    async def forget_secret(self, name: str) -> str:
        """Take a secret away again."""
        return await self._secrets.forget(name, self._conversation)

    def secrets(self) -> Table | str:
        """The names of the secrets, and where the values come from."""
        return self._secrets.table(self._conversation)

    def status(self) -> str:
        """What the agent is doing."""
        if self._conversation is None:
            return "No conversation yet in this notebook."
        model = self.settings.model or "none"
        return f"{self._conversation.id}: {_in_words(self._conversation)}\nModel: {model}"

    @property
    def conversation(self) -> Conversation | None:
        """The notebook's conversation, once there is one."""
        return self._conversation

    @property
    def store(self) -> EventStore:
        """Where conversations are stored."""
        return self._open_store(self.settings)

    async def manage(self, command: str, argument: str) -> object:
        """Do what `command` says with a conversation as a whole."""
        return await carry_out(command, argument, self)

    async def go_on_with(self, conversation: Conversation) -> None:
        """Take this conversation in place of the one so far, which is closed."""
        self._close_review()
        if self._conversation is not None:
            await self._conversation.aclose()
        self._conversation = conversation

    def pause(self) -> str:
        """Stop before the next step."""
        if self._conversation is not None:
            self._conversation.pause()
        return "The agent stops before its next step."

    async def stop(self) -> str:
        """Stop now."""
        if self._conversation is not None:
            self._conversation.interrupt()
        return "The agent is told to stop."

    async def history(self, limit: int, text: str = "") -> object:
        """The stored conversations used last; with a text, where in all of them it stands."""
        store = self._open_store(self.settings)
        if text:
            return await asyncio.to_thread(found, store, text)
        return listed(store, limit)

    def cost(self) -> Table:
        """Tokens and cost of this conversation, a row for each use of a model."""
        stats = self._conversation.stats if self._conversation else ConversationStats()
        whole = self._conversation.metrics if self._conversation else Metrics()
        used = stats.usage_to_metrics.items()
        rows = [_cost_row(use, one.model_name, one.sums) for use, one in used]
        if len(rows) != 1:
            rows.append(_cost_row("all", "", whole))
        headings = ("use", "model", "calls", "tokens in", "from a cache", "tokens out", "price")
        return Table(headings, rows)

    def tools(self) -> list[dict[str, object]]:
        """The tools that the agent has, and what their descriptions say first."""
        return [
            {"tool": tool.name, "what it does": tool.prose.partition("\n")[0]}
            for tool in tools_of(self.settings)
        ]

    def trust(self) -> str:
        """Trust the hooks of the folder. Not while the agent runs: its code could ask for it."""
        if self._conversation is not None:
            self._conversation.check_at_rest()
        workspace = Path(self.settings.workspace or Path.cwd()).resolve()
        return trust_hooks(workspace, self.settings.config_folder)

    async def review(self, n: int | None) -> str | None:
        """Open the edits of turn `n` (by default of the last that has any) for decisions again."""
        edits = self._edits_of_turn(n)
        if not edits:
            return "There are no edits to review" + (f" in turn {n}." if n else ".")
        self._close_review()
        assert self._conversation is not None
        if not self._front_end.can_click:
            return "Reviewing needs a front end with widgets; the diffs stand in the transcript."
        self._review = Review(self._front_end, self._conversation, edits)
        return None

    async def aclose(self) -> None:
        """Close the conversation and the store."""
        self._close_review()
        if self._conversation is not None:
            await self._conversation.aclose()
        if self._store is not None:
            self._store.close()

    def _open_store(self, settings: Settings) -> EventStore:
        if self._store is None:
            self._store = EventStore.open(settings.store_file)
        return self._store

    def _open_conversation(
        self, settings: Settings, conversation_id: str | None = None
    ) -> Conversation:
        if self._conversation is None:
            unattended: Unattended = settings.unattended
            self._conversation = Conversation(
                settings=settings,
                conversation_id=conversation_id,
                store=self._open_store(settings),
                resources=Resources(namespace=self._namespace),
                unattended=unattended,
            )
        return self._conversation

    def _edits_of_turn(self, n: int | None) -> Sequence[ObservationEvent]:
        if self._conversation is None:
            return ()
        turns = [edits_of(turn) for turn in turns_of(self._conversation.events)]
        if n is not None:
            return turns[n - 1] if 0 < n <= len(turns) else ()
        return next((edits for edits in reversed(turns) if edits), ())

    def _close_review(self) -> None:
        if self._review is not None:
            self._review.close()
            self._review = None


def _check_workspace(settings: Settings, conversation: Conversation) -> None:
    wanted = Path(settings.workspace or Path.cwd()).resolve()
    if settings.workspace is not None and wanted != conversation.workspace:
        raise SettingsError(
            f"This conversation works in {conversation.workspace}, not in {wanted}.",
            remedy="Begin another one there with --new, or set the workspace back.",
        )


def _ended_by_error(events: Sequence[Event]) -> bool:
    return any(isinstance(event, ConversationErrorEvent) for event in events)


def turn_result(conversation: Conversation, events: Sequence[Event]) -> TurnResult:
    """How the turn ended whose events are given."""
    metrics = metrics_of(events)
    priced = metrics.calls and not metrics.unpriced_calls
    return TurnResult(
        status=str(conversation.status),
        answer=answer_of(events),
        conversation_id=conversation.id,
        steps=metrics.steps,
        tokens=metrics.tokens,
        cost_usd=metrics.cost_usd if priced else None,
        files_changed=changed_files(edits_of(events), conversation.workspace),
    )


def _cost_row(use: str, model: str, of: Metrics) -> tuple[object, ...]:
    tokens = (of.prompt_tokens, of.cache_read_tokens, of.completion_tokens)
    return (use, model, of.calls, *tokens, of.cost_in_words)


def _in_words(conversation: Conversation) -> str:
    count = sum(isinstance(e, MessageEvent) and e.source == "user" for e in conversation.events)
    waiting = len(conversation.waiting_calls)
    asked = f", waiting for a decision: {waiting}" if waiting else ""
    state = "cut off" if conversation.status is Status.RUNNING else conversation.status
    messages = "1 message" if count == 1 else f"{count} messages"
    line = f"{messages}, {len(conversation.events)} events, {state}{asked}."
    return "\n".join([line, *conversation.remarks])
