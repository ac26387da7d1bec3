"""How fast are glob and grep over 20,000 files, beside `find` and `rg` in the same run?

Each figure is a median and the best, and how many times the tool of the system both are.
usage: python tests/benchmarks/bench_search.py [-n 15] [FOLDER]     FOLDER keeps the tree
"""

import argparse
import shlex
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from oh_kernel.tools.glob import GlobAction, GlobExecutor
from oh_kernel.tools.grep import GrepAction, GrepExecutor
from tests.ripgrep import on_search_path

RARE, COMMON = "needle_rare_token", "compute"


def make_tree(folder: Path) -> Path:
    """500 folders of 40 files, every tenth of a kilobyte; done once."""
    tree = folder / "tree20k"
    for d in range(500):
        module = tree / f"pkg{d // 25:02d}" / f"mod{d:03d}"
        if module.exists():
            continue
        module.mkdir(parents=True)
        for f in range(40):
            text = f"# module {d} file {f}\n" + "value = compute(alpha, beta)  # filler line\n" * 20
            if d % 50 == 7 and f == 12:
                text += f"{RARE} = 1\n"
            (module / f"file_{f:02d}.{('py', 'md', 'json', 'txt')[f % 4]}").write_text(text)
    return tree


def measured(ways: dict[str, Callable[[], object]], rounds: int) -> dict[str, list[float]]:
    """Milliseconds of each way; they take turns, so that a noisy machine disturbs all alike."""
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(rounds + 1):
        for name, way in ways.items():
            began = time.perf_counter()
            way()
            if number:
                taken[name].append((time.perf_counter() - began) * 1e3)
    return taken


def shell(command: str) -> Callable[[], object]:
    return lambda: subprocess.run(["sh", "-c", command], stdout=subprocess.PIPE, check=True)


def searches(tree: Path) -> dict[str, dict[str, Callable[[], object]]]:
    """What is measured; the first way of each is what it is compared with."""
    place = shlex.quote(str(tree))
    glob = GlobExecutor(workspace=tree)
    rg = GrepExecutor(workspace=tree, backend="ripgrep")
    python = GrepExecutor(workspace=tree, backend="python")
    found = {
        "glob **/*.py": {
            "find, sort": shell(f"find {place} -name '*.py' -printf '%T@ %p\\0' | sort -zrn"),
            "glob": lambda: glob(GlobAction(pattern="**/*.py")),
        }
    }
    for name, token in (("grep, rare", RARE), ("grep, in every file", COMMON)):
        action = GrepAction(pattern=token)
        found[name] = {
            "rg -l": shell(f"rg -l {token} {place}"),
            "rg -l -i": shell(f"rg -l -i {token} {place}"),
            "grep with rg": lambda action=action: rg(action),  # type: ignore[misc]  # bound now
            "grep without": lambda action=action: python(action),  # type: ignore[misc]
        }
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-n", type=int, default=15, help="how often")
    parser.add_argument("folder", type=Path, nargs="?")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as made, on_search_path():
        tree = make_tree(options.folder or Path(made))
        print("| work | how | median ms | best ms | x median | x best |")
        print("|---|---|---|---|---|---|")
        for what, ways in searches(tree).items():
            taken = measured(ways, options.n)
            first, *_ = taken.values()
            for name, ms in taken.items():
                median, best = statistics.median(ms), min(ms)
                times = f"{median / statistics.median(first):.2f} | {best / min(first):.2f}"
                print(f"| {what} | {name} | {median:.0f} | {best:.0f} | {times} |", flush=True)


if __name__ == "__main__":
    main()
