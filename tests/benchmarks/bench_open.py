"""How long until a stored conversation is open and its messages for the model are made?

Measured with nothing condensed, so that the model is shown all, and as it is by default, condensed
after every 80 events. usage: python tests/benchmarks/bench_open.py [--events N]; a line of JSON.
"""

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from oh_kernel.agents.condenser import PRESET, Trigger, forgetting
from oh_kernel.conversation.log import ConversationLog
from oh_kernel.events import (
    ActionEvent,
    Condensation,
    Event,
    Message,
    MessageEvent,
    MessageToolCall,
    ObservationEvent,
    TextContent,
)
from oh_kernel.events.messages import Projection
from oh_kernel.security.secrets import SecretMask
from oh_kernel.store import EventStore
from oh_kernel.tools.terminal import TerminalAction, TerminalObservation

BODY = "output line with some ordinary text 0123456789\n" * 20  # about 1 KB


def step(number: int) -> list[Event]:
    """A call with its result, as in the reference's benchmark."""
    command = f"echo step {number}"
    call = ActionEvent(
        thought=[TextContent(text=f"Run step {number}")],
        action=TerminalAction(command=command),
        tool_name="terminal",
        tool_call_id=f"c{number}",
        llm_response_id=f"r{number}",
        tool_call=MessageToolCall(
            id=f"c{number}",
            name="terminal",
            arguments=json.dumps({"command": command}),
            origin="completion",
        ),
    )
    observation = TerminalObservation.from_text(BODY, command=command, exit_code=0)
    result = ObservationEvent(
        tool_name="terminal", tool_call_id=f"c{number}", action_id=call.id, observation=observation
    )
    return [call, result]


def condensed(events: list[Event]) -> list[Event]:
    """The same with the condensations that come of it by default."""
    projection, whole = Projection(), list[Event]()
    for number in range(0, len(events), 2):
        found = None
        if len(projection.view) > PRESET.max_size:
            found = forgetting(projection.view, Trigger.EVENTS, PRESET)
        new = events[number : number + 2]
        if found:
            ids = [event.id for event in found.events]
            new.insert(
                0,
                Condensation(
                    forgotten_event_ids=ids,
                    summary=BODY,
                    summary_offset=found.offset,
                    llm_response_id="s",
                ),
            )
        for event in new:
            projection.add(event)
        whole += new
    return whole


def median_ms(run: Callable[[], object], times: int = 7) -> float:
    taken = []
    for _ in range(times):
        started = time.perf_counter()
        run()
        taken.append((time.perf_counter() - started) * 1e3)
    return round(statistics.median(taken), 3)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=10_000)
    count = parser.parse_args().events
    said = MessageEvent(source="user", llm_message=Message.of("user", "go"))
    events = [said, *(event for number in range(count // 2) for event in step(number))]
    figures: dict[str, object] = {"bench": "open", "events": count}
    with tempfile.TemporaryDirectory() as folder:
        for name, log_events in (("whole", events), ("condensed", condensed(events))):
            with EventStore.open(Path(folder) / f"{name}.db") as store:
                for event in log_events:
                    store.append(name, event)

                def opened(store: EventStore = store, name: str = name) -> ConversationLog:
                    log = ConversationLog(store, name, SecretMask())
                    log.load()
                    log.messages()
                    return log

                figures[f"{name}_open_to_messages_ms"] = median_ms(opened)
                log = opened()
                figures[f"{name}_messages"] = len(log.messages())
                figures[f"{name}_messages_again_ms"] = median_ms(log.messages)
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
