"""Hunks find their place and change nothing else, whatever the file's encoding and endings."""

import codecs
import difflib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentskills.charset import Charset
from agentskills.editing import FileText
from oh_kernel.tools.patch_grammar import DiffError, UpdateFile, parse
from oh_kernel.tools.patch_matching import apply
from tests.experiments import count

LINE = st.text(st.sampled_from("ab \té"), max_size=3)
CHARSETS = (
    Charset("utf-8"),
    Charset("utf-8", codecs.BOM_UTF8),
    Charset("utf-16-le", codecs.BOM_UTF16_LE),
    Charset("cp1252"),
)


def hunks_of(body: str) -> tuple[UpdateFile, ...]:
    (section,) = parse(f"*** Begin Patch\n*** Update File: f\n{body}\n*** End Patch")
    assert isinstance(section, UpdateFile)
    return (section,)


def applied(text: str | bytes, body: str) -> tuple[str, int]:
    data = text if isinstance(text, bytes) else text.encode()
    (section,) = hunks_of(body)
    file, fuzz = apply(section.hunks, FileText.from_bytes(Path("f"), data), "f")
    return file.data.decode(), fuzz


def refusal(text: str, body: str) -> str:
    with pytest.raises(DiffError) as raised:
        applied(text, body)
    return str(raised.value)


@pytest.mark.parametrize(
    ("text", "body", "result"),
    [
        ("a\nb\n", "@@\n a\n-b\n+B", ("a\nB\n", 0)),
        ("a  \nb\n", "@@\n a\n-b\n+B", ("a  \nB\n", 1)),
        ("  a\nb\n", "@@\n a\n-b\n+B", ("  a\nB\n", 100)),
        ("  a\n\ta\n", "@@\n a\n+b", ("  a\nb\n\ta\n", 100)),
        ("  a\na \na\n", "@@\n-a", ("  a\na \n", 0)),
        ("a\nb \nx\n b\n", "@@\n a\n-b\n+c\n@@\n x\n-b\n+c", ("a\nc\nx\nc\n", 101)),
    ],
)
def test_fuzz_says_how_loosely_it_matched(text: str, body: str, result: tuple[str, int]) -> None:
    assert applied(text, body) == result


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("a\nb", ("a\nB", 0)),
        ("a\nb\n", ("a\nB\n", 0)),
        ("a\nb \n", ("a\nB\n", 1)),
        ("b\nb\n", ("b\nB\n", 0)),
        ("b\nc\n", ("B\nc\n", 10_000)),
        (" b\nc\n", ("B\nc\n", 10_100)),
    ],
)
def test_end_of_file_prefers_the_end(text: str, result: tuple[str, int]) -> None:
    assert applied(text, "@@\n-b\n+B\n*** End of File") == result


@pytest.mark.parametrize(
    ("text", "result"), [("", "x\n"), ("a", "a\nx"), ("a\n", "a\nx\n"), ("a\n\n", "a\n\nx\n")]
)
def test_a_line_added_at_the_end(text: str, result: str) -> None:
    assert applied(text, "@@\n+x\n*** End of File") == (result, 0)


def test_a_hunk_without_lines_that_were_there_adds_at_the_cursor() -> None:
    assert applied("a\nb\n", "@@\n+x") == ("x\na\nb\n", 0)
    assert applied("a\nb\n", "@@ a\n+x") == ("a\nx\nb\n", 0)
    assert applied("a\nb", "@@ b\n+x") == ("a\nb\nx", 0)
    assert applied("", "@@\n+x") == ("x\n", 0)


@pytest.mark.parametrize(
    ("anchor", "result"),
    [
        ("f:", ("x\nf:\n y\n g:\nx\n", 0)),
        ("g:", ("x\nf:\nx\n g:\n y\n", 1)),
        ("no such line", (" y\nf:\nx\n g:\nx\n", 0)),
    ],
)
def test_an_anchor_is_looked_for_exactly_then_stripped_then_ignored(
    anchor: str, result: tuple[str, int]
) -> None:
    assert applied("x\nf:\nx\n g:\nx\n", f"@@ {anchor}\n-x\n+ y") == result


def test_an_anchor_above_the_cursor_moves_nothing() -> None:
    text, body = "f:\nx\ny\nf:\ny\n", "@@ f:\n-x\n@@ f:\n-y"
    assert applied(text, body) == ("f:\nf:\ny\n", 0)


def test_hunks_go_downwards_and_do_not_overlap() -> None:
    assert refusal("1\n2\n", "@@\n-2\n@@\n-1").startswith("Invalid Context 2:\n1\n")
    assert refusal("1\n2\n3\n", "@@\n 1\n-2\n@@\n-2\n+3").startswith("Invalid Context 2:\n2\n")
    assert applied("x\nx\nx\n", "@@\n-x\n@@\n-x\n+y") == ("y\nx\n", 0)


def test_what_has_no_place_is_told_with_the_file() -> None:
    told = "f does not hold these lines, one below the other, from line 1 on. No file was changed."
    assert refusal("a\n", "@@\n a\n-b") == f"Invalid Context 0:\na\nb\n\n{told}"
    body = "@@\n-b\n*** End of File"
    assert refusal("a\n", body) == f"Invalid EOF Context 0:\nb\n\n{told}"
    assert refusal("a", "@@\n a\n b\n c\n*** End of File").startswith("Invalid EOF Context 0:")


@pytest.mark.parametrize("text", ["a\nb\n", "a\nb", "a", ""])
def test_a_file_can_be_emptied(text: str) -> None:
    body = "@@\n" + "\n".join(f"-{line}" for line in text.split("\n"))
    assert applied(text, body) == ("", 0)


def test_untouched_endings_stay_and_new_lines_take_those_of_their_neighbours() -> None:
    mixed = b"a\r\nb\nc\r\nd\n"
    assert applied(mixed, "@@\n a\n+new\n b\n-c\n+C\n d\n+e") == ("a\r\nnew\nb\nC\r\nd\ne\n", 0)
    assert applied(b"a\rb\rc", "@@\n-b\n+B\n+b") == ("a\rB\rb\rc", 0)


@given(st.lists(st.sampled_from(["keep", "drop", "change", "double"]), min_size=1), st.booleans())
def test_hunks_of_one_line_each(fates: list[str], ended: bool) -> None:
    fates += ["keep"] if ended else []
    old = [*map(str, range(len(fates) - ended)), *([""] if ended else [])]
    body: list[str] = []
    new: list[str] = []
    for fate, line in zip(fates, old, strict=True):
        added = {"keep": [line], "drop": [], "change": ["x"], "double": ["x", "y"]}[fate]
        new += added
        if fate != "keep":
            body += ["@@", f"-{line}", *(f"+{each}" for each in added)]
    if body:
        assert applied("\n".join(old), "\n".join(body)) == ("\n".join(new), 0)


def patch_body(old: list[str], new: list[str], context: int) -> str:
    """The hunks that turn `old` into `new`; where their place would not be clear, all lines."""
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    rows: list[str] = []
    cursor = 0
    for group in matcher.get_grouped_opcodes(context):
        first, stop = group[0][1], group[-1][2]
        wanted = old[first:stop]
        places = [at for at in range(cursor, len(old)) if old[at : at + len(wanted)] == wanted]
        start = first if wanted and places[0] == first else cursor
        rows += ["@@", *(f" {line}" for line in old[start:first])]
        for tag, i1, i2, j1, j2 in group:
            if tag == "equal":
                rows += [f" {line}" for line in old[i1:i2]]
            else:
                rows += [f"-{line}" for line in old[i1:i2]]
                rows += [f"+{line}" for line in new[j1:j2]]
        cursor = stop
    return "\n".join(rows)


@pytest.mark.repeated
@pytest.mark.timeout(1800)
@settings(max_examples=count(300, long=20_000), deadline=None)
@given(
    st.lists(LINE, min_size=1, max_size=12),
    st.lists(LINE, min_size=1, max_size=12),
    st.data(),
)
def test_a_patch_made_from_two_texts_turns_one_into_the_other(
    old: list[str], inserted: list[str], data: st.DataObject
) -> None:
    kept = data.draw(st.lists(st.sampled_from(range(len(old))), unique=True).map(sorted))
    new = [old[at] for at in kept]
    at = data.draw(st.integers(0, len(new)))
    new[at:at] = inserted
    ending = data.draw(st.sampled_from(["\n", "\r\n"]))
    charset = data.draw(st.sampled_from(CHARSETS))
    body = patch_body(old, new, data.draw(st.integers(0, 3)))
    if not body:
        return
    (section,) = hunks_of(body)
    file, fuzz = apply(section.hunks, file_of(old, ending, charset), "f")
    assert (file.text, fuzz) == ("\n".join(new), 0)
    if len(old) > 1:  # else nothing says which ending the file would have
        assert file.data == file_of(new, ending, charset).data


def file_of(lines: list[str], ending: str, charset: Charset) -> FileText:
    return FileText(Path("f"), charset.mark + charset.encode(ending.join(lines)), charset)


@pytest.mark.timeout(30)  # comparing the lines place by place took minutes
def test_a_long_hunk_in_a_long_file_is_looked_for_in_bounded_time() -> None:
    lines = [f"line {n}" for n in range(60_000)]
    file = file_of(lines, "\n", CHARSETS[0])
    kept = "\n".join(f" {line}" for line in lines[:30_000])
    with pytest.raises(DiffError):
        apply(hunks_of(f"{kept}\n-nowhere\n+x")[0].hunks, file, "f")
    many = "\n".join(f"@@ line {n}\n-line {n + 1}\n+x" for n in range(0, 60_000, 60))
    edited, fuzz = apply(hunks_of(many)[0].hunks, file, "f")
    assert (edited.text.count("\nx\n"), fuzz) == (1000, 0)


def test_blank_lines_before_what_follows_a_hunk_need_not_be_there() -> None:
    file = file_of(["a", "b", "c", ""], "\n", CHARSETS[0])
    body = " a\n-b\n+B\n\n\n@@\n-c\n+C\n"
    edited, fuzz = apply(hunks_of(body)[0].hunks, file, "f")
    assert (edited.text, fuzz) == ("a\nB\nC\n", 1)  # the last hunk's blank line is there
    with pytest.raises(DiffError):
        apply(hunks_of(" a\n-\n+B")[0].hunks, file, "f")
    only = apply(hunks_of("+new\n\n")[0].hunks, file_of(["x"], "\n", CHARSETS[0]), "f")
    assert only[0].text == "new\nx"
