"""Inspection of an HTML page: its elements, whether they are closed, and the resources that it loads."""

from __future__ import annotations

from html.parser import HTMLParser

_WITHOUT_END = {"meta", "br", "hr", "img", "input", "link"}


class Page(HTMLParser):
    """All elements of a page with their attributes and texts; an unclosed element is an error."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert not self._open, self._open

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag not in _WITHOUT_END:
            self._open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self._open and self._open[-1] == tag, (tag, self._open)
        self._open.pop()

    def handle_data(self, data):
        if self._open:
            self.texts.setdefault(self._open[-1], []).append(data)

    def find_elements(self, tag: str) -> list[dict[str, str | None]]:
        """Return the attributes of all elements of a kind."""
        return [attributes for name, attributes in self.elements if name == tag]

    @property
    def loads(self) -> list[str]:
        """Return all addresses outside the page that a browser would fetch or link to."""
        loading_attributes = {"src", "href", "xlink:href", "action", "data", "poster", "srcset"}
        result = [
            value or ""
            for _, attributes in self.elements
            for name, value in attributes.items()
            if name in loading_attributes
        ]
        styles = " ".join(self.texts.get("style", []))
        external = [address for address in result if not address.startswith("#")]
        return external + [
            word for word in ("@import", "url(http", "url('http", 'url("http') if word in styles
        ]
