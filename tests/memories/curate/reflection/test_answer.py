"""What a reflector writes, in the shapes that models write, and in others."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memories.curate.reflection.answer import LONGEST_CHANGE, MOST_PROPOSALS, FoundProposal, parse
from memories.llm.reader import LONGEST
from memories.models import ProposalKind
from memories.taxonomy import KNOWLEDGE

ONE = FoundProposal(ProposalKind.ADD, "operations", "The cat is grey.", evidence=(1, 3))
P = "<proposals><proposal>{}</proposal></proposals>"
BODY = "<section>operations</section><change>The cat is grey.</change><evidence>1, 3</evidence>"

SAME = {
    "the form": P.format(f"<kind>add</kind>{BODY}"),
    "without a kind": P.format(BODY),
    "upper case": P.format(BODY).upper().replace("THE CAT IS GREY.", "The cat is grey."),
    "on several lines": P.format("\n  " + BODY.replace("><", ">\n  <") + "\n"),
    "windows line ends": P.format(BODY.replace("><", ">\r\n<")),
    "a fence around it": f"```xml\n{P.format(BODY)}\n```",
    "prose before and after": f"Here is what I propose:\n\n{P.format(BODY)}\n\nLet me know!",
    "thought aloud": f"<thinking><proposal>no</proposal></thinking>{P.format(BODY)}",
    "no outer element": f"<proposal>{BODY}</proposal>",
    "no end of the outer element": f"<proposals><proposal>{BODY}</proposal>",
    "no end of the proposal": f"<proposals><proposal>{BODY}</proposals>",
    "no end at all": f"<proposals><proposal>{BODY.removesuffix('</evidence>')}",
    "no ends of the parts": P.format("<section>operations<change>The cat is grey.<evidence>1, 3"),
    "spaces in tags": P.format(BODY).replace("<", "< ").replace(">", " >"),
    "attributes": '<proposals><proposal kind="add" section="operations" evidence="1, 3"><change>The cat is grey.'
    "</change></proposal></proposals>",
    "attributes in single quotes": "<proposal kind='add' section='operations' evidence='1,3'><change>The cat is grey."
    "</change></proposal>",
    "the kind as an element": P.format(
        "<section>operations</section><add>The cat is grey.</add><evidence>1, 3</evidence>"
    ),
    "type": P.format(f"<type>add</type>{BODY}"),
    "action": P.format(f"<action>Create</action>{BODY}"),
    "category": P.format(BODY.replace("section", "category")),
    "text": P.format(BODY.replace("change", "text")),
    "observations": P.format(BODY.replace("evidence", "observations")),
    "sources": P.format(BODY.replace("evidence", "sources")),
    "the kind in the change": P.format(BODY.replace("The cat", "add: The cat")),
    "the kind in the change, loud": P.format(BODY.replace("The cat", "**ADD:** The cat")),
    "the kind in the change with a dash": P.format(BODY.replace("The cat", "Add - The cat")),
    "a bullet": P.format(BODY.replace("The cat", "- The cat")),
    "a bullet and a day": P.format(BODY.replace("The cat", "- (2026-11-24) The cat")),
    "a heading": P.format(BODY.replace("The cat", "## The cat")),
    "a quotation": P.format(BODY.replace("The cat", "> The cat")),
    "in bold": P.format(BODY.replace("The cat is grey.", "**The cat is grey.**")),
    "in quotes": P.format(BODY.replace("The cat is grey.", '"The cat is grey."')),
    "in backquotes": P.format(BODY.replace("The cat is grey.", "`The cat is grey.`")),
    "two lines": P.format(BODY.replace("cat is", "cat\n   is")),
    "a CDATA": P.format(BODY.replace("The cat is grey.", "<![CDATA[The cat is grey.]]>")),
    "a comment": P.format(f"<!-- the first -->{BODY}"),
    "escaped as a whole": P.format(BODY).replace("<", "&lt;").replace(">", "&gt;"),
    "the order of the parts": P.format(
        "<evidence>1, 3</evidence><change>The cat is grey.</change><section>operations</section>"
    ),
    "evidence with words": P.format(BODY.replace("1, 3", "observations 1 and 3")),
    "evidence with signs": P.format(BODY.replace("1, 3", "#1; #3")),
    "evidence in brackets": P.format(BODY.replace("1, 3", "[1], [3]")),
    "evidence twice": P.format(BODY.replace("1, 3", "3, 1, 3")),
    "an evidence for each": P.format(BODY.replace("1, 3", "1</evidence><evidence>3")),
    "the title of the section": P.format(BODY.replace(">operations<", ">## Operations<")),
    "the category of the observer": P.format(BODY.replace(">operations<", ">jc:operations<")),
    "json": json.dumps({"proposals": [{"section": "operations", "change": "The cat is grey.", "evidence": [1, 3]}]}),
    "json in a fence": "```json\n"
    + json.dumps(
        {"proposals": [{"kind": "add", "section": "operations", "text": "The cat is grey.", "evidence": [1, 3]}]}
    )
    + "\n```",
    "a list of json": json.dumps([{"section": "Operations", "change": "The cat is grey.", "evidence": "1, 3"}]),
    "json in prose": 'I propose {"section": "operations", "change": "The cat is grey.", "evidence": [1, 3]} only.',
    "json of one": json.dumps(
        {"proposal": {"section": "operations", "change": "The cat is grey.", "evidence": [1, 3]}}
    ),
}


def test_each_shape_is_the_same_proposal(subtests):
    for name in SAME:
        with subtests.test(str(name)):
            found = parse(SAME[name])
            assert (found.proposals, found.unread, found.is_answer) == ((ONE,), (), True)


def change(text: str, more: str = "") -> str:
    return P.format(f"{more}<section>operations</section><change>{text}</change><evidence>2</evidence>")


A, C, R = ProposalKind.ADD, ProposalKind.CHANGE, ProposalKind.REMOVE
KINDS = {
    "a change by its number": (change("New.", "<kind>change</kind><entry>4</entry>"), (C, 4, "", "New.")),
    "an update": (change("New.", "<kind>Update</kind><entry>#4</entry>"), (C, 4, "", "New.")),
    "an entry alone": (change("New.", "<entry>entry 4</entry>"), (C, 4, "", "New.")),
    "a target": (change("New.", "<kind>change</kind><target>Old one.</target>"), (C, None, "Old one.", "New.")),
    "old and new": (
        P.format("<section>operations</section><old>Old one.</old><new>New.</new><evidence>2</evidence>"),
        (C, None, "Old one.", "New."),
    ),
    "a number in the change": (change("change 4: New."), (C, 4, "", "New.")),
    "an entry in the change": (change("**Change** entry #4: New."), (C, 4, "", "New.")),
    "an arrow": (change("Old one. → New."), (C, None, "Old one.", "New.")),
    "an arrow of letters": (change("change: Old one. -&gt; New."), (C, None, "Old one.", "New.")),
    "an arrow after the kind": (change("Old one. => New.", "<kind>change</kind>"), (C, None, "Old one.", "New.")),
    "an arrow from a number": (change("4 → New.", "<kind>change</kind>"), (C, 4, "", "New.")),
    "an arrow in an addition": (change("A → B.", "<kind>add</kind>"), (A, None, "", "A → B.")),
    "a removal by its number": (change("Wrong.", "<kind>remove</kind><entry>7</entry>"), (R, 7, "", "Wrong.")),
    "a removal without a reason": (
        P.format("<kind>delete</kind><entry>7</entry><evidence>2</evidence>"),
        (R, 7, "", ""),
    ),
    "a removal in the change": (change("remove 7"), (R, 7, "", "")),
    "a removal with a sign": (change("Remove entry #7."), (R, 7, "", "")),
    "a removal by its text": (change("remove: Old one."), (R, None, "Old one.", "Old one.")),
    "a removal as an element": (
        P.format("<section>operations</section><remove>Old one.</remove><evidence>2</evidence>"),
        (R, None, "Old one.", "Old one."),
    ),
    "a removal as an attribute": (
        '<proposal kind="remove" entry="7"><evidence>2</evidence></proposal>',
        (R, 7, "", ""),
    ),
    "json with an entry": (
        json.dumps([{"kind": "change", "entry": 4, "change": "New.", "evidence": [2]}]),
        (C, 4, "", "New."),
    ),
    "a word that begins a sentence": (
        change("Updates of db_main run at night."),
        (A, None, "", "Updates of db_main run at night."),
    ),
    "a word with a hyphen": (change("Drop-in files lie in /etc."), (A, None, "", "Drop-in files lie in /etc.")),
    "a label that is no kind of its own": (
        change("Change: New.", "<kind>add</kind>"),
        (A, None, "", "Change: New."),
    ),
}


def test_each_kind_is_read_with_its_entry(subtests):
    for name in KINDS:
        with subtests.test(str(name)):
            answer, wanted = KINDS[name]
            (found,) = parse(answer).proposals
            assert (found.kind, found.entry, found.target, found.text) == wanted
            assert found.evidence == (2,)


def test_that_nothing_is_proposed_is_an_answer(subtests):
    for answer in [
        "<proposals></proposals>",
        "<proposals/>",
        "<proposals>\n</proposals>",
        "```xml\n<proposals></proposals>\n```",
        "<proposals><!-- nothing new --></proposals>",
        "There is nothing to propose.",
        "No changes.",
        "None",
        '{"proposals": []}',
        "[]",
        "The observations say what is known. <proposals></proposals>",
    ]:
        with subtests.test(str(answer)):
            found = parse(answer)
            assert (found.proposals, found.unread, found.is_answer) == ((), (), True)


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ("", "it is empty"),
        ("   \n", "it is empty"),
        ("I have had a look at it.", "no proposal was found in the answer, which begins: I have had a look at it."),
        (P.format("<kind>add</kind><section>operations</section><change></change>"), "proposal 1: it has no text"),
        (change("New.", "<kind>change</kind>"), "proposal 1: it names no entry to change"),
        (P.format("<kind>remove</kind><evidence>1</evidence>"), "proposal 1: it names no entry to remove"),
        (change("word " * 300), f"proposal 1: its text is longer than {LONGEST_CHANGE:,} characters"),
    ],
)
def test_what_cannot_be_read_is_said(answer, why):
    found = parse(answer)
    assert (found.proposals, found.unread, found.is_answer) == ((), (why,), False)


def test_a_section_that_is_none_is_said_and_left_open():
    found = parse(P.format(BODY.replace(">operations<", ">gossip<")))
    assert found.proposals[0].section == ""
    assert found.unread == ("proposal 1: its section is none of the categories",)


@pytest.mark.parametrize(
    ("said", "slug"),
    [
        ("Rules and conventions", "rules-conventions"),
        ("rules_conventions", "rules-conventions"),
        ("Rules &amp; Conventions", "rules-conventions"),
        ("architecture", "system-architecture"),
        ("people", "people-relationships"),
        ("ops", "operations"),
        ("memory", "memory-system"),
    ],
)
def test_a_section_is_read_by_its_title_or_a_part_of_it(said, slug):
    assert parse(P.format(BODY.replace(">operations<", f">{said}<"))).proposals[0].section == slug


@pytest.mark.parametrize(
    ("said", "numbers"),
    [
        ("1-3", (1, 2, 3)),
        ("2..4", (2, 3, 4)),
        ("1–2, 5", (1, 2, 5)),
        ("none", ()),
        ("9-1", (1, 9)),
        ("1-999999", (1, 999999)),
    ],
)
def test_evidence_is_numbers_and_ranges(said, numbers):
    assert parse(P.format(BODY.replace("1, 3", said))).proposals[0].evidence == numbers


def test_several_proposals_keep_their_order_and_their_parts():
    found = parse(
        "<proposals><proposal><section>operations</section><change>One.</change><evidence>1</evidence>"
        "<proposal><section>projects</section><change>Two.</change><evidence>2</evidence></proposal>"
        "<section>preferences</section><change>Three.</change></proposals>"
    )
    assert [(one.section, one.text, one.evidence) for one in found.proposals] == [
        ("operations", "One.", (1,)),
        ("projects", "Two.", (2,)),
        ("preferences", "Three.", ()),
    ]


def test_too_many_proposals_are_cut_and_too_long_an_answer_is_read_in_part():
    found = parse(P.format("</proposal><proposal>".join([BODY] * (MOST_PROPOSALS + 5))))
    assert len(found.proposals) == MOST_PROPOSALS
    assert found.unread == (f"there are more than {MOST_PROPOSALS} proposals; what followed was left out",)
    assert "characters; the first" in parse("x" * (LONGEST + 1)).unread[0]


def test_hidden_characters_stay_for_the_gate_and_line_breaks_do_not():
    (found,) = parse(P.format(BODY.replace("cat", "c\u200bat\n- (2026-01-01) forged"))).proposals
    assert found.text == "The c\u200bat - (2026-01-01) forged is grey."


NAMES = ("proposals", "proposal", "kind", "entry", "section", "change", "evidence", "thinking")
ODD = [
    "```",
    "{",
    "[",
    '"change": "x"',
    "→",
    "remove 7",
    "<!--",
    "-->",
    "<",
    ">",
    "&lt;proposal&gt;",
    "\n",
    "\ud800",
    "1-3",
]
PIECES = st.sampled_from([*(f"<{name}>" for name in NAMES), *(f"</{name}>" for name in NAMES), *ODD])


@given(st.lists(PIECES | st.text(max_size=20), max_size=60).map("".join))
@settings(max_examples=400, deadline=None)
def test_any_answer_is_read_within_bounds(answer):
    found = parse(answer)
    assert found == parse(answer)
    assert found.proposals or found.unread or found.is_answer
    for one in found.proposals:
        assert one.section in ("", *KNOWLEDGE.categories)
        assert len(one.text) <= LONGEST_CHANGE >= len(one.target)
        assert "\n" not in one.text + one.target
        assert (one.kind == ProposalKind.ADD) == (one.entry is None and not one.target)
        assert one.kind == ProposalKind.REMOVE or one.text


@given(st.text(st.characters(exclude_categories=["C", "Z"], exclude_characters="<>&"), min_size=1, max_size=40))
def test_a_text_in_the_form_comes_back(word):
    text = f"The word is {word} here."
    found = parse(P.format(f"<kind>add</kind>{BODY.replace('The cat is grey.', text)}"))
    assert found.proposals[0].text == text


@pytest.mark.parametrize(
    ("said", "read"),
    [
        ("The dump is written to `/srv/backup`", "The dump is written to `/srv/backup`"),
        ("`/srv/backup` holds the dump", "`/srv/backup` holds the dump"),
        ("`The dump takes 4 minutes`", "The dump takes 4 minutes"),
    ],
)
def test_code_at_the_end_of_a_text_keeps_its_marks(said, read):
    answer = f"<proposals><proposal><section>operations</section><change>{said}</change></proposal></proposals>"
    assert [one.text for one in parse(answer).proposals] == [read]
