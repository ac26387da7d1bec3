"""How many events a second does the store take and give, and how soon does it list them?

usage: python tests/benchmarks/bench_store.py [--events N] [--conversations N] [FOLDER]
Prints one line of JSON.
"""

import argparse
import json
import resource
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from oh_kernel.events import Message, MessageEvent, TextContent
from oh_kernel.store import EventStore

BODY = "output line with some ordinary text 0123456789\n" * 20  # about 1 KB
MANY_CONVERSATIONS = """
WITH RECURSIVE n (v) AS (SELECT 1 UNION ALL SELECT v + 1 FROM n WHERE v < ?)
INSERT INTO conversations (id, created_at, updated_at, title)
SELECT hex(randomblob(16)), '', printf('2026-01-01T%09d', v), 'a title of some length' FROM n
"""


def timed(run: Callable[[], object]) -> float:
    started = time.perf_counter()
    run()
    return time.perf_counter() - started


def median_ms(run: Callable[[], object], times: int = 9) -> float:
    return round(statistics.median(timed(run) for _ in range(times)) * 1e3, 2)


def message() -> MessageEvent:
    content = [TextContent(text=BODY)]
    return MessageEvent(source="user", llm_message=Message(role="user", content=content))


def measure(folder: Path, count: int, conversations: int) -> dict[str, object]:
    store = EventStore.open(folder / "events.db")
    events = [message() for _ in range(count)]
    took = sorted(timed(lambda event=event: store.append("c", event)) for event in events)
    synced = [timed(lambda: store.append("synced", message(), full_sync=True)) for _ in range(100)]
    some = [event.id for event in events[count // 2 : count // 2 + 100]]
    figures: dict[str, object] = {
        "append_events_per_s": round(count / sum(took)),
        "append_us_p50": round(took[count // 2] * 1e6, 1),
        "append_us_p99": round(took[count * 99 // 100] * 1e6, 1),
        "append_full_sync_ms_p50": round(statistics.median(synced) * 1e3, 2),
        "iterate_ms": median_ms(lambda: list(store.iterate("c")), 3),
        "iterate_json_ms": median_ms(lambda: list(store.iterate_json("c")), 3),
        "get_100_ms": median_ms(lambda: store.get("c", some)),
    }
    store._database.write(lambda c: c.execute(MANY_CONVERSATIONS, (conversations,)).rowcount)
    figures["list_20_ms"] = median_ms(lambda: store.conversations(20))
    store.close()
    figures["open_ms"] = median_ms(lambda: EventStore.open(folder / "events.db").close())
    figures["file_mb"] = round((folder / "events.db").stat().st_size / 1e6, 2)
    return figures


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
