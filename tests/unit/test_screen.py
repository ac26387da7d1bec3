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
        text = screen.feed(data[:cut])[0] + screen.feed(data[cut:])[0] + screen.flush().text
        assert text == "get 99%\nred 日\nx\nend\n", cut


def test_one_byte_at_a_time() -> None:
    screen = Screen()
    data = "a\r\n\x1b[31mé\x1b[0m\r\n10%\r20%".encode()
    assert "".join(screen.feed(bytes([b]))[0] for b in data) + screen.flush().text == "a\né\n20%"


def test_unfinished_line_is_given_once() -> None:
    screen = Screen()
    assert screen.feed(b"done\r\nPassword: ")[0] + screen.take().text == "done\nPassword: "
    assert screen.feed(b"\r\nok\r\n")[0] + screen.take().text == "\nok\n"


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
    assert screen.take().text == "step 9999"


def test_lines_are_settled_once_nothing_goes_back_to_them() -> None:
    screen, settled, whole = Screen(), "", "".join(f"line {n}\n" for n in range(10_000))
    for n in range(10_000):
        settled += screen.feed(b"line %d\r\n" % n).text
        assert settled == whole[: len(settled)]
    assert len(whole) - 40_000 < len(settled) < len(whole) - 6_000  # a screen of them waits
    assert settled + screen.flush().text == whole


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"one\r\ntwo\r\n\x1b[2A\x1b[2KONE\r\n\x1b[1Bthree\r\n", "ONE\ntwo\nthree\n"),
        (b"a: 1%\r\nb: 1%\r\n\x1b[Aa\x1b[A\ra: 9%\r\nb: 9%\r\nend\r\n", "a: 9%\nb: 9%\nend\n"),
        (b"old\r\n\x1b[H\x1b[2J\x1b[3Jnew\r\n", "new\n"),
        (b"\x1b[2J\x1b[3;5Hthird\x1b[1;1Hfirst", "first\n\n    third"),
        (b"[ \x1b[10Cright\x1b[3Gleft\r\n", "[ left      right\n"),
        (b"\x1b[60Gfar\r\n", " " * 59 + "far\n"),
        (b"abcdef\x1b[1;3H\x1b[2P\x1b[1;2H\x1b[1@\x1b[1;9Hx", "a bef   x"),
        (b"1\r\n2\r\n3\x1b[2;1H\x1b[Lnew\x1b[1;1H\x1b[M", "new\n2\n3"),
        (b"\x1b(0lqk\x1b(B\x1b[2;1H\x0e~", "\u250c\u2500\u2510\n~"),
        (b"\x1b[Hab\x1b[3bc", "abbbbc"),
        (
            b"before\r\n\x1b[?1049h\x1b[Hinside\x1b[50;1H\x1b[?1049lafter\r\n",
            "before\ninside\nafter\n",
        ),
        ("\x1b[H日本\x1b[1;3Hx\x1b[2;1He\u0301!".encode(), "日x\ne\u0301!"),
        (b"\x1b[2;4r\x1b[4;1Ha\r\nb\x1b[r\x1b[1;1Htop", "top\n\na\nb"),
        (b"\x1b[H" + b"w" * 300 + b"\r\n", "w" * 300 + "\n"),
        (b"\x1b[H" + b"\r\n".join(b"%d" % n for n in range(200)), "\n".join(map(str, range(200)))),
    ],
)
def test_programs_that_move_about_leave_a_readable_screen(data: bytes, text: str) -> None:
    assert readable(data) == text
    screen = Screen()
    pieces = "".join(screen.feed(data[at : at + 1])[0] for at in range(len(data)))
    assert pieces + screen.flush().text == text


def test_a_screen_is_told_again_only_when_it_has_changed() -> None:
    screen = Screen()
    screen.feed(b"\x1b[?1049h\x1b[H\x1b[2Jload 1\r\nidle")
    assert screen.take().text == "load 1\nidle\n"
    assert screen.take().text == ""
    screen.feed(b"\x1b[1;6H2")
    assert screen.take().text == "load 2\nidle\n"
    assert screen.feed(b"\x1b[?1049l")[0] == ""


def test_rows_that_were_told_are_not_told_when_they_scroll() -> None:
    screen = Screen()
    screen.feed(b"\x1b[Hone\r\ntwo\r\n")
    assert screen.take().text == "one\ntwo\n"
    text = screen.feed(b"".join(b"%d\r\n" % n for n in range(100)))[0] + screen.flush().text
    assert text == "".join(f"{n}\n" for n in range(100))


def test_text_is_written_line_by_line_again_after_a_movement() -> None:
    screen = Screen()
    screen.feed(b"a\r\nb\r\n\x1b[A\x1b[2Kc\r\n")
    long = "x" * 1000
    screen.feed(f"{long}\r\n".encode())
    assert screen.flush().text == f"a\nc\n{long}\n"


def test_unclosed_string_sequence_does_not_swallow_everything() -> None:
    assert "tail" in readable(b"\x1bP" + b"line\r\n" * 50_000 + b"tail")
