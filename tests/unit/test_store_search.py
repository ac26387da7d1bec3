"""Events and conversations are found by what they are, in both orders, page by page."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from oh_kernel.errors import InvalidQuery
from oh_kernel.events import (
    AgentErrorEvent,
    Event,
    Message,
    MessageEvent,
    PauseEvent,
    event_from_json,
)
from oh_kernel.store import EventStore
from oh_kernel.store.spoken import spoken_text


def said(text: str, at: str = "", source: Any = "user") -> MessageEvent:
    time = {"timestamp": at} if at else {}
    return MessageEvent(source=source, llm_message=Message.of("user", text), **time)


def at_second(number: int) -> str:
    return f"2026-01-01T00:{number // 60:02d}:{number % 60:02d}.000000"


@pytest.fixture
def store(tmp_path: Path) -> Any:
    with EventStore.open(tmp_path / "events.sqlite") as opened:
        yield opened


@pytest.fixture
def events(store: EventStore) -> list[Event]:
    """Sixty events of a minute: every third a pause, every fifth of the agent."""
    made: list[Event] = []
    for number in range(60):
        if number % 3 == 0:
            made.append(PauseEvent(timestamp=at_second(number)))
        else:
            source = "agent" if number % 5 == 0 else "user"
            made.append(said(f"Nummer {number} über Straßen", at_second(number), source))
    store.append_all("c", made)
    return made


def all_pages(ask: Callable[[str | None], Any]) -> list[Any]:
    """The items of every page, by following `next_page`."""
    items: list[Any] = []
    page = None
    while True:
        got = ask(page)
        items += got.items
        if (page := got.next_page) is None:
            return items


def ids(texts: list[str]) -> list[str]:
    return [json.loads(text)["id"] for text in texts]


@pytest.mark.parametrize("order", ["TIMESTAMP", "TIMESTAMP_DESC"])
@pytest.mark.parametrize("limit", [1, 7, 59, 60, 100])
def test_pages_give_each_event_once(
    store: EventStore, events: list[Event], order: Any, limit: int
) -> None:
    found = all_pages(lambda page: store.search("c", order=order, page=page, limit=limit))
    wanted = [event.id for event in events]
    assert ids(found) == (wanted if order == "TIMESTAMP" else wanted[::-1])


@pytest.mark.parametrize(
    ("filters", "fits"),
    [
        ({"kind": "PauseEvent"}, lambda e, n: n % 3 == 0),
        ({"kind": "openhands.sdk.event.user_action.PauseEvent"}, lambda e, n: n % 3 == 0),
        ({"kind": "NoSuchEvent"}, lambda e, n: False),
        ({"source": "agent"}, lambda e, n: n % 3 and n % 5 == 0),
        ({"body": "NUMMER 4"}, lambda e, n: n % 3 and str(n).startswith("4")),
        ({"body": "ÜBER STRASSEN"}, lambda e, n: n % 3),
        ({"body": "user"}, lambda e, n: False),  # of what is said, not of names around it
        ({"since": at_second(30)}, lambda e, n: n >= 30),
        ({"until": at_second(30)}, lambda e, n: n < 30),
        ({"since": "2026-01-01 01:00:30+01:00"}, lambda e, n: n >= 30),
        ({"since": "2026-01-01T00:00:30"}, lambda e, n: n >= 30),
        (
            {"since": datetime(2025, 12, 31, 19, 0, 30, tzinfo=timezone(-timedelta(hours=5)))},
            lambda e, n: n >= 30,
        ),
        (
            {"kind": "MessageEvent", "source": "agent", "body": "5", "until": at_second(50)},
            lambda e, n: n in (5, 25, 35),
        ),
    ],
)
def test_filters_hold_for_search_and_count(
    store: EventStore, events: list[Event], filters: dict[str, Any], fits: Any
) -> None:
    wanted = [event.id for number, event in enumerate(events) if fits(event, number)]
    for order in ("TIMESTAMP", "TIMESTAMP_DESC"):
        found = all_pages(lambda p, o=order: store.search("c", order=o, page=p, limit=4, **filters))
        assert ids(found) == (wanted if order == "TIMESTAMP" else wanted[::-1])
    assert store.count("c", **filters) == len(wanted)


def test_count_of_everything_and_of_nothing(store: EventStore, events: list[Event]) -> None:
    assert store.count("c") == 60
    assert store.count("other") == 0
    assert store.search("other").items == ()


@pytest.mark.parametrize("order", ["TIMESTAMP", "TIMESTAMP_DESC"])
def test_page_stays_the_same_while_events_are_appended(
    store: EventStore, events: list[Event], order: Any
) -> None:
    first = store.search("c", order=order, limit=20)
    second = store.search("c", order=order, page=first.next_page, limit=20)
    store.append_all("c", [said(f"later {n}") for n in range(30)])
    assert store.search("c", order=order, page=first.next_page, limit=20) == second
    assert [event.to_json() for event in second.events] == list(second.items)


def test_filters_work_over_many_stretches(store: EventStore) -> None:
    rare = [said("needle")]
    store.append_all("c", [*(said("hay") for _ in range(4500)), *rare])
    for found in (store.search("c", body="needle"), store.search("c", body="NEEDLE", limit=1)):
        assert ids(list(found.items)) == [rare[0].id] and found.next_page is None
    assert store.count("c", body="hay") == 4500


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ({"limit": 0}, "1 to 100 items, not 0"),
        ({"limit": 101}, "1 to 100 items, not 101"),
        ({"order": "timestamp"}, "no order 'timestamp'. Use TIMESTAMP, TIMESTAMP_DESC"),
        ({"page": "00000000-0000-0000-0000-000000000000"}, "No page of conversation c begins"),
        ({"since": "yesterday"}, "'yesterday' is no time"),
        ({"until": "0001-01-01T00:00:00+14:00"}, "is no time"),
    ],
)
def test_what_cannot_be_asked_is_told(
    store: EventStore, events: list[Event], question: dict[str, Any], words: str
) -> None:
    with pytest.raises(InvalidQuery) as refusal:
        store.search("c", **question)
    assert words in str(refusal.value)


def test_times_of_other_programs_are_compared_as_moments(store: EventStore) -> None:
    texts = [
        '{"id":"a","timestamp":"2026-01-01T01:00:00+01:00","source":"user","kind":"PauseEvent"}',
        '{"id":"b","timestamp":"2026-01-01T00:30:00","source":"user","kind":"PauseEvent"}',
        '{"id":"c","timestamp":"some day","source":"user","kind":"PauseEvent"}',
    ]
    store.append_all("c", [event_from_json(text) for text in texts])
    found = store.search("c", since="2026-01-01T00:00:00", until="2026-01-01T00:30:00")
    # The event itself says what it said before.
    assert [json.loads(text) for text in found.items] == [json.loads(texts[0])]


def test_get_keeps_the_order_of_what_was_asked_for(store: EventStore, events: list[Event]) -> None:
    asked = [events[9].id, "unknown", events[2].id, events[9].id]
    got = store.get_json("c", asked)
    assert [json.loads(text)["id"] if text else None for text in got] == [
        asked[0],
        None,
        asked[2],
        asked[3],
    ]
    assert store.get("c", []) == []


def test_conversations_are_listed_in_every_order(store: EventStore) -> None:
    for number in range(25):
        status = "finished" if number % 2 else "idle"
        store.set_meta(f"c{number}", title=f"Ärger mit {number}", status=status)
    for number in (7, 3):
        store.append(f"c{number}", said("used again"))
    made = [f"c{number}" for number in range(25)]
    used = [name for name in made if name not in ("c7", "c3")] + ["c7", "c3"]
    orders = {
        "CREATED_AT": made,
        "CREATED_AT_DESC": made[::-1],
        "UPDATED_AT": used,
        "UPDATED_AT_DESC": used[::-1],
    }
    for order, names in orders.items():
        found = all_pages(
            lambda p, o=order: store.search_conversations(order=o, page=p, limit=4)  # type: ignore[arg-type]  # a name from the table
        )
        assert [info.id for info in found] == names
    odd = [f"c{number}" for number in range(1, 25, 2)]
    found = all_pages(
        lambda p: store.search_conversations(
            status="finished", title="ärger MIT", order="CREATED_AT", page=p, limit=5
        )
    )
    assert [info.id for info in found] == odd
    assert store.count_conversations(status="finished") == 12
    assert store.count_conversations(title="mit 1") == 11
    assert store.count_conversations() == 25


def test_pages_of_conversations_stay_while_new_ones_come(store: EventStore) -> None:
    for number in range(10):
        store.set_meta(f"c{number}", title="t")
    first = store.search_conversations(limit=4)
    second = store.search_conversations(page=first.next_page, limit=4)
    store.set_meta("later", title="t")
    assert store.search_conversations(page=first.next_page, limit=4) == second
    for page in ("nowhere", "~", "2026~x"):
        with pytest.raises(InvalidQuery, match="No page of the conversations"):
            store.search_conversations(page=page)


@pytest.mark.parametrize(
    ("written", "body"),
    [
        ("a\\u0062c", "abc"),
        ("\\u212Aelvin", "kelvin"),
        ("a\\/b", "a/b"),
        ('say \\"so\\"', 'say "SO"'),
        ("back\\\\slash", "back\\slash"),
        ("two\\nlines", "two\nlines"),
        ("K\u212a", "kk"),
        ("tab\\tbed", "tab\tbed"),
    ],
)
def test_spelling_in_json_hides_nothing(store: EventStore, written: str, body: str) -> None:
    content = '[{"type":"text","text":"' + written + '"}]'
    text = (
        '{"id":"a","kind":"HologramEvent","source":"user","timestamp":"2026",'
        f'"llm_message":{{"content":{content}}}}}'
    )
    store.append("c", event_from_json(text))
    assert store.count("c", body=body) == 1
    assert store.count("c", body=body + "x") == 0


def test_what_is_said_in_an_event() -> None:
    error = AgentErrorEvent(tool_name="t", tool_call_id="c", error="it broke")
    assert spoken_text(error.to_json()) == "it broke"
    assert spoken_text(said("hi").to_json()) == "hi"
    for odd in ("[1]", "no json", '{"kind": "MessageEvent", "llm_message": 7, "thought": "t"}'):
        assert spoken_text(odd) in ("", "t")
    call = {"kind": "ActionEvent", "action": {"kind": "A", "list": [{"title": "deep"}]}}
    assert spoken_text(json.dumps(call)) == "deep"
    raw = {"kind": "ActionEvent", "tool_call": {"arguments": '{"half'}}
    assert spoken_text(json.dumps(raw)) == '{"half'
    assert spoken_text('{"kind": "SystemPromptEvent", "summary": "s"}') == ""


def test_newest_first_is_by_place_not_by_clock(store: EventStore) -> None:
    later = said("first", datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f"))
    earlier = said("second", "2020-01-01T00:00:00.000000")
    store.append_all("c", [later, earlier])
    assert ids(list(store.search("c", order="TIMESTAMP_DESC").items)) == [earlier.id, later.id]
