"""What a front end shows of the kernel's state while a turn runs."""

from pathlib import Path

from tests.live.kernel_client import Message, running_kernel
from tests.live.model_server import ModelServer


def test_kernel_stays_busy_while_a_turn_runs(tmp_path: Path) -> None:
    """Other requests, such as the debugger's, end with "idle"; the cell still runs."""
    states: list[tuple[str, str]] = []
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
                state = message["content"]["execution_state"]
                states.append((message["parent_header"]["msg_type"], state))
            elif server.requests and not asked:
                asked.append("requests")
                kernel.request({"command": "status"})
                kernel.request({"command": "status"})
            answered = states.count(("openhands_request", "idle")) == 2
            if answered and asked == ["requests"] and states[-1] == ("execute_request", "busy"):
                asked.append("stop")
                kernel.interrupt()

        kernel.finish(kernel.start("%%openhands\ngo"), on_any=look)
        assert asked[-1] == "stop", states
        assert states[-1] == ("execute_request", "idle")
