"""Secrets of a notebook: typed where nobody sees, hidden in its outputs, there again when kept."""

from __future__ import annotations

import json
from pathlib import Path

from tests.live.agent_kernel import AgentKernel, agent_kernel, asks, python
from tests.live.kernel_client import DEADLINE_S, Result
from tests.live.model_server import ModelServer
from tests.outputs import final_text

TOKEN = "tok_5f3a9c77b1e2"
HIDDEN = "<secret-hidden>"
# A table, a text and an error with the value in them, as a library would show them.
SHOWS = """
from IPython.display import HTML, display
value = open("token.txt").read()
display(HTML(f"<b>{value}</b>"))
print(value[:6], end="", flush=True)
print(value[6:])
raise ValueError(value)
"""


def typed(kernel: AgentKernel, line: str, value: str) -> Result:
    cell = kernel.kernel.start(f"%openhands {line}", allow_stdin=True)
    question = kernel.kernel.client.get_stdin_msg(timeout=DEADLINE_S)
    assert question["content"]["password"] is True
    kernel.kernel.client.input(value)
    return kernel.kernel.finish(cell)


def shown(result: Result) -> str:
    return json.dumps([message["content"] for message in result.messages])


def test_secret_of_a_notebook_is_in_no_output_and_in_no_request(tmp_path: Path) -> None:
    length = asks(("terminal", {"command": "echo ${#DEPLOY_TOKEN}"}))
    cat = asks(("terminal", {"command": "cat token.txt"}))
    script = [python(SHOWS), length, {"content": "done"}, cat, length, {"content": "done"}]
    with ModelServer(script) as server:
        with agent_kernel(tmp_path, server) as kernel:
            (tmp_path / "work" / "token.txt").write_text(TOKEN)
            told = typed(kernel, "secret DEPLOY_TOKEN keep", TOKEN)
            assert "It is kept in" in told.text and TOKEN not in shown(told)
            kernel.kernel.run("seen = open('token.txt').read()\nseen")
            turn = kernel.ask()
            assert TOKEN not in shown(turn) and f"<b>{HIDDEN}</b>" in shown(turn)
            assert kernel.command("secrets").splitlines()[1].split("  ")[0] == "DEPLOY_TOKEN"
            kernel.kill()
        # Another kernel: the value was kept where login keeps keys.
        with agent_kernel(tmp_path, server) as kernel:
            assert "Going on with" in kernel.command("resume")
            again = kernel.ask("and again")
            assert TOKEN not in shown(again) and HIDDEN in shown(again)
            results = [event.to_json() for event in kernel.results().values()]
            assert sum('"text":"16' in result for result in results) == 2
            assert "no secret any more" in kernel.command("secret DEPLOY_TOKEN forget")
            assert "DEPLOY_TOKEN" not in kernel.command("secrets")
        requests = json.dumps([request.json for request in server.requests])
    assert TOKEN not in requests and "$DEPLOY_TOKEN" in requests
    kept = [path for path in tmp_path.rglob("*") if path.is_file() and path.name != "token.txt"]
    assert not [path for path in kept if TOKEN.encode() in path.read_bytes()]


def test_value_that_was_not_kept_is_asked_for_before_the_agent_goes_on(tmp_path: Path) -> None:
    with ModelServer([{"content": "one"}, {"content": "two"}]) as server:
        with agent_kernel(tmp_path, server) as kernel:
            assert "until this kernel ends" in typed(kernel, "secret DEPLOY_TOKEN", TOKEN).text
            kernel.ask()
        with agent_kernel(tmp_path, server) as kernel:
            kernel.command("resume")
            refused = final_text(kernel.ask().messages)
            assert "DEPLOY_TOKEN" in refused and "%openhands secret" in refused
            typed(kernel, "secret DEPLOY_TOKEN", TOKEN)
            assert "two" in final_text(kernel.ask().messages)
