"""What a patch asks for, and each way in which a text is none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oh_kernel.tools.patch_grammar import (
    AddFile,
    Chunk,
    DeleteFile,
    DiffError,
    Hunk,
    UpdateFile,
    named_paths,
    parse,
)


def patch(*lines: str) -> str:
    return "\n".join(["*** Begin Patch", *lines, "*** End Patch"])


def refusal(text: str) -> str:
    with pytest.raises(DiffError) as raised:
        parse(text)
    return str(raised.value)


def hunks(*lines: str) -> tuple[Hunk, ...]:
    (section,) = parse(patch("*** Update File: a", *lines))
    assert isinstance(section, UpdateFile)
    return section.hunks


def test_sections_in_their_order() -> None:
    text = patch(
        "*** Add File: dir/new.txt",
        "+one",
        "++two",
        "+",
        "*** Delete File: old name.txt",
        "*** Update File: a.txt",
        "*** Move to: b.txt",
        "@@",
        "-x",
        "+y",
    )
    assert parse(text) == [
        AddFile("dir/new.txt", "one\n+two\n"),
        DeleteFile("old name.txt"),
        UpdateFile("a.txt", "b.txt", (Hunk("", ("x",), (Chunk(0, ("x",), ("y",)),)),)),
    ]


@pytest.mark.parametrize("around", ["{}", "{}\n", "{}\n\n  \n", "{}  "])
def test_blanks_around_the_patch(around: str) -> None:
    assert parse(around.format(patch("*** Delete File: a"))) == [DeleteFile("a")]


def test_a_patch_with_crlf_means_the_same() -> None:
    text = patch("*** Update File: a", "@@ def f():", "-x", "+y", "*** End of File")
    assert parse(text.replace("\n", "\r\n")) == parse(text)
    assert named_paths(text.replace("\n", "\r\n")) == ["a"]


def test_the_first_hunk_needs_no_mark() -> None:
    assert hunks(" keep", "-old", "+new") == hunks("@@", " keep", "-old", "+new")


def test_an_empty_line_is_a_blank_one_that_stays() -> None:
    assert hunks("@@", "", "-old") == hunks("@@", " ", "-old")


def test_anchor_and_end_of_file() -> None:
    (hunk,) = hunks("@@ class A:", " pass", "+more", "*** End of File")
    assert (hunk.anchor, hunk.at_end, hunk.before) == ("class A:", True, ("pass",))


def test_one_chunk_for_lines_that_go_and_come_between_lines_that_stay() -> None:
    (hunk,) = hunks("@@", "-a", "+A", "-b", "+B", " c", "+d", " e", "-f")
    assert hunk.before == ("a", "b", "c", "e", "f")
    assert hunk.chunks == (
        Chunk(0, ("a", "b"), ("A", "B")),
        Chunk(3, (), ("d",)),
        Chunk(4, ("f",), ()),
    )


def test_a_move_alone_and_an_empty_new_file() -> None:
    assert parse(patch("*** Update File: a", "*** Move to: b")) == [UpdateFile("a", "b", ())]
    assert parse(patch("*** Add File: a")) == [AddFile("a", "")]


BEGIN_MISSING = "Invalid patch: must start with '*** Begin Patch'"
NO_MOVE = (
    "Update File Error: Invalid move path '{}': must be a relative path without '..' components"
)


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("", BEGIN_MISSING),
        ("```\n" + patch() + "\n```", BEGIN_MISSING),
        ("\n" + patch(), BEGIN_MISSING),
        ("*** Begin Patch", "Invalid patch text"),
        ("*** Begin Patch\n*** Delete File: a", "Invalid patch text"),
        (patch() + "\n```", "Invalid patch text"),
        (patch("hello"), "Unknown Line: hello"),
        (patch("*** Delete File: a", ""), "Unknown Line: "),
        (patch("*** Update File:"), "Unknown Line: *** Update File:"),
        (patch("*** End Patch", "*** Delete File: a"), "Unknown Line: *** End Patch"),
        (patch("*** Add File: a", "x"), "Invalid Add File Line: x"),
        (patch("*** Update File: a"), "Nothing in this section - index=2 *** End Patch"),
        (patch("*** Update File: a", "@@"), "Nothing in this section - index=3 *** End Patch"),
        (patch("*** Update File: a", "@@", "?"), "Invalid Line: ?"),
        (patch("*** Update File: a", "@@", "*** Nonsense"), "Invalid Line: *** Nonsense"),
        (patch("*** Update File: a", " x", "*** End of File", " y"), "Invalid Line:\n y"),
        (patch("*** Update File: a", " x", "***"), "Invalid Line:\n***"),
        (patch("*** Update File: a", "*** Move to: ../b"), NO_MOVE.format("../b")),
        (patch("*** Update File: a", "*** Move to: b/.."), NO_MOVE.format("b/..")),
        (patch("*** Update File: a", "*** Move to: /b"), NO_MOVE.format("/b")),
        (patch("*** Update File: a", "*** Move to: "), NO_MOVE.format("")),
        (
            patch("*** Add File: a", "*** Delete File: a"),
            "Delete File Error: Duplicate Path: a",
        ),
        (patch("*** Delete File: a", "*** Add File: a"), "Add File Error: Duplicate Path: a"),
        (
            patch("*** Delete File: a", "*** Update File: a", " x"),
            "Update File Error: Duplicate Path: a",
        ),
    ],
)
def test_refusals(text: str, answer: str) -> None:
    assert refusal(text) == answer


LINES = st.sampled_from(
    [
        *(
            "*** Add File: a",
            "*** Delete File: b",
            "*** Update File: c",
            "*** Update File: ",
            "***",
        ),
        *("*** Move to: d", "*** Move to: ", "*** End of File", "*** End Patch", "*** Begin Patch"),
        *("@@", "@@ ", "@@ x", "@@x", "+", "-", " ", "", "+x", "-x", " x", "x", "\r", "+\r", "\t"),
    ]
)


@given(st.lists(LINES | st.text(max_size=5), max_size=12), st.booleans())
def test_any_text_is_a_patch_or_a_diff_error(lines: list[str], framed: bool) -> None:
    text = patch(*lines) if framed else "\n".join(lines)
    try:
        sections = parse(text)
    except DiffError:
        return
    assert {section.path for section in sections} <= set(named_paths(text))


def test_blanks_around_a_path_are_slips() -> None:
    text = "*** Begin Patch\n*** Delete File:  a b.py \t\n*** End Patch"
    assert parse(text) == [DeleteFile("a b.py")]
    assert named_paths(text) == ["a b.py"]
