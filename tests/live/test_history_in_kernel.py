"""`%openhands history WORD` in a real kernel, while a conversation goes on."""

from __future__ import annotations

from pathlib import Path

from oh_kernel.events import Message, MessageEvent
from oh_kernel.store import EventStore
from tests.live.agent_kernel import agent_kernel


def test_words_of_all_conversations_are_found(tmp_path: Path) -> None:
    file = tmp_path / "events.sqlite"
    with EventStore.open(file) as store:
        store.set_meta("1111aaaa", title="An older one")
        text = Message.of("user", "plot the Sunspots per year")
        store.append("1111aaaa", MessageEvent(source="user", llm_message=text))
    script = [{"content": "Sunspots are dark."}, {"content": "fine"}]
    with agent_kernel(tmp_path, script, store=file) as kernel:
        kernel.ask("what are sunspots?")
        found = kernel.command("history sunspots")
        assert "An older one" in found and ">>Sunspots<< per year" in found
        assert "what are >>sunspots<<?" in found and ">>Sunspots<< are dark." in found
        phrase = kernel.command('history "sunspots per" plot')
        assert "1111aaaa" in phrase and "dark" not in phrase
        assert "No stored conversation says moons." in kernel.command("history moons")
        assert "An older one" in kernel.command("history 5")
        kernel.ask("history of sunspots, please")  # a sentence is a prompt
        assert "please" in kernel.command("history please")
