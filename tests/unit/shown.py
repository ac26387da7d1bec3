"""Reads a view's HTML the way a browser does, for tests."""

from __future__ import annotations

from html.parser import HTMLParser


class Shown(HTMLParser):
    """The text that a reader sees, the elements and the links of some HTML."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.text = ""
        self.tags: set[str] = set()
        self.links: list[str] = []
        self.opened: list[bool] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        given = dict(attrs)
        if "href" in given:
            self.links.append(given["href"] or "")
        if tag == "details":
            self.opened.append("open" in given)
        assert not any(name.startswith("on") for name in given), given

    def handle_data(self, data: str) -> None:
        self.text += data
