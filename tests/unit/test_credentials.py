"""The file of keys, when it is not what `login` wrote."""

from pathlib import Path

import pytest

from oh_kernel.credentials import stored_key
from oh_kernel.errors import SettingsError

KEY = "sk-0123456789abcdef"


@pytest.mark.parametrize("content", [b"\xff\xfe", b'openai = "%s' % KEY.encode(), b"= ="])
def test_damaged_file_is_told_without_its_keys(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "credentials"
    path.write_bytes(content)
    path.chmod(0o600)
    with pytest.raises(SettingsError, match="damaged") as told:
        stored_key("openai", tmp_path)
    assert str(path) in str(told.value) and KEY not in str(told.value)
    assert "%openhands login" in told.value.remedy and "oh-kernel login" in told.value.remedy


def test_readable_by_others_is_told_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "credentials"
    path.write_bytes(b"\xff")
    path.chmod(0o640)
    with pytest.raises(SettingsError, match="chmod 600"):
        stored_key("openai", tmp_path)


def test_folder_in_its_place_is_told(tmp_path: Path) -> None:
    (tmp_path / "credentials").mkdir()
    with pytest.raises(SettingsError, match="cannot be read"):
        stored_key("openai", tmp_path)
