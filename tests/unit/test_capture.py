"""Output of any length is kept within bounds, and whole in a file."""

from pathlib import Path

from oh_kernel.sessions.capture import Capture


def small_capture(folder: Path) -> Capture:
    return Capture(
        lambda: folder / "out.txt", head_max_chars=10, tail_max_chars=10, file_max_chars=1000
    )


def test_short_output_makes_no_file(tmp_path: Path) -> None:
    capture = small_capture(tmp_path)
    capture.add("0123456789")
    capture.add("abcdefghij")
    assert capture.text == "0123456789abcdefghij"
    assert capture.path is None
    assert list(tmp_path.iterdir()) == []


def test_long_output_keeps_both_ends_and_a_file(tmp_path: Path) -> None:
    capture = small_capture(tmp_path)
    whole = "".join(f"{n:04d}," for n in range(100))
    for start in range(0, len(whole), 7):
        capture.add(whole[start : start + 7])
    assert capture.text.startswith(whole[:10])
    assert capture.text.endswith(whole[-10:])
    assert len(capture.text) < 30
    assert capture.save().read_text() == whole
    assert capture.total_chars == capture.saved_chars == len(whole)


def test_one_long_piece(tmp_path: Path) -> None:
    capture = small_capture(tmp_path)
    capture.add("x" * 15)
    capture.add("y" * 500)
    assert capture.text == "x" * 10 + "y" * 10
    assert capture.save().read_text() == "x" * 15 + "y" * 500


def test_file_has_a_limit(tmp_path: Path) -> None:
    capture = small_capture(tmp_path)
    for _ in range(300):
        capture.add("12345")
    assert capture.save().stat().st_size == 1000
    assert (capture.total_chars, capture.saved_chars) == (1500, 1000)


def test_save_of_short_output(tmp_path: Path) -> None:
    capture = small_capture(tmp_path)
    capture.add("abc\r\n")
    assert capture.save().read_bytes() == b"abc\r\n"
