"""Views that are redrawn, where text can only be added: each line once, all in order."""

import io

from oh_kernel.commands.redrawn import Screen


def shown(*steps: tuple[str, str | None]) -> str:
    """What is printed for these displays (with an id: redrawn), to the end."""
    stream = io.StringIO()
    screen = Screen(stream)
    for text, display_id in steps:
        screen.draw(text, display_id)
    screen.finish()
    return stream.getvalue()


def test_a_growing_view_is_printed_once() -> None:
    lines = [f"line {n}" for n in range(20)]
    steps = [("\n".join(lines[:count]), "a") for count in range(1, 21)]
    assert shown(*steps) == "\n".join(lines) + "\n"


def test_lines_appear_while_the_view_grows() -> None:
    stream = io.StringIO()
    screen = Screen(stream)
    screen.draw("one\ntwo\nthree\nfour\nfive", "a")
    assert stream.getvalue() == "one\ntwo\n"


def test_an_open_call_waits_until_it_is_done() -> None:
    assert (
        shown(
            ("Hello.\n\n… ls (running)\n$ ls\n\n[running · 1 s]\n", "a"),
            ("Hello.\n\n✓ ls (ok)\n$ ls\nfile", "a"),
        )
        == "Hello.\n\n✓ ls (ok)\n$ ls\nfile\n"
    )


def test_what_follows_an_open_view_waits_for_it() -> None:
    assert (
        shown(
            ("… plot (running)", "a"),
            ("[a picture]", None),
            ("✓ plot (ok)", "a"),
            ("The end.", "b"),
        )
        == "✓ plot (ok)\n[a picture]\nThe end.\n"
    )


def test_a_view_that_got_another_form_repeats_no_line() -> None:
    text = "\n".join(["a", "b", "c", "d", "e"])
    assert shown((text, "x"), ("A\nb\nc\nd\ne", "x")) == "a\nb\nA\nc\nd\ne\n"


FRAME = "   a\n0  1"


def test_a_display_that_the_view_above_tells_is_shown_once() -> None:
    steps = [("… look (running)", "a"), (FRAME, None), (f"✓ look (ok)\ndf\n{FRAME}", "a")]
    assert shown(*steps, ("The end.", "b")) == f"✓ look (ok)\ndf\n{FRAME}\nThe end.\n"


def test_a_display_of_another_cell_or_of_other_lines_is_shown() -> None:
    view = (f"✓ look (ok)\n{FRAME}0", "a")
    assert shown(view, (FRAME, None)).endswith(f"{FRAME}0\n{FRAME}\n")
    stream = io.StringIO()
    screen = Screen(stream)
    screen.draw(FRAME, "a")
    screen.finish()
    screen.draw(FRAME)
    screen.finish()
    assert stream.getvalue() == f"{FRAME}\n{FRAME}\n"
