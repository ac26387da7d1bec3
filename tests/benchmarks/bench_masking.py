"""What does it cost to look for secrets in an event?

None is found, as in nearly all events; each secret is looked for as whatever it may be encoded.
usage: python tests/benchmarks/bench_masking.py [--secrets 20]
"""

import argparse
import json
import random
import statistics
import string
import time

from oh_kernel.events import Message, MessageEvent
from oh_kernel.security.secrets import SecretMask

REPEATS = 50


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--secrets", type=int, default=20)
    count = parser.parse_args().secrets
    chance = random.Random(1)
    values = [
        "".join(chance.choices(string.ascii_letters + "0123456789_+/", k=40)) for _ in range(count)
    ]
    for secrets in (1, count):
        mask = SecretMask(values[:secrets])
        for chars in (1_000, 50_000):
            event = MessageEvent(
                source="agent", llm_message=Message.of("assistant", words(chance, chars))
            )
            figures = {
                "bench": "masking",
                "secrets": secrets,
                "event_chars": chars,
                "median_ms": round(statistics.median(seconds(mask, event)) * 1e3, 3),
            }
            print(json.dumps(figures), flush=True)


def words(chance: random.Random, chars: int) -> str:
    lines = (f"row {n}: {chance.random()} of the output of a program" for n in range(chars // 20))
    return "\n".join(lines)[:chars]


def seconds(mask: SecretMask, event: MessageEvent) -> list[float]:
    mask.event(event)  # what is paid for once
    found = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        assert mask.event(event) is event
        found.append(time.perf_counter() - began)
    return found


if __name__ == "__main__":
    main()
