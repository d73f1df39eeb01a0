"""Reads a page of HTML: what it opens it closes, and which tags, attributes and words it has."""

from html.parser import HTMLParser

VOID = {"meta", "br", "hr", "img", "link"}


class Page(HTMLParser):
    """Checks nesting, and keeps tags, attributes and text."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.words: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_startendtag(tag, attrs)
        self.open += [] if tag in VOID else [tag]

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        assert self.open, tag
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def page_of(html: str) -> Page:
    """The page; fails where a tag is closed out of order or left open."""
    page = Page()
    page.feed(html)
    page.close()
    assert page.open == []
    return page
