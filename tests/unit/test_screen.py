"""What a person reads of a terminal's bytes."""

import pytest

from oh_kernel.sessions.screen import Screen, readable


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"down 10%\rdown 55%\rdown 100%\r\n", "down 100%\n"),
        (b"100 bytes\rok\r\n", "ok\n"),
        (b"[      ]\r[###\b\b==\r\n", "[#==\n"),
        (b"100 bytes\r\x1b[Kok\r\n", "ok\n"),
        (b"100 bytes\x1b[2K\x1b[1Gok\r\n", "ok\n"),
        (b"l1\r\nl2\r\n", "l1\nl2\n"),
        (b"l1\r\r\nl2\n", "l1\nl2\n"),
        (b"abc\b\bX\r\n", "aXc\n"),
        (b"x\x1b[1D|\x1b[1D/\r\n", "/\n"),
        (b"\x1b[31mred\x1b[0m \x1b[?25lx\x1b[?25h\x1b]0;my title\x07y\r\n", "red xy\n"),
        (b"\x1b]8;;http://a\x1b\\link\x1b]8;;\x1b\\\r\n", "link\n"),
        (b"\x1b[6n\x1b[c\x1b[?2004htext\x1b[?2004l\x1b=\x1b>\x1b(B\x1bP+q544e\x1b\\.", "text."),
        (b"\x1b]0;never ended\r\nnext\r\n", "\nnext\n"),
        (b"a\x00b\x07\x0e\x7f\r\n", "ab\n"),
        (b"tab\tkept\r\n", "tab\tkept\n"),
        (
            "日本 e\u0301 ".encode() + b"\xff \xe2\x80\xa8z\r\n",
            "日本 e\u0301 \ufffd \u2028z\n",
        ),
        (b"\xed\xa0\xbd end\r\n", "\ufffd\ufffd\ufffd end\n"),
        (b"w" * 200_000 + b"\r\n", "w" * 200_000 + "\n"),
        (b"no newline", "no newline"),
        (b"kept\r", "kept"),
        (b"cut \xe6\x97", "cut \ufffd"),
        (b"cut \x1b[", "cut ["),
        (b"bin\x1b\xffary\x1b\x1b\xc3\xa9\r\n", "bin\ufffdary\u00e9\n"),
    ],
)
def test_output_reads_as_on_a_screen(data: bytes, text: str) -> None:
    assert readable(data) == text


def test_pieces_may_be_cut_anywhere() -> None:
    data = (
        b"get 10%\rget 99%\r\n\x1b[1;31mred\x1b[0m\x1b]0;title\x1b\\ \xe6\x97\xa5\r\nx\r\r\n"
        b"\x1bPq#0\x1b\\end\r\n"
    )
    for cut in range(len(data)):
        screen = Screen()
        text = screen.feed(data[:cut])[0] + screen.feed(data[cut:])[0] + screen.flush()
        assert text == "get 99%\nred 日\nx\nend\n", cut


def test_one_byte_at_a_time() -> None:
    screen = Screen()
    data = "a\r\n\x1b[31mé\x1b[0m\r\n10%\r20%".encode()
    assert "".join(screen.feed(bytes([b]))[0] for b in data) + screen.flush() == "a\né\n20%"


def test_unfinished_line_is_given_once() -> None:
    screen = Screen()
    assert screen.feed(b"done\r\nPassword: ")[0] == "done\n"
    assert screen.take_line() == "Password: "
    assert screen.feed(b"\r\nok\r\n")[0] == "\nok\n"


def test_live_text_keeps_carriage_returns_and_no_escapes() -> None:
    assert Screen().feed(b"\x1b[32m10%\r20%\x1b[K\x1b[0m\r\n")[1] == "10%\r20%\n"


def test_endless_line_does_not_pile_up() -> None:
    screen = Screen()
    given = sum(len(screen.feed(b"x" * 4096)[0]) for _ in range(1000))
    assert 4096 * 1000 - given < 100_000


def test_endless_progress_keeps_one_frame() -> None:
    screen = Screen()
    for n in range(10_000):
        assert screen.feed(b"\rstep %d" % n)[0] == ""
    assert screen.take_line() == "step 9999"


def test_unclosed_string_sequence_does_not_swallow_everything() -> None:
    assert "tail" in readable(b"\x1bP" + b"line\r\n" * 50_000 + b"tail")
