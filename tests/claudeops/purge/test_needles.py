"""Texts are found as they are written anywhere, and what is put in their place breaks nothing."""

from __future__ import annotations

import html
import json

from hypothesis import given
from hypothesis import strategies as st

from claudeops.features.purge.needles import MARK, Needles, filled

TEXT = 'The proxy "edge" restarts at 4 o\'clock – C:\\logs says so'


def test_a_text_is_found_in_every_form(subtests):
    for written in [
        TEXT,
        TEXT.upper().replace("–", "–"),
        f"[MEMORY:timing:proxy] {TEXT}",
        TEXT.replace(" restarts at", "\n    restarts\tat"),
        json.dumps({"text": TEXT}),
        json.dumps({"text": TEXT}, ensure_ascii=False),
        json.dumps({"line": json.dumps({"text": TEXT.replace(" at 4", "\nat 4")})}),
        html.escape(TEXT),
    ]:
        with subtests.test(str(written)):
            found, count = Needles([TEXT]).removed(written)
            assert count == 1 and MARK in found
            assert "restarts" not in found.lower() and "logs says" not in found


def test_a_copy_that_was_cut_short_is_found_and_another_text_that_begins_alike_stays():
    needles = Needles(["The proxy restarts every night at four because of the backup"])
    assert needles.removed("said: The proxy restarts every night at…")[0] == f"said: {MARK}…"
    assert needles.removed("The proxy restarts every night at four be\n… 12 more characters in the raw log")[1] == 1
    assert needles.removed("The proxy restarts every night at four be", cut_at=41)[0] == MARK
    other = "The proxy restarts every night at six. Nobody knows why."
    assert needles.removed(other) == (other, 0)


def test_texts_in_data_are_found_at_any_depth():
    data = {"hits": [{"observation": TEXT, "id": 3}], TEXT: [TEXT, 1, None, True]}
    assert Needles([TEXT]).removed(data) == ({"hits": [{"observation": MARK, "id": 3}], MARK: [MARK, 1, None, True]}, 3)


def test_short_texts_are_left_out_unless_they_are_meant():
    assert not Needles(["proxy"]) and Needles(["proxy"]).too_short == 1
    assert Needles(["proxy"], short=True).removed("a proxy")[0] == f"a {MARK}"


def test_a_short_text_is_found_as_a_whole_word_in_text_bytes_and_json():
    for word, there, not_there in (
        (
            "anna",
            ("Call Anna!", "anna's", "“anna”", "anna-maria", "(anna)", "x\nanna\ny"),
            ("Hanna", "annals", "Ännanna"),
        ),
        ("Ånn", ("…ånn…", "a ånn"), ("ånnk", "éånn")),
        ("c++", ("C++17", "(c++)"), ("c+",)),
        ("备份", ("每天备份数据",), ("备", "份")),
        ("a b", ("a  b", "a\nb"), ("ca b", "a bc")),
    ):
        needles = Needles([word, "other"], query=word)
        assert needles.too_short == 1
        for text in there:
            assert needles.removed(text)[1] == 1, text
            for line in (
                text.encode(),
                json.dumps({"t": text}).encode(),
                json.dumps([text], ensure_ascii=False).encode(),
            ):
                assert needles.removed_from_line(line)[1] == 1, line
        for text in not_there:
            assert needles.removed(text) == (text, 0)
            assert needles.removed_from_line(json.dumps({"t": text}).encode())[1] == 0


def test_a_thousand_texts_are_found_as_one_is():
    texts = [f"Service number{n} restarts at hour {n} of the night" for n in range(1000)]
    needles = Needles(texts)
    assert needles.searched_by_words is None
    line = json.dumps({"a": f"x\n{texts[7]}", "b": texts[999]})
    assert needles.removed(line)[1] == 2
    assert needles.removed("Service number1000 restarts at hour 7 of the day")[1] == 0


def test_a_line_with_escapes_that_nobody_needs_stays_json_of_its_length():
    escaped = "".join(f"\\u{ord(char):04x}" for char in TEXT)
    line = b'{"text": "' + escaped.encode() + b'", "n": 1}\r\n'
    new, count = Needles([TEXT]).removed_from_line(line)
    assert (len(new), count) == (len(line), 1) and new.endswith(b"\r\n")
    assert json.loads(new) == {"text": MARK, "n": 1}


def test_a_mark_has_any_length():
    assert [filled(n) for n in (1, 8, 10)] == [b"*", b"[purged]", b"[purged]  "]


texts = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=60)


@given(before=texts, text=texts.filter(lambda text: len(text.strip()) >= 8), after=texts, ascii_only=st.booleans())
def test_no_byte_of_a_text_stays_in_a_line_and_the_line_stays_json_of_its_length(before, text, after, ascii_only):
    needles = Needles([text])
    if not needles:
        return
    needle = needles.all[0].text
    line = json.dumps({"a": before + needle + after, "b": [needle]}, ensure_ascii=ascii_only).encode() + b"\n"
    new, count = needles.removed_from_line(line)
    assert len(new) == len(line) and count >= 1
    left = json.dumps(json.loads(new), ensure_ascii=False)
    assert needle not in left
