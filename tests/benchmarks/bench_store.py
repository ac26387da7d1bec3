"""How many events a second does the store take and give, and how soon is something found?

usage: python tests/benchmarks/bench_store.py [--events N] [--conversations N] [FOLDER]
Prints one line of JSON. "Cold" is the first time in a store that was just opened.
"""

import argparse
import json
import resource
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from oh_kernel.events import Message, MessageEvent, TextContent, new_id
from oh_kernel.store import EventStore

EVENT_BYTES = 1024  # of an event's JSON
LINE = "output line with some ordinary text 0123456789\n"
MANY_CONVERSATIONS = """
WITH RECURSIVE n (v) AS (SELECT 1 UNION ALL SELECT v + 1 FROM n WHERE v < ?)
INSERT INTO conversations (id, created_at, updated_at, title)
SELECT hex(randomblob(16)), '', printf('2026-01-01T%09d', v), 'a title of some length' FROM n
"""


def timed_ms(run: Callable[[], object]) -> float:
    started = time.perf_counter()
    run()
    return (time.perf_counter() - started) * 1e3


def median_ms(run: Callable[[], object], times: int = 9) -> float:
    return round(statistics.median(timed_ms(run) for _ in range(times)), 2)


def message(text: str = "") -> MessageEvent:
    """An event whose JSON has EVENT_BYTES, or one with this text."""
    bare = MessageEvent(source="user", llm_message=Message.of("user", text))
    if text:
        return bare
    body = (LINE * 30)[: EVENT_BYTES - len(bare.to_json())]
    body = body.replace("\n", " ")
    content = [TextContent(text=body)]
    return MessageEvent(source="user", llm_message=Message(role="user", content=content))


def cold_ms(file: Path, run: Callable[[EventStore], object], times: int = 9) -> float:
    """The median of a call that is the first one in its store."""
    taken = []
    for _ in range(times):
        with EventStore.open(file) as store:
            taken.append(timed_ms(lambda store=store: run(store)))  # type: ignore[misc]  # bound now
    return round(statistics.median(taken), 2)


def measure(folder: Path, count: int, conversations: int) -> dict[str, object]:
    file, name = folder / "events.db", new_id()
    store = EventStore.open(file)
    events = [message() for _ in range(count)]
    took = [timed_ms(lambda event=event: store.append(name, event)) for event in events]
    tenth = count // 10
    journals_mb = round(sum(path.stat().st_size for path in folder.glob("events.db-*")) / 1e6, 2)
    store.close()
    figures: dict[str, object] = {
        "append_ms_first_tenth": round(statistics.median(took[:tenth]), 3),
        "append_ms_last_tenth": round(statistics.median(took[-tenth:]), 3),
        "append_ms_p99": round(sorted(took)[count * 99 // 100], 3),
        "event_bytes": len(events[0].to_json()),
        "file_mb": round(file.stat().st_size / 1e6, 2),
        "journals_mb": journals_mb,
    }
    ids = [event.id for event in events[count // 2 : count // 2 + 100]]
    figures |= {
        "get_100_cold_ms": cold_ms(file, lambda s: s.get_json(name, ids)),
        "get_100_parsed_cold_ms": cold_ms(file, lambda s: s.get(name, ids)),
        "search_100_cold_ms": cold_ms(file, lambda s: s.search(name, page=ids[0])),
        "search_100_newest_cold_ms": cold_ms(
            file, lambda s: s.search(name, order="TIMESTAMP_DESC")
        ),
        "search_rare_kind_ms": cold_ms(file, lambda s: s.search(name, kind="PauseEvent"), 3),
        "search_body_rare_ms": cold_ms(file, lambda s: s.search(name, body="nowhere said"), 3),
        "count_ms": cold_ms(file, lambda s: s.count(name)),
        "iterate_json_cold_ms": cold_ms(file, lambda s: list(s.iterate_json(name)), 3),
        "iterate_cold_ms": cold_ms(file, lambda s: list(s.iterate(name)), 3),
        "open_ms": median_ms(lambda: EventStore.open(file).close()),
    }
    return figures | _with_many(file, conversations)


def _with_many(file: Path, conversations: int) -> dict[str, object]:
    with EventStore.open(file) as store:
        other = new_id()
        synced = [
            timed_ms(lambda: store.append(other, message(), full_sync=True)) for _ in range(100)
        ]
        store._database.write(lambda c: c.execute(MANY_CONVERSATIONS, (conversations,)).rowcount)
        first = timed_ms(lambda: store.find(["needle"]))
        store.append(other, message("a needle"))
        found = [timed_ms(lambda: store.find(["needle"])) for _ in range(40)]
        return {
            "append_full_sync_ms": round(statistics.median(synced), 2),
            "list_20_ms": median_ms(lambda: store.conversations(20)),
            "search_conversations_ms": median_ms(lambda: store.search_conversations(limit=20)),
            "find_first_ms": round(first),
            "find_second_ms": round(found[0]),
            "find_later_ms": round(found[-1], 1),
        }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--events", type=int, default=10_000)
    parser.add_argument("--conversations", type=int, default=10_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        figures = measure(Path(folder), options.events, options.conversations)
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    about = {"bench": "store", "n": options.events, "conversations": options.conversations}
    print(json.dumps({**about, **figures, "peak_rss_mb": round(peak_mb, 1)}))


if __name__ == "__main__":
    main()
