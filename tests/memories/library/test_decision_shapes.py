"""Decision records in the shapes that MADR 2 to 4, adr-tools and log4brains write, and edits in place."""

from __future__ import annotations

from datetime import date

from hypothesis import given
from hypothesis import strategies as st

from memories.library.decisions.record import STATUSES, Draft, Record, canonical, parse, with_status, written

MADR4 = "---\nstatus: {}\ndate: 2024-10-08\ndecision-makers: [Ada, Jonas]\n---\n\n# Use Markdown\n\n## Context\n"
MADR3 = '---\nstatus: "{}"\ndate: 2022-10-08\ndeciders: Ada, Jonas\nconsulted: Eve\n---\n# Use Markdown\n\n## Context\n'
MADR2 = (
    "# Use Markdown\n\n* Status: {}\n* Deciders: Ada, Jonas\n* Date: 2020-01-02\n\n## Context and Problem Statement\n"
)
TOOLS = "# 7. Use Markdown\n\nDate: 2016-02-12\n\n## Status\n\n{}\n\n## Context\n\nText.\n"
BRAINS = "# Use Markdown\n\n- Status: {}\n- Date: 2020-09-24\n- Tags: dev, doc\n\n## Context\n"

SHAPES: tuple[tuple[str, str, str, int | None, tuple[str, ...], tuple[str, ...]], ...] = (
    # name, text, status, number, supersedes, superseded by
    ("0007-use-markdown.md", MADR4.format("accepted"), "accepted", 7, (), ()),
    ("0007-use-markdown.md", MADR4.format("proposed"), "proposed", 7, (), ()),
    ("0007-use-markdown.md", MADR4.format("rejected"), "rejected", 7, (), ()),
    ("0007-use-markdown.md", MADR4.format("deprecated"), "deprecated", 7, (), ()),
    ("0007-use-markdown.md", MADR4.format('"superseded by ADR-0123"'), "superseded", 7, (), ("123",)),
    ("0007-use-markdown.md", MADR4.format("superseded\nsuperseded-by: 9"), "superseded", 7, (), ("9",)),
    ("0007-use-markdown.md", MADR4.format("accepted\nsupersedes: [3, 4]"), "accepted", 7, ("3", "4"), ()),
    ("0007-use-markdown.md", MADR4.format("Accepted").replace("\n", "\r\n"), "accepted", 7, (), ()),
    ("0007-use-markdown.md", MADR3.format("accepted"), "accepted", 7, (), ()),
    ("0007-use-markdown.md", MADR3.format("superseded by [ADR-0005](0005-example.md)"), "superseded", 7, (), ("5",)),
    ("0007-use-markdown.md", MADR3.format("{proposed | rejected | accepted}"), "", 7, (), ()),
    ("adr-0007.md", MADR3.format("proposed"), "proposed", 7, (), ()),
    ("ADR-007-use-markdown.md", MADR3.format("deprecated"), "deprecated", 7, (), ()),
    ("0007-use-markdown.md", MADR2.format("accepted"), "accepted", 7, (), ()),
    ("0007-use-markdown.md", MADR2.format("superseded by [ADR-0012](0012-x.md)"), "superseded", 7, (), ("12",)),
    ("0007-use-markdown.md", MADR2.format("deprecated").replace("* ", "- "), "deprecated", 7, (), ()),
    ("7.md", MADR2.format("draft"), "proposed", 7, (), ()),
    ("0007-use-markdown.md", MADR2.format("accepted, superseded by ADR 12"), "superseded", 7, (), ("12",)),
    ("0007-use-markdown.md", TOOLS.format("Accepted"), "accepted", 7, (), ()),
    ("0007-use-markdown.md", TOOLS.format("Proposed"), "proposed", 7, (), ()),
    ("0007-use-markdown.md", TOOLS.format("Superseded by [12. Use X](0012-use-x.md)"), "superseded", 7, (), ("12",)),
    ("0007-use-markdown.md", TOOLS.format("Superceded by [12. Use X](0012-use-x.md)"), "superseded", 7, (), ("12",)),
    (
        "0007-use-markdown.md",
        TOOLS.format("Accepted\n\nSupersedes [2. Use X](0002-use-x.md)"),
        "accepted",
        7,
        ("2",),
        (),
    ),
    (
        "0007-use-markdown.md",
        TOOLS.format("Accepted\n\nSupercedes [2. A](0002-a.md)\n\nSuperceded by [9. B](0009-b.md)"),
        *("superseded", 7, ("2",), ("9",)),
    ),
    ("0007-use-markdown.md", TOOLS.format("Deprecated"), "deprecated", 7, (), ()),
    ("0007-use-markdown.md", TOOLS.format("Accepted").replace("# 7. ", "# ADR 7: "), "accepted", 7, (), ()),
    ("0007-use-markdown.md", TOOLS.format("Accepted").replace("# 7. ", "# ADR-007: "), "accepted", 7, (), ()),
    ("0007-use-markdown.md", TOOLS.format("Accepted").replace("\n\n", "\n"), "accepted", 7, (), ()),
    ("0007-use-markdown.md", TOOLS.format("Accepted").replace("## Status", "## Status:"), "accepted", 7, (), ()),
    ("0007-use-markdown.md", TOOLS.format("Implemented"), "shipped", 7, (), ()),
    ("0007-use-markdown.md", TOOLS.format("* Accepted on 2020-01-02"), "accepted", 7, (), ()),
    ("0007-use-markdown.md", TOOLS.format("**Approved**"), "accepted", 7, (), ()),
    ("20200924-use-markdown.md", BRAINS.format("draft"), "proposed", None, (), ()),
    ("20200924-use-markdown.md", BRAINS.format("accepted"), "accepted", None, (), ()),
    (
        "20200924-use-markdown.md",
        BRAINS.format("superseded by [20210101-use-asciidoc](20210101-use-asciidoc.md)"),
        *("superseded", None, (), ("20210101-use-asciidoc.md",)),
    ),
    ("use-markdown.md", BRAINS.format("rejected"), "rejected", None, (), ()),
    ("adr-007-z.md", "# ADR 7: Use Markdown\n\n**Status**: Approved\n**Date:** 2021-01-01\n", "accepted", 7, (), ()),
    ("0007-z.md", "# Use Markdown\n\nStatus: Rolled out\nDate: 2021-01-01\n\n## Context\n", "", 7, (), ()),
    ("0007-z.md", "# Use Markdown\n\n__Status:__ Won't fix\n__Date:__ 2021-01-01\n", "", 7, (), ()),
    ("0007-z.md", "# Use Markdown\n\n## Status\n\nDone\n\n## Date\n\nDate: 2021-01-01\n", "shipped", 7, (), ()),
)


def test_forty_shapes_are_read_as_they_are():
    assert len(SHAPES) == 40
    for name, text, status, number, supersedes, superseded_by in SHAPES:
        one = parse(name, text.encode())
        assert (one.status, one.number) == (status, number), text
        assert (one.supersedes, one.superseded_by) == (supersedes, superseded_by), text
        assert one.title == "Use Markdown", text
        assert bool(one.problems) == (not status), (text, one.problems)
        if "Jonas" in text:
            assert one.deciders == ("Ada", "Jonas"), text


def test_an_edit_changes_the_status_and_nothing_else():
    """What is there stays byte for byte; the record then says the new status, and no other shape appears."""
    for name, text, _, number, _, _ in SHAPES:
        before = text.encode()
        after = with_status(before, "deprecated")
        one = parse(name, after)
        assert (one.status or "superseded") in ("deprecated", "superseded"), after.decode()
        assert one.number == number
        kept = [line for line in before.splitlines(keepends=True) if line in after.splitlines(keepends=True)]
        assert len(kept) >= len(before.splitlines()) - 1, after.decode()
        assert with_status(after, "deprecated") == after, "the same edit twice"
    same = TOOLS.format("accepted").encode()
    assert with_status(same, "accepted") == same


def test_a_link_is_written_in_the_shape_of_its_record():
    for name, text, status, _, _, _ in SHAPES:
        if status in ("superseded", ""):
            continue
        after = with_status(text.encode(), "superseded", link=("superseded_by", "15. Z", "0015-z.md"))
        one = parse(name, after)
        assert (one.status, one.superseded_by) == ("superseded", ("15",)), after.decode()
        later = parse(name, with_status(text.encode(), status, link=("supersedes", "2. A", "0002-a.md")))
        assert "2" in later.supersedes and later.status == status, text


def test_a_list_of_links_over_several_lines_gets_one_more():
    before = b"---\nstatus: accepted\nsupersedes:\n  - 3\n  - 4\ntags: [a]\n---\n# X\n"
    after = with_status(before, "accepted", link=("supersedes", "9. Y", "0009-y.md"))
    assert after == before.replace(b"  - 4\n", b"  - 4\n  - 9\n")
    assert parse("0010-x.md", after).supersedes == ("3", "4", "9")


def test_the_words_of_a_status():
    for word, status in {
        "Accepted": "accepted",
        "ACCEPTED ✅": "accepted",
        "In review": "proposed",
        "superseded by ADR-12": "superseded",
        "Not accepted": "rejected",
        "accepted on 2020-01-02 by Ada": "accepted",
        "obsolete": "deprecated",
        "live": "shipped",
        "Frobnicated": "",
        "": "",
    }.items():
        assert canonical(word) == status, word


def test_what_a_record_governs_is_named_or_found_in_its_text():
    named = b"---\nstatus: accepted\npaths: [src/payments/**, 'docs/*.md']\nservices: [shop]\n---\n# X\n\n`a/b`\n"
    one = parse("1.md", named)
    assert (one.paths, one.services) == (("src/payments/**", "docs/*.md"), ("shop",))
    found = parse(
        "1.md", b"# X\n\n- Status: accepted\n\nAll of `src/payments/` and `infra/proxy/Caddyfile`.\n\n```\n`x/y`\n```\n"
    )
    assert found.paths == ("src/payments/**", "infra/proxy/Caddyfile")


def test_what_cannot_be_read_is_a_problem_and_no_error():
    for data, word in (
        (b"\xff\xfe\x00", "cannot be read"),
        (b"---\nstatus: [accepted\n---\n# X\n", "no YAML"),
        (b"---\nstatus: &a [*a]\n---\n# X\n", "no YAML"),
        (b"---\nstatus: !!python/object/apply:os.system [ls]\n---\n# X\n", "no YAML"),
        (b"# X\n\n<<<<<<< HEAD\n- Status: accepted\n=======\n- Status: rejected\n>>>>>>> b\n", "merge conflict"),
        (b"# X\n", "no status"),
        (b"", "no status"),
    ):
        assert any(word in one for one in parse("1.md", data).problems), data


@given(st.binary(max_size=400), st.sampled_from(list(STATUSES)))
def test_whatever_stands_there_is_read_and_edited_without_an_error(data, status):
    one = parse("0001-x.md", data)
    assert isinstance(one, Record)
    if not any("cannot be read" in why for why in one.problems):
        assert parse("0001-x.md", with_status(data, status)).status in (status, "superseded")


@given(st.text(max_size=60), st.lists(st.text(max_size=20), max_size=3))
def test_a_record_of_ours_is_read_as_it_was_written(title, tags):
    one = parse(
        "0003-x.md", written(Draft(3, title, date(2026, 11, 28), "accepted", tags=tags, supersedes=[1])).encode()
    )
    assert (one.status, one.day, one.supersedes, one.number) == ("accepted", date(2026, 11, 28), ("1",), 3)
