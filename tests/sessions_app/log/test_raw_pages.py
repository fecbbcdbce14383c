"""A raw log page by page: each byte once, masked across the edges of pages, and no more in memory than a page."""

from __future__ import annotations

import tracemalloc

from sessions_app.log.entries import MARGIN, PAGE_BYTES, raw_page
from tests.support.credentials import sentences

GITHUB = next(value for value in sentences() if value.startswith("gh" + "p_"))


def test_each_byte_is_on_one_page(tmp_path):
    path = tmp_path / "log.jsonl"
    text = "".join(f'{{"n": {number}}}\n' for number in range(40_000))
    path.write_text(text)
    first = raw_page(path, 1)
    pages = [raw_page(path, number) for number in range(1, first.last + 1)]
    assert "".join(page.text for page in pages) == text
    assert [page.start for page in pages[1:]] == [page.end for page in pages[:-1]]
    assert pages[-1].end == first.size == len(text)
    assert raw_page(path, 99).number == first.last


def test_an_empty_log_has_one_empty_page(tmp_path):
    path = tmp_path / "log.jsonl"
    path.touch()
    page = raw_page(path, 1)
    assert (page.text, page.number, page.last, page.size) == ("", 1, 1, 0)


def test_a_credential_at_the_edge_of_a_page_is_masked_on_both(tmp_path):
    path = tmp_path / "log.jsonl"
    for before in range(PAGE_BYTES - len(GITHUB), PAGE_BYTES + 1, 7):
        path.write_text("x" * (before - 1) + " " + GITHUB + " " + "y" * MARGIN)
        shown = raw_page(path, 1).text + raw_page(path, 2).text
        assert len(shown) == before + len(GITHUB) + 1 + MARGIN
        assert GITHUB[8:20] not in shown


def test_a_page_of_a_huge_line_reads_only_itself(tmp_path):
    path = tmp_path / "log.jsonl"
    with path.open("wb") as file:
        file.truncate(500 * 1024 * 1024)
    tracemalloc.start()
    page = raw_page(path, 2000)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert page.last == 4000
    assert peak < 8 * 1024 * 1024
