"""How do a conversation's log and its model learn which secrets there are, by name?"""

from collections.abc import Mapping

from oh_kernel.conversation.log import ConversationLog
from oh_kernel.errors import ConversationError
from oh_kernel.events import (
    ConversationStateUpdateEvent,
    Event,
    Message,
    MessageEvent,
    SystemPromptEvent,
)
from oh_kernel.security.registry import STATE_KEY, SecretRegistry
from oh_kernel.security.secret_sources import SecretValue
from oh_kernel.security.secrets import SecretMask

_NOTE = (
    "Secrets, set in `terminal` as variables for each command that names them, and hidden in all "
    "output: {names}"
)
_NONE_LEFT = "There are no secrets any more."
_IN_THE_CLEAR = (
    "The value of a secret stands in {count} stored events of this conversation, from before it "
    "was a secret. The model is not sent it again; deleting the conversation removes it."
)


class KnownSecrets:
    """The secrets of one conversation. Used on the agent thread.

    Names, descriptions and origins go into the log; values never do.
    """

    def __init__(self, log: ConversationLog, mask: SecretMask) -> None:
        self.registry = SecretRegistry(mask)
        self._log = log
        self._clear_events = 0

    @property
    def remarks(self) -> tuple[str, ...]:
        """What a person should know of how well they are hidden."""
        count = self._clear_events
        clear = (_IN_THE_CLEAR.format(count=count),) if count else ()
        return self.registry.remarks + clear

    @property
    def note(self) -> str:
        """What the model is told of them."""
        names = [f"${n} ({t})" if t else f"${n}" for n, t in self.registry.described.items()]
        return _NOTE.format(names=", ".join(names)) if names else ""

    def restore(self) -> None:
        """Go on with what the log, just read, says of them; hide in it what is known by now."""
        records = [r for event in self._log.events if (r := _record(event)) is not None]
        if records:
            self.registry.restore(records[-1])
        self._hide_in_log()

    def update(self, secrets: Mapping[str, SecretValue | None]) -> None:
        """Add, replace or (by None) forget secrets."""
        self.registry.update(secrets)
        self._hide_in_log()

    def require_all(self) -> None:
        """Raise ConversationError while the value of one is missing: it could not be hidden."""
        if missing := ", ".join(self.registry.missing):
            raise ConversationError(
                f"The values of these secrets were not kept and could not be hidden: {missing}.",
                remedy="Give each again (`%openhands secret NAME`, update_secrets or --secret NAME "
                "with the variable set), or forget it: `%openhands secret NAME forget`.",
            )

    async def tell(self) -> None:
        """Record the names when they have changed, and tell the model unless its prompt does.

        A new prompt would be paid for in full; a message is added to what a provider has cached.
        """
        if self.registry.record == self._last_record():
            return
        record = self.registry.record
        await self._log.append(ConversationStateUpdateEvent(key=STATE_KEY, value=record))
        prompts = [event for event in self._log.events if isinstance(event, SystemPromptEvent)]
        told = prompts[-1].dynamic_context if prompts else None
        if told is None or not self.note or self.note not in told.text:
            message = Message.of("user", f"[{self.note or _NONE_LEFT}]")
            await self._log.append(MessageEvent(source="environment", llm_message=message))

    def _hide_in_log(self) -> None:
        self._log.hides_secrets |= bool(self.registry.described)
        if list(self.registry):
            self._clear_events += self._log.mask_again()

    def _last_record(self) -> object:
        records = (_record(event) for event in reversed(self._log.events))
        return next((r for r in records if r is not None), {"secret_sources": {}})


def _record(event: Event) -> object:
    """What `event` records of secrets; None when it is about something else."""
    if isinstance(event, ConversationStateUpdateEvent) and event.key == STATE_KEY:
        return event.value
    return None
