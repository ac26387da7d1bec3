"""Which secrets did a person give this notebook, and which conversations are they given to?"""

from collections.abc import Mapping

from oh_kernel.conversation.conversation import Conversation
from oh_kernel.credentials import forget_key, store_key, stored_key
from oh_kernel.errors import SettingsError
from oh_kernel.kernel.notes import Table
from oh_kernel.security.registry import remark_on
from oh_kernel.security.secret_sources import require_name
from oh_kernel.settings import config_folder


class NotebookSecrets:
    """The secrets of one notebook, until its kernel ends; on request they are kept for longer.

    Used on the agent thread.
    """

    def __init__(self) -> None:
        self._given: dict[str, str] = {}

    async def take(
        self, name: str, value: str, conversation: Conversation | None, *, keep: bool
    ) -> str:
        """Have commands know `value` as `name`; what a person should know of it."""
        require_name(name)
        if not value:
            raise SettingsError(
                "No value was given.", remedy=f"Run %openhands secret {name} again."
            )
        place = store_key(_stored_as(name), value, config_folder()) if keep else ""
        self._given[name] = value
        if conversation is not None:
            await conversation.aupdate_secrets({name: value})
        until = f"It is kept in {place}." if keep else "It is known until this kernel ends."
        said = f"Commands that name ${name} get its value, and no output shows it. {until}"
        return "\n".join(filter(None, [said, remark_on(name, value)]))

    async def forget(self, name: str, conversation: Conversation | None) -> str:
        """Take `name` away again, from where it is kept too."""
        self._given.pop(name, None)
        forget_key(_stored_as(name), config_folder())
        if conversation is not None and name in conversation.secrets:
            await conversation.aupdate_secrets({name: None})
        return f"${name} is no secret any more."

    async def give_to(self, conversation: Conversation) -> None:
        """Have `conversation` know what it does not know yet, and what it lost at a restart."""
        missing = conversation.missing_secrets
        given = {
            name: value
            for name, value in self._given.items()
            if name in missing or name not in conversation.secrets
        }
        for name in missing:
            if name not in given and (kept := stored_key(_stored_as(name), config_folder())):
                given[name] = kept
        if given:
            await conversation.aupdate_secrets(given)

    def table(self, conversation: Conversation | None) -> Table | str:
        """The names, and where the values come from; a sentence when there are none."""
        known: Mapping[str, str] = conversation.secrets if conversation else {}
        here = dict.fromkeys(self._given, "given in this notebook")
        rows = list({**known, **here}.items())
        how = "Add one with %openhands secret NAME."
        return Table(("secret", "from"), rows, how) if rows else f"There are no secrets. {how}"


def _stored_as(name: str) -> str:
    """Beside the keys of providers, none of which has such a name."""
    return f"secret:{name}"
