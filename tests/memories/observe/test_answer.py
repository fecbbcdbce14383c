from __future__ import annotations

import json
import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memories.llm.reader import LONGEST
from memories.models import FactKind, Priority
from memories.observe.answer import MOST_FACTS, MOST_SEGMENTS, FoundFact, FoundSegment, Parsed, parse
from memories.taxonomy import KNOWLEDGE

TEXT = "Vault is unsealed by hand after a reboot"
FACT = FoundFact(TEXT, Priority.RED, FactKind.CONSTRAINT, "allow", 0.92, "operations")
LINE = f"- 🔴 [gate=allow confidence=0.92 category=jc:operations] {TEXT}"
FORM = (
    '<observations><segment turns="12-18"><narrative>Vault was sealed.</narrative><facts>\n'
    f"{LINE}\n</facts></segment></observations>"
)

LINES = {
    "the form itself": LINE,
    "the text on the next line": LINE.replace("] V", "]\n  V"),
    "the text on the next line, not indented": LINE.replace("] V", "]\nV"),
    "a star as bullet": LINE.replace("- 🔴", "* 🔴"),
    "a dot as bullet": LINE.replace("- 🔴", "• 🔴"),
    "a number as bullet": LINE.replace("- 🔴", "1. 🔴"),
    "a number in parentheses": LINE.replace("- 🔴", "(1) 🔴").replace("(1)", "1)"),
    "no bullet": LINE.removeprefix("- "),
    "no blank after the bullet": LINE.replace("- 🔴", "-🔴"),
    "quoted values": LINE.replace("=allow", '="allow"').replace("=0.92", "='0.92'"),
    "curly quotes": LINE.replace("=allow", "=“allow”"),
    "colons and commas": LINE.replace(
        "[gate=allow confidence=0.92 category=jc:operations]", "[gate: allow, confidence: .92, category: jc:operations]"
    ),
    "semicolons": LINE.replace("allow conf", "allow; conf").replace("0.92 cat", "0.92; cat"),
    "a bar between": LINE.replace("allow conf", "allow | conf").replace("0.92 cat", "0.92 | cat"),
    "per cent": LINE.replace("0.92", "92%"),
    "per cent without a sign": LINE.replace("0.92", "92"),
    "a decimal comma": LINE.replace("0.92", "0,92"),
    "a fraction": LINE.replace("confidence=0.92", 'confidence="0.92/1.0"'),
    "no jc": LINE.replace("jc:", ""),
    "upper case": LINE.replace("gate=allow", "GATE=ALLOW").replace("category=jc:operations", "Category=JC:Operations"),
    "another name of the category": LINE.replace("jc:operations", '"ops"'),
    "a category of several words": LINE.replace("jc:operations", "'Operational'"),
    "other names of attributes": LINE.replace("gate=", "verdict=").replace("confidence=", "conf="),
    "another word of the gate": LINE.replace("=allow", "=keep"),
    "another order": LINE.replace(
        "[gate=allow confidence=0.92 category=jc:operations]", "[category=jc:operations confidence=0.92 gate=allow]"
    ),
    "attributes at the end": f"- 🔴 {TEXT} [gate=allow confidence=0.92 category=jc:operations]",
    "attributes at the end in parentheses": f"- 🔴 {TEXT} (gate: allow, confidence: 0.92, category: operations)",
    "attributes at the end without brackets": f"- 🔴 {TEXT} gate=allow confidence=0.92 category=operations",
    "no brackets": LINE.replace("[", "").replace("]", ""),
    "braces": LINE.replace("[", "{").replace("]", "}"),
    "a bracket for each": LINE.replace("allow conf", "allow] [conf").replace("0.92 cat", "0.92] [cat"),
    "the bracket is not closed": LINE.replace("]", ""),
    "the sign after the attributes": LINE.replace("🔴 ", "").replace("] V", "] 🔴 V"),
    "a variant of the sign": LINE.replace("🔴", "🔴\ufe0f"),
    "a square": LINE.replace("🔴", "🟥"),
    "the sign as a code": LINE.replace("🔴", ":red_circle:"),
    "a word in brackets": LINE.replace("🔴", "[high]"),
    "a word with a colon": LINE.replace("🔴", "HIGH:"),
    "a bold word": LINE.replace("🔴", "**[Critical]**"),
    "an attribute as the sign": LINE.replace("🔴 [", "[priority=high "),
    "a sign as an attribute": LINE.replace("🔴 [", "[priority=🔴 "),
    "bold": LINE.replace(TEXT, f"**{TEXT}**"),
    "a bold sign": LINE.replace("🔴", "**🔴**"),
    "attributes in code": LINE.replace("[", "`[").replace("]", "]`"),
    "a colon before the text": LINE.replace("] ", "]: "),
    "a dash before the text": LINE.replace("] ", "] — "),
    "quoted text": LINE.replace(TEXT, f'"{TEXT}"'),
    "a check box": LINE.replace("- 🔴", "- [ ] 🔴"),
    "a bold bracket": LINE.replace("[", "**[").replace("]", "]**"),
    "a remark in the bracket": LINE.replace("allow conf", "allow (certain) conf"),
    "a remark at the end of the bracket": LINE.replace("operations]", "operations, as said]"),
    "wrapped over two lines": LINE.replace(" after a", "\n  after a"),
    "a quotation": f"> {LINE}".replace("> - 🔴", "- > 🔴").replace("- > 🔴", "- 🔴"),
}


def test_a_fact_is_read_in_whatever_way_models_write_it(subtests):
    for line in LINES.values():
        with subtests.test(str(line)):
            assert parse(FORM.replace(LINE, line)) == Parsed((FoundSegment("Vault was sealed.", 12, 18, (FACT,)),))


WHOLE = {
    "the form itself": FORM,
    "text around it": f"Here is what I found:\n\n{FORM}\n\nLet me know if you need more!",
    "a fenced block": f"```xml\n{FORM}\n```",
    "carriage returns": FORM.replace("\n", "\r\n"),
    "upper-case tags": FORM.replace("observations", "OBSERVATIONS").replace("segment", "Segment"),
    "no observations": FORM.replace("<observations>", "").replace("</observations>", ""),
    "no closing tags": FORM.replace("</facts></segment></observations>", ""),
    "the narrative is not closed": FORM.replace("</narrative>", "\n"),
    "no tag of facts": FORM.replace("<facts>", "").replace("</facts>", ""),
    "no tag of the narrative": FORM.replace("<narrative>", "").replace("</narrative>", ""),
    "a label for the narrative": FORM.replace("<narrative>", "**Narrative:** ").replace("</narrative>", "\n"),
    "entities for all tags": FORM.replace("<", "&lt;").replace(">", "&gt;"),
    "blanks in tags": FORM.replace("<facts>", "< facts >").replace("</facts>", "</ facts>"),
    "turns without quotes": FORM.replace('"12-18"', "12-18"),
    "turns with an en dash": FORM.replace("12-18", "12 – 18"),
    "turns in brackets": FORM.replace('"12-18"', '"[12, 18]"'),
    "turns by two names": FORM.replace('turns="12-18"', 'first_turn="12" last_turn="18"'),
    "turns backwards": FORM.replace("12-18", "18-12"),
    "headings between": FORM.replace("<facts>", "\n### Facts\n<facts>\n**Facts:**\n"),
    "a comment": FORM.replace("<facts>\n", "<facts>\n<!-- the important one -->\n"),
    "thoughts before": f"<thinking><observations>{LINE}</observations></thinking>{FORM}",
    "an element for each fact": FORM.replace(
        LINE, f'<fact priority="high" gate="allow" confidence="0.92" category="jc:operations">{TEXT}</fact>'
    ),
    "an element for each attribute": FORM.replace(
        LINE,
        "<fact>\n<priority>🔴</priority>\n<gate>allow</gate><confidence>0.92</confidence>\n"
        f"<category>jc:operations</category><text>{TEXT}</text>\n</fact>",
    ),
    "attributes as elements before the text": FORM.replace(
        LINE,
        "<fact><priority>high</priority><gate>allow</gate><confidence>0.92</confidence>"
        f"<category>jc:operations</category>{TEXT}</fact>",
    ),
    "an element for the turns": FORM.replace(' turns="12-18">', "><turns>12-18</turns>"),
    "the facts before the narrative": FORM.replace("<narrative>Vault was sealed.</narrative>", "").replace(
        "</segment>", "<narrative>Vault was sealed.</narrative></segment>"
    ),
    "an element for each fact with a line in it": FORM.replace(LINE, f"<fact>{LINE}</fact>"),
    "JSON": json.dumps(
        {
            "observations": [
                {
                    "narrative": "Vault was sealed.",
                    "turns": "12-18",
                    "facts": [
                        {
                            "text": TEXT,
                            "priority": "🔴 must",
                            "gate": "allow",
                            "confidence": 0.92,
                            "category": "jc:operations",
                        }
                    ],
                }
            ]
        }
    ),
    "JSON with lines": json.dumps(
        {"segments": [{"narrative": "Vault was sealed.", "first_turn": 12, "last_turn": 18, "facts": [LINE]}]}
    ),
}


def test_an_answer_is_read_in_whatever_shape_models_write_it(subtests):
    for answer in WHOLE.values():
        with subtests.test(str(answer)):
            assert parse(answer) == Parsed((FoundSegment("Vault was sealed.", 12, 18, (FACT,)),))


@pytest.mark.parametrize("answer", [LINE, f"Facts:\n{LINE}", f"<facts>{LINE}</facts>", f"```\n{LINE}\n```"])
def test_facts_without_a_segment_make_one_without_a_narrative(answer):
    assert parse(answer) == Parsed((FoundSegment("", None, None, (FACT,)),))


def test_several_values_in_json_are_all_read():
    answer = "\n".join(json.dumps({"narrative": name, "turns": [1, 2], "facts": [LINE]}) for name in ("One.", "Two."))
    assert parse(answer).segments == tuple(FoundSegment(name, 1, 2, (FACT,)) for name in ("One.", "Two."))


def test_prose_that_begins_with_a_word_of_priority_stays_the_narrative():
    answer = FORM.replace("Vault was sealed.", "\nImportant: vault was sealed.\nNormal: it is not.\n")
    (segment,) = parse(answer).segments
    assert segment == FoundSegment("Important: vault was sealed. Normal: it is not.", 12, 18, (FACT,))


def test_several_blocks_and_a_segment_that_is_not_closed_are_all_read():
    second = FORM.replace("Vault was sealed.", "Later.").replace("</segment>", "")
    last = second.replace("Later", "Last").replace('<segment turns="12-18">', "")
    found = parse(f"{FORM}\nand\n{second}{last}")
    assert [segment.narrative for segment in found.segments] == ["Vault was sealed.", "Later.", "Last."]
    assert all(segment.facts == (FACT,) for segment in found.segments)


def test_a_fact_may_name_its_kind_and_its_turn():
    line = LINE.replace("jc:operations]", "jc:operations type=correction turn=17]")
    (fact,) = parse(line).segments[0].facts
    assert (fact.kind, fact.turn) == (FactKind.CORRECTION, 17)


@pytest.mark.parametrize("said", ["(turn 17)", "[turn 17]", "(turns 17-19).", "(source: turn #17)"])
def test_a_turn_at_the_end_of_the_text_is_its_turn(said):
    (fact,) = parse(f"{LINE} {said}").segments[0].facts
    assert (fact.text, fact.turn) == (TEXT, 17)


def test_a_kind_tells_the_priority_where_no_sign_does():
    (fact,) = parse(LINE.replace("🔴 ", "").replace("jc:operations]", "operations type=pattern]")).segments[0].facts
    assert (fact.kind, fact.priority) == (FactKind.PATTERN, Priority.YELLOW)


def test_a_list_below_a_fact_belongs_to_it():
    answer = FORM.replace(LINE, f"{LINE}:\n  - first the leader\n  - then the others\n{LINE}")
    facts = parse(answer).segments[0].facts
    assert [fact.text for fact in facts] == [f"{TEXT}: first the leader then the others", TEXT]


def test_entities_in_a_fact_are_its_signs():
    assert parse(LINE.replace("by hand", "by R&amp;D &lt;ops&gt;")).segments[0].facts[0].text == (
        "Vault is unsealed by R&D <ops> after a reboot"
    )


def test_a_text_with_colons_and_brackets_stays_whole():
    for text in ("Type: strict must be set [see #12]", "1. is the first port (of two)", "Level: info is too low"):
        assert parse(LINE.replace(TEXT, text)).segments[0].facts[0].text == text


def test_nothing_to_observe_is_an_answer(subtests):
    for answer in [
        "<observations></observations>",
        "<observations/>",
        "```xml\n<observations>\n</observations>\n```",
        "Nothing to observe.",
        "No observations: the session only looked at the status.",
        "None",
        "[]",
        '{"observations": []}',
        "<observations>none</observations>",
        "<observations><segment><narrative></narrative><facts>\n- none\n</facts></segment></observations>",
    ]:
        with subtests.test(str(answer)):
            assert parse(answer) == Parsed()


JSON = json.dumps(
    {"observations": [{"narrative": "Vault was sealed.", "facts": [{"text": TEXT, "gate": "allow"}, {"text": "It"}]}]}
)
UNREADABLE = {
    "empty": "",
    "only thinking": "<thinking>Vault is sealed.</thinking>",
    "prose without facts": "The person talked about Vault for a while and then went home.",
    "a refusal": "I'm sorry, but I can't help with that. There is nothing I can do.",
    "another refusal": "I cannot read this transcript; none was provided.",
    "a refusal in another language": "Es tut mir leid, dabei kann ich nicht helfen.",
    "a refusal within the tags": "<observations>I am unable to comply.</observations>",
    "an error of the API": '{"type": "error", "error": {"type": "overloaded_error", "message": "none"}}',
    "JSON that is cut off before a fact": JSON[:60],
    "JSON that is cut off in a fence": "```json\n" + json.dumps(json.loads(JSON), indent=1)[:110],
    "an array of texts": json.dumps([TEXT, "It"]),
    "an array of numbers": "[1, 2, 3]",
    "an array of other objects": '[{"a": 1}, {"b": 2}]',
    "facts that are no list": '{"facts": "' + TEXT + '"}',
    "facts that are numbers": '{"facts": [1, 2]}',
    "deep nesting": "[" * 150_000,
    "deep nesting within": '{"facts": [' + '{"text": ' * 50_000,
    "tags that are cut off in the narrative": '<observations><segment turns="1-3"><narrative>Vault was',
    "tags that are cut off before a fact": FORM[: FORM.index("- ")],
    "facts without a text": "<observations><segment><facts>\n- 🔴 [gate=allow]\n</facts></segment></observations>",
}


def test_an_answer_that_cannot_be_read_is_not_taken_for_nothing(subtests):
    for kind, answer in UNREADABLE.items():
        with subtests.test(kind):
            found = parse(answer)
            assert not found.is_readable
            assert found.unread and not found.segments
    for answer in (
        FORM,
        JSON,
        f"```json\n{JSON}\n```",
        "[]",
        "Nothing to observe.",
        FORM.removesuffix("</observations>"),
    ):
        with subtests.test(answer[:30]):
            assert parse(answer).is_readable


def test_of_an_answer_that_is_partly_readable_the_whole_facts_are_kept_and_the_rest_is_said(subtests):
    for kind, answer in {
        "JSON that is cut off in a fact": JSON[: JSON.index('"It')],
        "the same in a fence": "Here it is:\n```json\n" + JSON[: JSON.index('"It')],
        "an array that is cut off": json.dumps([{"text": TEXT}, {"text": "It"}])[:-5],
        "JSON with an error in it": JSON.replace('{"text": "It"}', '{"text": It}'),
        "a number among the facts": JSON.replace('{"text": "It"}', "7"),
        "a fact without a text": JSON.replace('{"text": "It"}', '{"gate": "allow"}'),
    }.items():
        with subtests.test(kind):
            found = parse(answer)
            assert [fact.text for segment in found.segments for fact in segment.facts] == [TEXT]
            assert found.is_readable
            assert any(word in " ".join(found.unread) for word in ("cut off or broken", "neither", "no text"))


def test_a_narrative_without_facts_is_kept():
    assert parse("<segment><narrative>Only looked.</narrative><facts>(none)</facts></segment>") == Parsed(
        (FoundSegment("Only looked."),)
    )


def test_what_cannot_be_read_is_said_in_words(subtests):
    for answer, unread in [
        ("", "the answer is empty"),
        (" \n ", "the answer is empty"),
        ("I cannot help with that.", "no observation was found in the answer, which begins: I cannot help with that."),
        (LINE.replace("gate=allow ", ""), "segment 1, fact 1: it has no gate"),
        (LINE.replace("=allow", "=perhaps"), "segment 1, fact 1: the gate “perhaps” is not known"),
        (LINE.replace("0.92", "high"), "segment 1, fact 1: the confidence “high” is no number"),
        (LINE.replace("0.92", "920"), "segment 1, fact 1: the confidence “920” is not between 0 and 1"),
        (LINE.replace("jc:operations", "jc:cooking"), "segment 1, fact 1: the category “jc:cooking” is not known"),
        (LINE.replace(TEXT, ""), "segment 1, fact 1: it has no text"),
        (LINE.replace(TEXT, "x" * 3_000), f"segment 1, fact 1: it is longer than 2,000 characters: {'x' * 119}…"),
        ("x" * 5_000 + "\n" + LINE, f"a line has 5,000 characters: {'x' * 119}…"),
    ]:
        with subtests.test(str(answer)):
            assert parse(answer).unread == (unread,)


def test_a_fact_with_an_unreadable_gate_is_kept_without_one():
    (fact,) = parse(LINE.replace("=allow", "=perhaps")).segments[0].facts
    assert (fact.gate, fact.text) == ("", TEXT)


def test_a_huge_answer_is_read_to_its_limit_in_bounded_time():
    for piece in (
        "<segment>",
        "<segment ",
        "- 🔴 [gate=allow ",
        "[",
        "{",
        "<fact>x",
        "gate=",
        "- 🔴 x" + " " * 3_900 + "\n",
        f"{LINE}\n",
        "<!--",
        "&lt;",
    ):
        started = time.perf_counter()
        found = parse(piece * (10_000_000 // len(piece)))
        assert time.perf_counter() - started < 5
        assert len(found.segments) <= MOST_SEGMENTS
        assert sum(len(segment.facts) for segment in found.segments) <= MOST_FACTS
        assert f"the first {LONGEST:,} were read" in found.unread[0]


PIECES = st.sampled_from(
    [
        *(
            "<observations>",
            "</observations>",
            "<segment>",
            '<segment turns="',
            "</segment>",
            "<narrative>",
            "</narrative>",
        ),
        *(
            "<facts>",
            "</facts>",
            "<fact ",
            "<fact>",
            "/>",
            "- ",
            "🔴 ",
            "[",
            "]",
            "gate=",
            "allow",
            "confidence=",
            "0.9",
        ),
        *(
            "category=jc:",
            "operations",
            "\n",
            "\r",
            "{",
            "}",
            '"facts":',
            '["',
            "```",
            "<thinking>",
            "&lt;segment&gt;",
            "**",
        ),
    ]
)


@given(st.lists(PIECES | st.text(max_size=8), max_size=40).map("".join))
@example("[" * 3_000)
@example('{"a":' * 3_000)
@example('{"facts":[],"turns":' + "[" * 900 + "]" * 900 + "}")
@example('{"facts":[{"text":' + "[" * 900 + "]" * 900 + ',"gate":{}}],"narrative":[1]}')
@example('{"facts":[{"text":"x","turn":' + "9" * 4_000 + "}]}")
@example("\ud800<facts>- x")
def test_parse_never_raises_and_its_values_are_of_the_known_ones(answer):
    found = parse(answer)
    for segment in found.segments:
        assert segment.narrative or segment.facts
        assert segment.first_turn is None or 1 <= segment.first_turn <= segment.last_turn < 2**31
        for fact in segment.facts:
            assert fact.text == fact.text.strip() != ""
            assert "\n" not in fact.text
            assert fact.gate in ("", "allow", "hold", "discard")
            assert fact.category in ("", *KNOWLEDGE.categories)
            assert fact.confidence is None or 0 <= fact.confidence <= 1


def test_what_is_invisible_in_a_fact_stays_for_the_gate():
    found = parse(
        "<facts>\n- [gate=allow confidence=0.9] The vol\u200bume is\twi\u200bped\n- [gate=allow] \u200b\u200b\n</facts>"
    )
    assert [fact.text for segment in found.segments for fact in segment.facts] == ["The vol\u200bume is wi\u200bped"]
    assert any("no text" in words for words in found.unread)
