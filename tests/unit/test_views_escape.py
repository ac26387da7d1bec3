"""Text that nobody vouches for is shown as it is, and does nothing."""

from __future__ import annotations

import doctest

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from oh_kernel.views import ansi, approval, calls, escape, linediff, markdown, rendered, static
from oh_kernel.views.ansi import ansi_to_html
from oh_kernel.views.highlight import code_to_html
from oh_kernel.views.markdown import inert_markdown, markdown_to_html
from tests.unit.shown import Shown

VISIBLE = st.text(
    st.characters(exclude_categories=("Cc", "Cs"), exclude_characters=escape.BIDI_CONTROLS)
)


@pytest.mark.parametrize(
    "module", [ansi, approval, calls, escape, linediff, markdown, rendered, static]
)
def test_examples_in_docstrings(module: object) -> None:
    results = doctest.testmod(module)  # type: ignore[arg-type]  # modules are objects here
    assert results.attempted and not results.failed


@given(VISIBLE)
def test_escaped_text_reads_the_same(text: str) -> None:
    assert Shown(f"<p>{escape.escape(text)}</p>").text == text
    assert Shown(f"<pre><code>{ansi_to_html(text)}</code></pre>").text == text
    assert Shown(f"<pre><code>{code_to_html(text, 'python')}</code></pre>").text == text


def test_controls_and_lone_surrogates_get_a_picture() -> None:
    assert escape.printable("a\x00\x1b[2J\x7f\ud800\tb\n") == "a␀␛[2J␡\ufffd\tb\n"


def test_direction_of_writing_cannot_be_turned() -> None:
    shown = escape.printable("rm \u202e/home\u2066 \u05d0")
    assert shown == "rm \ufffd/home\ufffd \u05d0"


def test_colours_become_spans_and_other_sequences_go() -> None:
    text = "\x1b]0;title\x07\x1b[2K\x1b[1;31mbad\x1b[22m \x1b[38;5;196mred\x1b[0m <b>"
    html = ansi_to_html(text)
    assert Shown(html).text == "bad red <b>"
    assert "font-weight:bold" in html and "#ff0000" in html


def test_unfinished_colour_codes_do_no_harm() -> None:
    assert (
        Shown(ansi_to_html("\x1b[38;5ma\x1b[38;2;1mb\x1b[48;5;1mc\x1b[;;md\x1b[")).text[:4]
        == "abcd"
    )


def test_long_text_keeps_both_ends_and_says_how_much_is_missing() -> None:
    text = "\n".join(f"line {n}" for n in range(10_000))
    clipped = escape.clip(text, max_lines=10, max_chars=10_000)
    assert clipped.text.splitlines()[0] == "line 0"
    assert clipped.text.splitlines()[-1] == "line 9999"
    assert "9,990 lines left out" in clipped.text
    assert f"{len(text):,}" in clipped.note
    one_line = escape.clip("x" * 10**6, max_lines=10, max_chars=1_000)
    assert len(one_line.text) < 1_100 and "1,000 of 1,000,000" in one_line.note
    assert escape.clip("short", max_lines=1, max_chars=5) == ("short", "")


@pytest.mark.parametrize(
    "source",
    [
        "[a](javascript:alert(1))",
        "[a](JaVaScRiPt:alert(1))",
        "[a](java\tscript:alert(1))",
        "[a](&#106;avascript:alert(1))",
        "[a](data:text/html,<script>1</script>)",
        "[a](vbscript:x)",
        "[a](file:///etc/passwd)",
        "<javascript:alert(1)>",
        "[a]: javascript:alert(1)\n\n[a]",
        "![a](javascript:alert(1))",
    ],
)
def test_links_lead_nowhere_but_to_the_web_and_mail(source: str) -> None:
    assert Shown(markdown_to_html(source)).links == []


def test_markdown_keeps_good_links_and_shows_html_as_text() -> None:
    shown = Shown(markdown_to_html("[a](https://x.org) <img src=x> ![pic](https://x.org/p.png)"))
    assert shown.links == ["https://x.org", "https://x.org/p.png"]
    assert "<img src=x>" in shown.text
    assert "img" not in shown.tags


@pytest.mark.parametrize(
    "text",
    [
        "see <script>alert(4)</script> there",
        "<script>\nalert(4)\n</script>\n\nand",
        "a\n<img src=x\nonerror=alert(1)>\nb",
        "> <svg onload=x>\n\n- <b>bold</b>",
    ],
)
def test_the_markdown_twin_has_no_html_for_other_renderers(text: str) -> None:
    rendered = MarkdownIt("commonmark").render(inert_markdown(text))
    assert Shown(rendered).tags.isdisjoint({"script", "img", "svg", "b"})
    words = {word for word in text.split() if word not in (">", "-")}
    assert all(word in Shown(rendered).text for word in words)


def test_markdown_draws_tables_and_code() -> None:
    shown = Shown(markdown_to_html("| a | b |\n|---|---|\n| 1 | 2 |\n\n```\n<x>\n```\n"))
    assert {"table", "code"} <= shown.tags
    assert "<x>" in shown.text
