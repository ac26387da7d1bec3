"""How does the model's Markdown become HTML that can do nothing but be read?

Raw HTML in it is shown as text, links lead to http, https and mailto only, and images (which a
page would fetch by itself, telling their server so) become links.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from oh_kernel.views.escape import escape, printable

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.renderer import RendererHTML
    from markdown_it.token import Token
    from markdown_it.utils import EnvType, OptionsDict

_SCHEMES = frozenset({"http", "https", "mailto"})


def markdown_to_html(text: str) -> str:
    """The Markdown as HTML without anything active in it."""
    return str(_parser().render(printable(text)))


def inert_markdown(text: str) -> str:
    """The Markdown with its HTML as text and its images as links, for whoever else renders it.

    >>> inert_markdown("see <b>this</b> and `<i>`")
    'see &lt;b>this&lt;/b> and `<i>`'
    >>> print(inert_markdown("![a plot](http://example.com/p.png)"))
    \\![a plot](http://example.com/p.png)
    """
    if "<" not in text and "![" not in text:
        return text
    lines = text.split("\n")
    for token in _html_parser().parse(text):
        first, stop = token.map or (0, 0)
        if token.type == "html_block":
            lines[first:stop] = [line.replace("<", "&lt;") for line in lines[first:stop]]
        tags = [child.content for child in token.children or () if child.type == "html_inline"]
        for tag in dict.fromkeys("\n".join(tags).split("\n") if tags else ()):
            shown = tag.replace("<", "&lt;")
            lines[first:stop] = [line.replace(tag, shown) for line in lines[first:stop]]
        if any(child.type == "image" for child in token.children or ()):
            lines[first:stop] = [line.replace("![", "\\![") for line in lines[first:stop]]
    return "\n".join(lines)


@lru_cache(maxsize=1)
def _html_parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark")


@lru_cache(maxsize=1)
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt  # some 30 ms

    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    parser.validateLink = _is_harmless  # type: ignore[method-assign]  # its documented hook
    parser.add_render_rule("image", _image_as_link)
    return parser


def _is_harmless(url: str) -> bool:
    try:
        return urlsplit(url.strip()).scheme.lower() in _SCHEMES
    except ValueError:
        return False


def _image_as_link(
    renderer: RendererHTML,
    tokens: Sequence[Token],
    index: int,
    options: OptionsDict,
    env: EnvType,
) -> str:
    token = tokens[index]
    source = str(token.attrGet("src") or "")
    return f'<a href="{escape(source)}">{escape(token.content or source)}</a>'
