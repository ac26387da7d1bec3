"""`oh-kernel doctor`: each trouble is found, and each finding says what to do."""

import json
import sys
from pathlib import Path

import pytest

from oh_kernel.cli import main
from oh_kernel.installing import ours


@pytest.fixture
def kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of kernelspecs that Jupyter looks into before any other."""
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "jupyter"))
    settings = tmp_path / "settings" / "config.toml"
    settings.parent.mkdir()
    settings.touch()
    monkeypatch.setenv("OPENHANDS_CONFIG_FILE", str(settings))
    monkeypatch.setenv("OPENHANDS_STORE_PATH", str(tmp_path / "store" / "events.sqlite"))
    return tmp_path / "jupyter" / "kernels"


def add_kernel(kernels: Path, name: str, python: str) -> None:
    spec = {"argv": [python, "-m", "oh_kernel", "-f", "{connection_file}"], "display_name": name}
    (kernels / name).mkdir(parents=True)
    (kernels / name / "kernel.json").write_text(json.dumps({**spec, "language": "python"}))


def findings(capsys: pytest.CaptureFixture[str], *flags: str) -> tuple[int, str]:
    code = main(["doctor", *flags])
    return code, capsys.readouterr().out


def test_all_is_well(kernels: Path, capsys: pytest.CaptureFixture[str]) -> None:
    add_kernel(kernels, "here", sys.executable)
    code, text = findings(capsys)
    assert f"[ ok  ] kernelspec here ({kernels / 'here'}): runs {sys.executable}" in text
    assert text.count("No model is set.") == 1, "a note, which is no failure"
    assert "\n        For every task: OPENHANDS_MODEL=" in text and "%openhands" not in text
    assert code == 0 and text.endswith("Nothing is wrong.\n")


def test_an_interpreter_that_is_gone(kernels: Path, capsys: pytest.CaptureFixture[str]) -> None:
    add_kernel(kernels, "gone", "/no/such/python")
    code, text = findings(capsys)
    assert code == 1
    assert "[WRONG] kernelspec gone" in text and "/no/such/python is gone" in text
    assert "oh-kernel install --user --name gone" in text


def test_an_interpreter_without_the_package(
    kernels: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bare = str(Path(sys.base_prefix) / "bin" / "python3")
    add_kernel(kernels, "bare", bare)
    code, text = findings(capsys)
    assert code == 1
    assert f"{bare} cannot import oh_kernel" in text


def test_another_version_elsewhere(
    kernels: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "python"
    other.write_text("#!/bin/sh\necho 0.0.1\n")
    other.chmod(0o755)
    add_kernel(kernels, "old", str(other))
    code, text = findings(capsys)
    assert code == 1
    assert "has oh-kernel 0.0.1, here it is" in text
    assert f"{other} -m pip install --upgrade {ours()}" in text


def test_settings_are_checked(
    kernels: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENHANDS_POLCY", "always")
    monkeypatch.setenv("OPENHANDS_MODEL", "openai:gpt-6-luna")
    code, text = findings(capsys)
    assert code == 1
    assert "OPENHANDS_POLCY is not one of ours" in text and "OPENHANDS_POLICY?" in text
    assert "There is no key for openai." in text and "OPENAI_API_KEY" in text
    monkeypatch.delenv("OPENHANDS_POLCY")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    code, text = findings(capsys)
    assert code == 0
    assert "model openai:gpt-6-luna (OPENHANDS_MODEL), key from OPENAI_API_KEY" in text
    assert "sk-secret" not in text
    monkeypatch.setenv("OPENHANDS_MODEL", "gpt-5")
    code, text = findings(capsys)
    assert code == 1 and "names no known provider" in text
    monkeypatch.setenv("OPENHANDS_MAX_STEPS", "none")
    code, text = findings(capsys)
    assert code == 1 and "max_steps is 'none' (OPENHANDS_MAX_STEPS)" in text


def test_a_store_that_cannot_be_written(
    kernels: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """/proc refuses even the administrator."""
    monkeypatch.setenv("OPENHANDS_STORE_PATH", "/proc/1/oh/events.sqlite")
    code, text = findings(capsys)
    assert code == 1
    assert "cannot be written" in text and "OPENHANDS_STORE_PATH" in text


def test_the_model_is_asked_once_on_request(
    kernels: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    script = tmp_path / "script.json"
    script.write_text('[{"content": "ready", "usage": {"prompt_tokens": 7}}]')
    monkeypatch.setenv("OPENHANDS_MODEL", f"scripted:{script}")
    code, text = findings(capsys, "--call")
    assert code == 0
    assert "the model answers: 'ready' (7 tokens)" in text
    script.write_text("[]")
    code, text = findings(capsys, "--call")
    assert code == 1
    assert "The model does not answer" in text


def test_tools_that_are_not_there(
    kernels: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENHANDS_TOOLS", "planing")
    code, text = findings(capsys)
    assert code == 1
    assert "tools='planing' is neither a preset nor a tool. (OPENHANDS_TOOLS)" in text
