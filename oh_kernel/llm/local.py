"""How does a model answer that runs on this machine?

llama.cpp serves it in a process of its own, on loopback, behind a key made for that process: a
crash of the model is no crash of the kernel, and nobody else on the machine can ask it.
"""

import asyncio
import importlib.util
import json
import secrets
import subprocess
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, suppress
from dataclasses import replace
from pathlib import Path

from oh_kernel.errors import ModelNotConfigured, ModelUnavailable
from oh_kernel.events import Message
from oh_kernel.installing import ours, pip_install
from oh_kernel.llm.base import LLM, Completion, Delta, ToolSpec
from oh_kernel.llm.local_file import file_of
from oh_kernel.llm.provider import ProviderLLM

# A slow disk reads a gigabyte a minute; prompts are read at tens of tokens a second without a GPU.
LOAD_TIMEOUT_S = 300.0
SILENCE_TIMEOUT_S = 1800.0
STOP_S = 5.0


class LocalLLM:
    """The model in a GGUF file, `name` as `local_file` understands it. Used on the agent thread.

    Its process starts at `warm_up` or the first request and ends at `aclose`, or with us.
    """

    takes_images = False

    def __init__(self, name: str, *, streams: bool = True) -> None:
        self._name = name
        self._streams = streams
        self._process: asyncio.subprocess.Process | None = None
        self._inner: LLM | None = None
        self._starting = asyncio.Lock()

    @property
    def model(self) -> str:
        return f"local:{self._name}"

    async def warm_up(self) -> None:
        """Load the model, and import what asks it."""
        await (await self._running()).warm_up()

    async def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec]
    ) -> AsyncGenerator[Delta | Completion]:
        """Ask once. Raises ModelUnavailable when the process has died; it is started again."""
        inner = await self._running()
        try:
            async with aclosing(inner.stream(messages, tools)) as reply:
                async for part in reply:
                    if isinstance(part, Completion):
                        part = replace(part, cost_usd=0.0)  # electricity aside
                    yield part
        except ModelUnavailable as error:
            await self.aclose()
            raise ModelUnavailable(f"The process of {self.model} died or hung.") from error

    async def aclose(self) -> None:
        inner, self._inner = self._inner, None
        process, self._process = self._process, None
        if inner is not None:
            await inner.aclose()
        if process is not None:
            await _ended(process)

    async def _running(self) -> LLM:
        async with self._starting:
            if self._process is not None and self._process.returncode is not None:
                await self.aclose()  # it crashed
            if self._inner is None:
                self._inner = await self._started()
            return self._inner

    async def _started(self) -> LLM:
        _check_library()
        path = await asyncio.to_thread(file_of, self._name)
        key = secrets.token_hex(16)
        self._process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "oh_kernel.llm.local_server"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is for us
        )
        try:
            url = await asyncio.wait_for(_url_of(self._process, path, key), LOAD_TIMEOUT_S)
        except BaseException:
            process, self._process = self._process, None
            await _ended(process)
            raise
        return ProviderLLM(
            f"openai:{path.stem}",
            base_url=f"{url}/v1",
            api_key=key,
            timeout_s=SILENCE_TIMEOUT_S,
            takes_images=False,
            streams=self._streams,
        )


def _check_library() -> None:
    if importlib.util.find_spec("xllamacpp") is None:
        raise ModelNotConfigured(
            "What runs models on this machine is not installed.",
            remedy=f"Run: {pip_install(f'{ours()}[local]')}",
        )


async def _url_of(process: asyncio.subprocess.Process, path: Path, key: str) -> str:
    """Where the model is served, once it is loaded."""
    assert process.stdin is not None and process.stdout is not None
    with suppress(ConnectionError):  # it ended at once; the next line says so
        process.stdin.write(json.dumps({"path": str(path), "key": key}).encode() + b"\n")
        await process.stdin.drain()
    line = await process.stdout.readline()
    answer = json.loads(line) if line else {"error": "its process ended while it was loaded"}
    if "url" not in answer:
        raise ModelUnavailable(
            f"{path.name} could not be loaded: {answer['error']}",
            remedy="It needs its size in free memory; try a smaller one.",
        )
    return str(answer["url"])


async def _ended(process: asyncio.subprocess.Process) -> None:
    """Close its standard input, on which it ends; kill it if it does not."""
    if process.stdin is not None:
        process.stdin.close()
    try:
        await asyncio.wait_for(process.wait(), STOP_S)
    except TimeoutError:
        process.kill()
        await process.wait()
