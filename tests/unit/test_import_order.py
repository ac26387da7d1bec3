"""Who may import whom: downwards only, and never in a circle. Read from the sources by `ast`."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "oh_kernel"

# From the top down; a row may import itself and what is below it.
ROWS = (
    ("kernel", "server", "cli", "commands", "demo", "doctor", "install", "__main__", "evaluation"),
    ("views",),
    ("conversation",),
    ("agents",),
    ("skills", "security"),
    ("tools",),
    ("sessions", "llm", "store"),
    ("events",),
    (
        "settings",
        "profiles",
        "layers",
        "credentials",
        "loop",
        "imports",
        "installing",
        "options",
        "logs",
    ),
    ("providers", "errors"),
)
HEIGHT = {area: len(ROWS) - row for row, areas in enumerate(ROWS) for area in areas}
# These hand the whole environment to a child process, or set a variable for a library, which is
# another thing than reading it.
HANDS_ON = {"oh_kernel.sessions.shell_environment", "oh_kernel.sessions.process_shell"}

MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for folder in (PACKAGE, ROOT / "agentskills")
    for path in sorted(folder.rglob("*.py"))
}


def area_of(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


def imported(module: str, *, at_import: bool = False) -> Iterator[str]:
    """The modules of ours that `module` imports; `at_import`: leaves out those in functions."""
    tree = ast.parse(MODULES[module].read_text("utf-8"))
    nodes = _when_imported(tree) if at_import else ast.walk(tree)
    for node in nodes:
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}: write imports from the top, oh_kernel.…"
            whole = [f"{node.module}.{alias.name}" for alias in node.names]
            names = [name if name in MODULES else str(node.module) for name in whole]
        else:
            continue
        yield from (name for name in names if name in MODULES and name != module)


def _when_imported(node: ast.AST) -> Iterator[ast.AST]:
    """What runs when a module is imported: no bodies of functions, nothing for type checkers."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            continue
        yield child
        yield from _when_imported(child)


@pytest.mark.parametrize("module", [name for name in MODULES if name.startswith("oh_kernel.")])
def test_imports_point_down(module: str) -> None:
    here = HEIGHT[area_of(module)]
    upwards = [
        name
        for name in imported(module)
        if name.startswith("oh_kernel.") and HEIGHT[area_of(name)] > here
    ]
    assert upwards == []


def test_agentskills_imports_nothing_of_the_kernel() -> None:
    skills = [name for name in MODULES if name.split(".")[0] == "agentskills"]
    assert skills
    guests = {one for name in skills for one in imported(name) if one.startswith("oh_kernel")}
    assert guests == set()


def test_no_module_imports_itself_in_a_circle() -> None:
    graph = {name: set(imported(name, at_import=True)) for name in MODULES}
    while leaves := {name for name, ones in graph.items() if not ones}:
        graph = {name: ones - leaves for name, ones in graph.items() if name not in leaves}
    assert sorted(graph) == []


def test_only_settings_reads_the_environment() -> None:
    """Others are handed their settings."""
    readers = {
        name
        for name, path in MODULES.items()
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Attribute) and node.attr in ("environ", "getenv", "environb")
    }
    assert readers - HANDS_ON == {"oh_kernel.settings"}
