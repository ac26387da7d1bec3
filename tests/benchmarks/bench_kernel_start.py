"""What does starting our kernel cost beside plain ipykernel? CPU time of the kernel process.

Runs are interleaved; a run is: start, wait until ready, one cell, read the process's CPU time.
usage: python tests/benchmarks/bench_kernel_start.py [-n 20]
"""

import argparse
import json
import statistics
import subprocess
import sys
import time

import psutil
from jupyter_client.manager import KernelManager

KERNELS = {
    "plain": [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"],
    "openhands": [sys.executable, "-m", "oh_kernel", "-f", "{connection_file}"],
}


def one_start(argv: list[str]) -> tuple[float, float]:
    """CPU seconds of the kernel process and wall seconds until the first reply."""
    manager = KernelManager()
    assert manager.kernel_spec is not None
    manager.kernel_spec.argv = argv
    began = time.perf_counter()
    manager.start_kernel(stderr=subprocess.DEVNULL)
    client = manager.client()
    client.start_channels()
    client.wait_for_ready(timeout=60)
    client.execute_interactive("1+1", timeout=60, output_hook=lambda _: None)
    wall_s = time.perf_counter() - began
    cpu = psutil.Process(manager.provisioner.pid).cpu_times()  # type: ignore[union-attr]  # started
    client.stop_channels()
    manager.shutdown_kernel(now=True)
    return cpu.user + cpu.system, wall_s


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-n", type=int, default=20)
    runs = parser.parse_args().n
    cpu: dict[str, list[float]] = {name: [] for name in KERNELS}
    wall: dict[str, list[float]] = {name: [] for name in KERNELS}
    for n in range(runs + 1):
        for name, argv in KERNELS.items():
            cpu_s, wall_s = one_start(argv)
            if n:  # the first of each warms the caches
                cpu[name].append(cpu_s)
                wall[name].append(wall_s)
    ratios = [ours / plain for ours, plain in zip(cpu["openhands"], cpu["plain"], strict=True)]
    figures = {
        "bench": "kernel start",
        "runs": runs,
        "plain_cpu_s": round(statistics.median(cpu["plain"]), 3),
        "openhands_cpu_s": round(statistics.median(cpu["openhands"]), 3),
        "cpu_ratio_of_medians": round(
            statistics.median(cpu["openhands"]) / statistics.median(cpu["plain"]), 3
        ),
        "cpu_ratio_median_of_pairs": round(statistics.median(ratios), 3),
        "plain_wall_s": round(statistics.median(wall["plain"]), 3),
        "openhands_wall_s": round(statistics.median(wall["openhands"]), 3),
    }
    print(json.dumps(figures), flush=True)


if __name__ == "__main__":
    main()
