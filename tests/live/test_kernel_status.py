"""What a front end shows of the kernel's state while a turn runs."""

from pathlib import Path

from tests.live.kernel_client import Message, running_kernel
from tests.live.model_server import ModelServer


def test_kernel_stays_busy_while_a_turn_runs(tmp_path: Path) -> None:
    """Other requests, such as the debugger's, end with "idle"; the cell still runs."""
    states: list[str] = []
    asked: list[str] = []
    with (
        ModelServer([{"content": "one two", "hang_after": 2}]) as server,
        running_kernel(
            tmp_path,
            OPENHANDS_MODEL="openai:scripted",
            OPENHANDS_BASE_URL=f"{server.url}/v1",
            OPENHANDS_API_KEY="sk-test-1234567890",
            OPENHANDS_STORE_PATH=str(tmp_path / "events.sqlite"),
        ) as kernel,
    ):

        def look(message: Message) -> None:
            if message["msg_type"] == "status":
                states.append(message["content"]["execution_state"])
            elif server.requests and not asked:
                asked.append("requests")
                kernel.request({"command": "status"})
                kernel.request({"command": "status"})
            elif states.count("idle") >= 2 and len(asked) == 1:
                asked.append("stop")
                assert states[-1] == "busy"
                kernel.interrupt()

        kernel.finish(kernel.start("%%openhands\ngo"), on_any=look)
        assert asked[-1] == "stop"
        assert states[-1] == "idle"
