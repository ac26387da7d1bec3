"""A model on this machine, asked for real. Marked `model`: it takes 1.2 GB and minutes."""

import os
from pathlib import Path

import psutil
import pytest

from oh_kernel import Conversation
from oh_kernel.errors import ModelUnavailable
from oh_kernel.events import Message
from oh_kernel.llm.base import LLM, Completion
from oh_kernel.llm.local import LocalLLM
from oh_kernel.llm.local_file import models_folder
from oh_kernel.llm.retry import RetryingLLM
from oh_kernel.loop import run_blocking
from tests.conversations import NO_WAITING
from tests.local_model import NAME, local_model

pytestmark = [pytest.mark.model, pytest.mark.timeout(1500)]
BUILD = Path(__file__).parents[2] / "build" / "models"


@pytest.fixture(scope="module")
def model(private_home: Path) -> str:
    """The name of the model, its file in the cache of this run's user."""
    file = local_model(BUILD)
    cached = models_folder() / file.name
    cached.parent.mkdir(parents=True, exist_ok=True)
    if not cached.exists():
        os.link(file, cached)
    return f"local:{NAME}"


def servers() -> list[psutil.Process]:
    found = psutil.Process().children(recursive=True)
    return [one for one in found if "oh_kernel.llm.local_server" in " ".join(one.cmdline())]


async def answer_of(llm: LLM, question: str) -> Completion:
    parts = [part async for part in llm.stream([Message.of("user", question)], [])]
    assert isinstance(parts[-1], Completion)
    return parts[-1]


def test_it_answers_and_its_process_ends_with_it(model: str) -> None:
    llm = LocalLLM(NAME)
    reply = run_blocking(answer_of(llm, "Say the word yes and nothing else."))
    assert "yes" in reply.message.text.lower()
    assert reply.cost_usd == 0 and reply.usage.prompt_tokens > 0
    (server,) = servers()
    run_blocking(llm.aclose())
    assert not server.is_running()


def test_after_a_crash_it_is_started_again(model: str) -> None:
    async def story() -> str:
        llm = LocalLLM(NAME)
        try:
            await answer_of(llm, "Say hello.")
            (server,) = servers()
            server.kill()
            return (
                await answer_of(RetryingLLM(llm, NO_WAITING), "Say the word yes and nothing else.")
            ).message.text
        finally:
            await llm.aclose()

    assert "yes" in run_blocking(story()).lower()


def test_a_broken_file_is_told(tmp_path: Path) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF" + bytes(100))
    llm = LocalLLM(str(broken))
    with pytest.raises(ModelUnavailable, match=r"broken\.gguf could not be loaded"):
        run_blocking(answer_of(llm, "Hello?"))
    assert not servers()


def test_it_works_in_a_conversation(model: str, tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text("apple\nbanana\ncherry\n")
    with Conversation(
        workspace=tmp_path, model=model, store_path=tmp_path / "log.sqlite", policy="never"
    ) as conversation:
        conversation.send_message("Run: wc -l words.txt  Then tell me how many lines it has.")
        conversation.run()
        ran = [event for event in conversation.events if event.kind == "ObservationEvent"]
        assert ran and "3" in ran[0].to_json()
        assert conversation.metrics.cost_usd == 0
