"""The fast pass leaves out nothing that the rules find in a whole text."""

from __future__ import annotations

import random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from claudeops.lib.secrets import masking, prefilter
from claudeops.lib.secrets.prefilter import is_sign, skeleton
from claudeops.lib.secrets.rules import INSIDE, RULES, spans
from tests.claudeops.lib.secrets.honest_logs import honest_lines
from tests.support.credentials import sentences

HONEST = list(honest_lines(400))
SAID = list(sentences().values())


def whole(text: str, monkeypatch: pytest.MonkeyPatch) -> list[masking.Found]:
    with monkeypatch.context() as patch:
        patch.setattr(masking, "is_clean", lambda text: False)
        patch.setattr(masking, "parts", lambda text: [(0, text)])
        return masking.find(text)


@pytest.mark.parametrize("seed", range(20))
def test_the_parts_hold_what_the_whole_text_holds(seed, monkeypatch):
    fixed = random.Random(seed)
    lines = [fixed.choice(SAID if fixed.random() < 0.2 else HONEST) for _ in range(fixed.randrange(1, 40))]
    text = fixed.choice(["\n", " lorem ipsum dolor" * 60]).join(lines)
    text = fixed.choice([text, text.replace("e", "е", 5) + " — ü", "𝐚 \u200b" * 50 + text])
    assert masking.find(text) == whole(text, monkeypatch)


PIECES = (
    *SAID,
    *HONEST[:50],
    *("—", "–", "…", "\xa0", "：", "∕", "а", "е", "𝐚", "\u200b", "\u00ad", "ü", "密码", "\ud800", "\n", " ", "x"),
)


@given(st.lists(st.tuples(st.sampled_from(PIECES), st.integers(0, 40)), max_size=6), st.sampled_from("—–-\xa0аe\u200b"))
@example([], "—")
def test_a_clean_text_holds_nothing_that_a_rule_finds(pieces, sign):
    text = "".join(f"{piece[:at]}{sign}{piece[at:]}" if at < len(piece) else piece for piece, at in pieces)
    if prefilter.is_clean(text):
        assert not list(spans(text)) and not list(spans(skeleton(text))), text


def test_a_sign_that_is_read_as_plain_signs_stands_in_no_trigger():
    """`is_clean` reads the skeleton alone when only such signs are changed."""
    assert not any(is_sign(character) for word in (*RULES, *INSIDE) for character in word if not character.isascii())
    assert all(map(is_sign, "—–‑…\xa0：∕")) and not any(map(is_sign, "а𝐚½ü\u200b"))


def test_a_plain_log_has_no_part_to_read():
    text = (
        '2026-05-01T12:00:00Z level=info msg="started" id=6f1c2a64-0c7e-4a1b-9a55-1f0e3c2b7d90 dir=/srv/media/films\n'
        * 50
    )
    assert not prefilter.may_hold(text) and list(prefilter.parts(text)) == []


def test_a_part_keeps_its_place_behind_other_letters_and_lone_surrogates():
    token = "gh" + "p_" + "a1B2c3D4e" * 4
    for before in ("", "ü" * 3000, "\ud800" * 3000, "😀" * 3000):
        (found,) = masking.find(f"{before} {token}")
        assert (found.start, found.end) == (len(before) + 1, len(before) + 1 + len(token))
