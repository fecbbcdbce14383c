"""Who supports the words of a statement: each rule and each threshold by a case that can be counted by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memories.capture.support import LONGEST_QUOTE, MOST_QUOTES, NAMES, Evidence, Quote, Support, Voice

TEN = ["copper", "anvil", "harbor", "lantern", "meadow", "pepper", "saddle", "timber", "velvet", "walnut"]
"""Words of the same weight, so that each is a tenth of the statement."""
STATEMENT = " ".join(TEN)
NIGHT = "The nightly backup of the photos starts at 02:30 on the storage box"

PERSON, HOUSE, OUTSIDE, NOBODY = Voice


def evidence(*steps: tuple[str, ...]) -> Evidence:
    """The turns of a session, numbered from 1: (what it is, its texts)."""
    made = Evidence()
    for number, (kind, *texts) in enumerate(steps, 1):
        if kind == "call":
            made.call(*texts)
        else:
            getattr(made, kind)(number, *texts)
    return made


def tenths(first: int, last: int) -> str:
    """Some of the ten words, in rows without a sentence."""
    return " | ".join(TEN[first:last])


def supported(statement: str, *steps: tuple[str, ...]) -> tuple[Voice, list[int]]:
    found = evidence(*steps).support(statement)
    return found.by, [quote.turn for quote in found.quotes]


def test_thresholds(subtests):
    for steps, by in [
        # one turn of a person needs 62 %
        ([("person", tenths(0, 7))], PERSON),
        ([("person", tenths(0, 6))], NOBODY),
        ([("person", tenths(0, 4)), ("person", tenths(4, 8))], NOBODY),
        # half of it where the house shows the rest, to 75 % together, and nothing is from outside
        ([("person", tenths(0, 5)), ("house", tenths(5, 8))], PERSON),
        ([("person", tenths(0, 5)), ("house", tenths(5, 7))], NOBODY),
        ([("person", tenths(0, 5)), ("house", tenths(5, 8)), ("outside", tenths(8, 9))], NOBODY),
        # at most 12 % of it may stand outside
        ([("person", tenths(0, 8)), ("outside", tenths(8, 9))], PERSON),
        ([("person", tenths(0, 8)), ("outside", tenths(8, 10))], NOBODY),
        # 22 % that came first from outside are too much
        ([("outside", tenths(0, 3)), ("person", tenths(3, 10))], OUTSIDE),
        ([("outside", tenths(0, 3)), ("house", "\n".join(TEN[3:]))], OUTSIDE),
        ([("outside", tenths(0, 2)), ("house", "\n".join(TEN[2:]))], HOUSE),
        ([("outside", tenths(0, 2))], NOBODY),
        # and 55 % that one outside turn has, unless the house shows the words without a sentence
        ([("house", STATEMENT), ("outside", tenths(0, 6))], OUTSIDE),
        ([("house", STATEMENT), ("outside", tenths(0, 5))], HOUSE),
        ([("house", tenths(0, 10)), ("outside", STATEMENT)], HOUSE),
        ([("outside", STATEMENT), ("house", tenths(0, 10))], HOUSE),
        ([("outside", STATEMENT), ("house", STATEMENT)], OUTSIDE),
        # the house needs 50 % together with persons and calls, 35 % without the persons
        ([("house", tenths(0, 5))], HOUSE),
        ([("house", tenths(0, 4))], NOBODY),
        ([("house", tenths(0, 4)), ("person", tenths(4, 5))], HOUSE),
        ([("house", tenths(0, 3)), ("person", tenths(3, 6))], NOBODY),
        ([("house", tenths(0, 4)), ("call", tenths(4, 5))], HOUSE),
        ([("call", tenths(0, 10))], NOBODY),
    ]:
        with subtests.test(str(steps)):
            assert supported(STATEMENT, *steps)[0] == by


def test_what_a_person_said(subtests):
    for said, statement, by in [
        ("Mind that the nightly backup of the photos starts at 02:30 on the storage box.", NIGHT, PERSON),
        ("The backup of photos on the box: it starts nightly, 02:30", "The operator says: " + NIGHT, PERSON),
        ("The nightly backup of the photos starts at 03:30 on the storage box", NIGHT, NOBODY),  # another number
        ("The nightly backup of the photos starts on the storage box", NIGHT, NOBODY),  # none
        ("Does the nightly backup of the photos start at 02:30 on the storage box?", NIGHT, NOBODY),
        ("Never restart the billing service by day", "The billing service is never restarted by day", PERSON),
        ("Restart the billing service by day without fear", "The billing service is never restarted by day", PERSON),
        ("Restart the billing service by day", "The billing service is never restarted by day", NOBODY),
        ("Never restart the billing service by day", "The billing service is restarted by day", NOBODY),
        ("Never mind. Restart the billing service by day", "The billing service is restarted by day", PERSON),
        ("Den Abrechnungsdienst nie tagsüber neu starten", "Abrechnungsdienst nie tagsüber neu starten", PERSON),
        ("Den Abrechnungsdienst tagsüber neu starten", "Abrechnungsdienst nie tagsüber neu starten", NOBODY),
        ("白天重启数据库服务器", "在白天重启数据库服务器", PERSON),
    ]:
        with subtests.test(str((said, statement))):
            assert supported(statement, ("person", said))[0] == by


def test_a_person_who_quotes_six_words_of_what_was_read_says_nothing_of_their_own():
    read = ("outside", f"{STATEMENT} is what the vendor recommends", "web: example.org")
    for words, voice in ((6, OUTSIDE), (5, PERSON)):
        said = " ".join([*TEN[:words], *reversed(TEN[words:])])
        assert supported(STATEMENT, read, ("person", said))[0] == voice
    assert supported(STATEMENT, ("person", STATEMENT), read) == (PERSON, [1]), "it was said before it was read"


def test_what_a_call_writes_after_outside_text_is_nobodys_when_it_is_read_back(subtests):
    read, echo, cat = (
        ("outside", "Read this"),
        ("call", "", f"echo '{tenths(0, 10)}' > notes"),
        ("house", tenths(0, 10)),
    )
    for steps, by in [
        ([read, echo, cat], NOBODY),
        ([echo, cat], HOUSE),
        ([echo, read, cat], HOUSE),
        ([cat, read, echo, cat], HOUSE),  # the house had shown it before
        ([read, ("call", "cat notes"), cat], HOUSE),
    ]:
        with subtests.test(str(steps)):
            assert supported(STATEMENT, *steps)[0] == by


def test_a_number_counts_without_its_unit_and_without_leading_zeros():
    crontab = ("house", "17 5 * * * root find /scratch/runs -mtime +10 -exec rm -rf {}")
    assert supported("Root deletes /scratch/runs with rm -rf after 10 days, daily at 05:17", crontab)[0] == HOUSE
    assert supported("Root deletes /scratch/runs with rm -rf after 12 days, daily at 05:17", crontab)[0] == NOBODY
    kept = ("house", "loki compactor retention_period: 744h")
    assert supported("The compactor of loki has a retention of 744 hours", kept)[0] == HOUSE


def test_a_sentence_in_the_name_of_a_file_is_from_outside():
    name = "-".join(TEN[:8]) + ".txt"
    found = evidence(("house", f"compose.yml\n{name}\nnightly backup 02:30 photos box storage")).support(STATEMENT)
    assert (found.by, found.quotes) == (OUTSIDE, (Quote(1, name, NAMES),))
    assert supported(NIGHT, ("house", f"nightly backup 02:30 photos box storage\n{name}"))[0] == HOUSE


def test_what_depends_on_the_text_is_from_outside_in_its_sentences_alone(subtests):
    rows, sentence = "\n".join(TEN), STATEMENT + " is recommended"
    for steps, by in [
        ([("depends", rows, "command: x")], HOUSE),
        ([("depends", sentence, "command: x")], OUTSIDE),
        ([("depends", f"Read this and then go home now\n{rows}", "command: x")], HOUSE),
        ([("outside", "Read this"), ("depends", rows, "command: x")], NOBODY),
        ([("depends", "Read this and then go home now", "command: x"), ("depends", rows, "command: y")], NOBODY),
        ([("outside", "Read this"), ("house", rows)], HOUSE),
    ]:
        with subtests.test(str(steps)):
            assert supported(STATEMENT, *steps)[0] == by


def test_what_the_agent_says_supports_nothing_but_is_quoted():
    said = f"I looked at it. So {tenths(0, 10)} it is. Done"
    found = evidence(("agent", "All well"), ("agent", said)).support(STATEMENT)
    assert found == Support(NOBODY, (Quote(2, f"So {tenths(0, 10)} it is."),))
    assert supported(STATEMENT, ("agent", tenths(0, 3))) == (NOBODY, [])
    assert supported(STATEMENT, ("agent", STATEMENT), ("person", tenths(0, 7))) == (PERSON, [2])


def test_the_best_turns_are_quoted_first_and_the_line_of_each_that_has_most():
    shown = [("house", f"{TEN[n]} {TEN[n + 1]}\nother") for n in range(6)]
    by, turns = supported(STATEMENT, *shown, ("house", f"status\n{tenths(0, 8)}\n{TEN[9]}"))
    assert (by, turns) == (HOUSE, [7, 1, 2]) and len(turns) == MOST_QUOTES
    found = evidence(("house", f"status\n{tenths(0, 8)}\n{TEN[9]}" + " x" * 400)).support(STATEMENT)
    assert found.quotes[0].text == tenths(0, 8)
    long = evidence(("outside", "x" * 400 + STATEMENT, "logs: web")).support(STATEMENT).quotes[0]
    assert (len(long.text), long.source) == (LONGEST_QUOTE, "logs: web")


@pytest.mark.parametrize("text", ["", "   ", "is the of", "The operator and the team", "!?"])
def test_a_text_without_content_is_nobodys(text):
    assert evidence(("person", text), ("house", text)).support(text) == Support(NOBODY)


KINDS = ("person", "house", "outside", "depends", "agent", "call")
TEXTS = st.lists(
    st.sampled_from([*TEN, "never", "42", "02:30", "a-b-c-d-e-f.txt", "?", ". ", "\n", "不要重启", "`x`"])
).map(" ".join).map(str) | st.text(max_size=60)


@given(st.lists(st.tuples(st.sampled_from(KINDS), TEXTS), max_size=8), TEXTS)
def test_any_evidence_and_any_statement_have_an_answer_with_quotes_of_their_turns(steps, statement):
    sources = {"depends": ("command: x",), "outside": ("web: x",)}
    found = evidence(*((kind, text, *sources.get(kind, ())) for kind, text in steps)).support(statement)
    assert len(found.quotes) <= MOST_QUOTES
    assert bool(found.quotes) or not found.is_known, "what is told has a quote"
    for quote in found.quotes:
        kind, text = steps[quote.turn - 1]
        assert quote.text and quote.text in text and len(quote.text) <= LONGEST_QUOTE
        assert found.by != NOBODY or kind == "agent"
        assert found.by != PERSON or kind == "person"
    assert Support.from_json(found.as_json()) == found
    assert Support.from_json({}) is None


@given(st.lists(st.tuples(st.sampled_from(("outside", "agent", "call")), TEXTS), max_size=8), TEXTS)
def test_without_a_person_and_an_output_of_the_house_nothing_is_vouched_for(steps, statement):
    assert not evidence(*steps).support(statement).is_known
