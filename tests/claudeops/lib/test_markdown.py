"""What an agent wrote, shown safely."""

from __future__ import annotations

from html.parser import HTMLParser

from hypothesis import given
from hypothesis import strategies as st

from claudeops.lib.markdown import ATTRIBUTES, LONGEST, TAGS, render


class Seen(HTMLParser):
    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[tuple[str, str]] = set()
        self.links: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes |= {(tag, name) for name, _ in attrs}
        self.links += [value or "" for name, value in attrs if name in ("href", "src")]


def test_markdown_becomes_what_it_means():
    html = render(
        "# Found\n\nA **slow** service, `caddy`.\n\n- one\n- two\n\n| a | b |\n|--|--:|\n| 1 | 2 |\n\n~~gone~~"
    )
    assert "<h3>Found</h3>" in html
    assert "<strong>slow</strong>" in html
    assert "<code>caddy</code>" in html
    assert html.count("<li>") == 2
    assert "<td>2</td>" in html
    assert "<s>gone</s>" in html


def test_raw_html_is_shown_as_text_and_does_nothing():
    html = render('<script>alert(1)</script> <img src=x onerror="alert(1)"> <b style="x">b</b>')
    assert not {"script", "img", "b"} & Seen(html).tags
    assert "&lt;script&gt;" in html


def test_an_image_is_not_fetched():
    seen = Seen(render("![look](https://tracker.example/x.png) ![data](data:image/png;base64,AAAA)"))
    assert "img" not in seen.tags


def test_a_link_goes_to_the_web_or_a_mailbox_and_nowhere_else():
    seen = Seen(
        render(
            "[a](https://example.org) [b](javascript:alert(1)) [c](data:text/html,x) [d](mailto:a@example.org) "
            "[e](JaVaScRiPt:alert(1)) [f](vbscript:x) <javascript:alert(1)>"
        )
    )
    assert set(seen.links) == {"https://example.org", "mailto:a@example.org"}
    assert ("a", "rel") in seen.attributes


def test_headings_stay_under_those_of_the_page():
    assert not {"h1", "h2"} & Seen(render("# one\n## two\n###### six\n\nunderlined\n===")).tags


def test_a_very_long_text_is_cut_and_says_so():
    html = render("word " * LONGEST)
    assert f"Cut after {LONGEST:,} characters" in html


@given(st.text(max_size=400))
def test_no_text_leads_out_of_what_is_allowed(text):
    seen = Seen(render(text))
    assert seen.tags <= TAGS
    allowed = {(tag, name) for tag, names in ATTRIBUTES.items() for name in names} | {("a", "rel")}
    assert seen.attributes <= allowed


def test_deep_nesting_comes_back_in_good_time():
    assert render("> " * 2000 + "deep")
    assert render("[" * 10_000)
    assert render("*a **b " * 5_000)
