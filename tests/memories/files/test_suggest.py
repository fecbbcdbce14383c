"""What is suggested for agents' files, and why; the same rows give the same suggestions."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from memories.files import suggest
from memories.files.document import parse
from memories.files.limits import Limits, exceeded
from memories.files.sections import sections_for
from memories.files.suggest import Line
from memories.taxonomy import AGENT

AT = datetime(2026, 1, 5, tzinfo=UTC)
NUMBERS = iter(range(1, 100_000))


def line(text: str, agent: str = "qa", category: str = "mistake", confidence: float = 0.7, days: int = 0) -> Line:
    section = sections_for(agent).section_of(category)
    return Line(next(NUMBERS), agent, category, section, text, confidence, AT + timedelta(days=days))


def texts(lines: list[Line]) -> list[tuple[str, ...]]:
    return [(one.target.text, *(other.text for other in one.others)) for one in suggest.joins(lines)]


def test_entries_that_say_nearly_the_same_are_offered_to_be_joined_into_the_surest() -> None:
    older = line("Run `make lint` before each push")
    surer = line("Run make lint before every push", confidence=0.9)
    assert texts([older, line("Backups are kept for 35 days"), surer]) == [(surer.text, older.text)]
    (found,) = suggest.joins([older, surer])
    assert found.why


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The suite takes 4 minutes", "The suite takes 9 minutes"),
        ("Restart web-1 before web-2", "Restart web-2 before web-1"),
        ("Deploys run from the tag, not from main", "Deploys run from main, not from the tag"),
        ("Backups are kept for 35 days", "Screenshots are kept for 35 days"),
    ],
)
def test_what_contradicts_or_is_of_another_thing_is_not_offered(one: str, other: str) -> None:
    assert texts([line(one), line(other)]) == []


def test_entries_of_another_agent_or_type_cannot_be_joined() -> None:
    text = "Run `make lint` before each push"
    assert texts([line(text), line(text, agent="ops"), line(text, category="guideline")]) == []


def test_suggestions_do_not_depend_on_the_order_of_the_rows() -> None:
    rows = [line("Tests need the queue"), line("The tests need the queue to run"), line("The tests need the queue")]
    assert texts(rows) == texts(rows[::-1]) == [(rows[0].text, rows[1].text, rows[2].text)]


def test_what_several_agents_know_alike_is_offered_to_the_project() -> None:
    qa, ops = line("Tests need the queue"), line("The tests need the queue to run", agent="ops")
    (found,) = suggest.cross_ref([qa, line("Backups are kept for 35 days"), ops])
    assert (found.best, found.others, found.agents, found.category) == (qa, (ops,), ("ops", "qa"), "warning")
    assert suggest.cross_ref([qa, ops], ["The queue is needed", "The tests need the queue"]) == []
    assert suggest.cross_ref([qa, line("The tests need the queue")]) == []


def test_a_file_beyond_its_limits_would_lose_what_ranks_lowest() -> None:
    limits = Limits.of({"items": 2, "line": 60})
    rows = [line(f"Fact number {n} of the suite", confidence=n / 10) for n in range(1, 5)] + [line("x" * 80)]
    text = "## Common Mistakes to Avoid\n" + "".join(f"- {row.text}\n" for row in rows)
    document = parse(text.encode())
    found = suggest.leaving(document, rows, limits)
    assert {one.line.text: one.why for one in found} == {
        rows[0].text: "more than 2 items in Common Mistakes to Avoid",
        rows[1].text: "more than 2 items in Common Mistakes to Avoid",
        rows[4].text: "longer than 60 characters",
    }
    kept = [row for row in rows if row not in [one.line for one in found]]
    left = parse(("## Common Mistakes to Avoid\n" + "".join(f"- {row.text}\n" for row in kept)).encode())
    assert exceeded(document, limits) and not exceeded(left, limits)


def test_a_section_with_a_comment_or_code_in_it_is_not_empty() -> None:
    document = parse(b"## A\n\n## B\n<!-- mine -->\n\n## C\n```\n```\n\n## D\n- one\n\n## E\n\n")
    empty = suggest.empty_sections(document, ["e"])
    assert [section.name for section in empty] == ["A"]
    assert suggest.without_sections(document, empty).to_bytes().startswith(b"## B\n<!-- mine -->\n")
    last = parse(b"## D\n- one\n\n## E\n\n")
    assert suggest.without_sections(last, suggest.empty_sections(last, [])).to_bytes() == b"## D\n- one\n"


def test_a_line_that_repeats_one_of_its_section_is_found() -> None:
    assert suggest.repeated(parse(b"## A\n- one\n- two\n- ONE\n## B\n- one\n")) == [2]


# Where a text goes.

AGENTS = {name: sections_for(name) for name in ("engineer", "ops", "qa")}
LINES = [
    line("The checkout test is slow because the sandbox of the bank is", agent="qa"),
    line("Test accounts are reset on Mondays", agent="qa"),
    line("Restart web-1 before web-2", agent="ops"),
    line("Services return dataclasses", agent="engineer", category="pattern"),
]


def test_a_text_goes_to_the_agent_whose_memories_speak_of_it_and_the_route_says_why() -> None:
    best, *_ = suggest.route("Never use the sandbox of the bank on a Monday", AGENTS, LINES)
    assert (best.agent, best.category, best.section) == ("qa", "mistake", "Common Mistakes to Avoid")
    assert '"bank"' in best.why and '"Never" speaks for the type mistake' in best.why


def test_a_text_about_what_nobody_knows_goes_by_what_agents_of_a_name_do() -> None:
    best, *_ = suggest.route("Rollback of a deploy takes 90 seconds", AGENTS, [])
    assert (best.agent, best.category) == ("ops", "performance")
    assert best.why.startswith('"')


def test_a_text_that_no_agent_is_near_to_has_no_route() -> None:
    assert suggest.route("Zebras are striped", AGENTS, LINES) == []
    assert suggest.route("", AGENTS, LINES) == []


def test_an_engineer_s_pattern_goes_to_its_own_section() -> None:
    best, *_ = suggest.route("The factory pattern: services return dataclasses", AGENTS, LINES)
    assert (best.agent, best.section) == ("engineer", "Implementation Patterns")


def test_the_table_of_routes_names_types_that_exist() -> None:
    assert set(suggest._routes()["types"]) <= set(AGENT.categories)
