"""The public names of the package: what `__all__` lists is there, sorted, and imported late."""

import subprocess
import sys

import pytest

import oh_kernel


def test_the_list_is_sorted_and_complete() -> None:
    assert oh_kernel.__all__ == sorted(oh_kernel.__all__)
    assert dir(oh_kernel) == oh_kernel.__all__
    public = {name for name in vars(oh_kernel) if not name.startswith("_")}
    imported = {name for name in public if f"oh_kernel.{name}" in sys.modules}
    assert public - imported - {"Any", "TYPE_CHECKING", "import_module"} <= set(oh_kernel.__all__)


@pytest.mark.parametrize("name", oh_kernel.__all__)
def test_each_public_name_is_there(name: str) -> None:
    assert getattr(oh_kernel, name) is not None


def test_other_names_are_not() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Kernel'"):
        getattr(oh_kernel, "Kernel")  # noqa: B009 - mypy knows that it is not there


def test_importing_the_package_imports_only_the_standard_library() -> None:
    code = (
        "import sys; before = set(sys.modules); import oh_kernel;"
        "added = set(sys.modules) - before;"
        "print([name for name in added if name.split('.')[0] not in sys.stdlib_module_names])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (run.stdout.strip(), run.stderr) == ("['oh_kernel']", "")
