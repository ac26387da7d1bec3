"""What does our loop cost a step, and does that grow with the conversation?

The model is scripted, so what is timed is everything else: projecting, parsing, storing, telling.
3,340 steps make a log of 10,000 events.
usage: python tests/benchmarks/bench_step.py [--steps 3340]
"""

import argparse
import itertools
import json
import statistics
import tempfile
from pathlib import Path

from adapter_oh_kernel import run_agent

CALLS = {
    "no work (think)": ("think", {"thought": "x"}),
    "file_editor view": ("file_editor", {"command": "view", "path": "@WORKSPACE@/sample.py"}),
    "terminal true": ("terminal", {"command": "true"}),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=3340)
    steps = parser.parse_args().steps
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "sample.py").write_text("".join(f"x{i} = {i}\n" for i in range(50)))
        run_agent([CALLS["file_editor view"]], folder, folder)  # what is paid for once
        for name, call in CALLS.items():
            run = run_agent([call] * steps, folder, folder)
            assert run["status"] == "finished", run["status"]
            stamps = run["stamps"]
            ms = [(b - a) * 1e3 for a, b in itertools.pairwise(stamps)]
            window = min(50, max(1, steps // 10))
            figures = {
                "bench": "step",
                "call": name,
                "steps": steps,
                "events": run["events"],
                "median_ms": round(statistics.median(ms), 2),
                "steps_10_to_60_ms": round(statistics.median(ms[10 : 10 + window]), 2),
                "last_steps_ms": round(statistics.median(ms[-window:]), 2),
            }
            print(json.dumps(figures), flush=True)


if __name__ == "__main__":
    main()
