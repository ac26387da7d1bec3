"""Which file is the local model's, and is a wrong one refused?"""

import hashlib
from pathlib import Path

import pytest

from oh_kernel.errors import ModelNotConfigured
from oh_kernel.llm import local_file
from oh_kernel.llm.local_file import Published, file_of, models_folder

CONTENT = b"GGUF and then the weights"


@pytest.fixture
def tiny(private_home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A published model of a few bytes, already in the cache of this user."""
    known = Published("someone/tiny", "tiny.gguf", hashlib.sha256(CONTENT).hexdigest())
    monkeypatch.setitem(local_file.KNOWN, "tiny", known)
    path = models_folder() / known.file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(CONTENT)
    return path


def test_a_path_is_taken_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "mine.gguf"
    path.write_bytes(CONTENT)
    assert file_of(str(path)) == path


def test_a_known_model_is_found_in_the_cache(tiny: Path) -> None:
    assert file_of("tiny") == tiny
    assert file_of("Tiny") == tiny  # with its sum remembered


def test_a_file_with_another_sum_is_refused_also_after_the_right_one(tiny: Path) -> None:
    file_of("tiny")
    tiny.write_bytes(CONTENT.replace(b"weights", b"malware"))
    with pytest.raises(ModelNotConfigured, match="is not the file that its makers published"):
        file_of("tiny")


def test_a_broken_note_of_sums_is_no_harm(tiny: Path) -> None:
    (models_folder() / "checked.json").write_text("[")
    assert file_of("tiny") == tiny


def test_neither_a_file_nor_known(tmp_path: Path) -> None:
    with pytest.raises(ModelNotConfigured, match="neither a file nor a known model") as caught:
        file_of("qwen9")
    assert "qwen2.5-coder-1.5b-instruct" in (caught.value.remedy or "")
    with pytest.raises(ModelNotConfigured, match="neither"):
        file_of(str(tmp_path))


def test_not_a_gguf_file(tmp_path: Path) -> None:
    path = tmp_path / "weights.bin"
    path.write_bytes(b"PK\x03\x04")
    with pytest.raises(ModelNotConfigured, match="not a GGUF file"):
        file_of(str(path))
