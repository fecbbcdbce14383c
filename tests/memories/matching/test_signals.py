"""The signals one by one: tokens, meanings, clauses, opposites, order, overlap. No database."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memories.matching import Kind, relation
from memories.matching.clause_types import Stance
from memories.matching.clauses import read
from memories.matching.normalise import normal_form
from memories.matching.opposites import opposites
from memories.matching.order import order, rearranged
from memories.matching.overlap import overlap
from memories.matching.phrases import phrased
from memories.matching.synonyms import EMPTY, FULL, LIGHT, meaning
from memories.matching.tokens import _SPELLED, _SPELLINGS, Sort, fold, tokens
from memories.matching.vocabulary import OPPOSITE, SAME


def written(text: str) -> list[str]:
    return [token.text for token in tokens(fold(text))]


def stances(text: str) -> list[Stance]:
    return [clause.stance for clause in read(phrased(text))]


def test_tokens(subtests):
    for text, expected in [
        ("Don't, won't, can't!", ["do", "not", ",", "will", "not", ",", "can", "not", ";"]),
        ("it's Caddy's", ["it", "is", "caddy"]),
        ("60s 4GB 90%", ["60", "s", "4", "gb", "90", "percent"]),
        ("max_body_size=100m", ["max", "body", "size", "is", "100", "m"]),
        ("read-only, wg0 and nas-01", ["read", "only", ",", "wg0", "and", "nas-01"]),
        ("/var/lib/caddy/ ./run.sh https://a.b/c", ["/var/lib/caddy", "./run.sh", "https://a.b/c"]),
        ("up -- then (down)", ["up", ";", "then", ";", "down", ";"]),
        ("C++ is not C", ["c++", "is", "not", "c"]),
        ("ＦＵＬＬ width, “quoted”", ["full", "width", ",", "quoted"]),
        ("about 5–10 min", ["about", "5", "to", "10", "min"]),
        ("a → b", ["a", "to", "b"]),
    ]:
        with subtests.test(str(text)):
            assert written(text) == expected


PIECES = [
    *"ab12 -=><~&%*`.,'/",
    " at 5 o'clock",
    "3 in the morning",
    "5 pm",
    "1st",
    "mbit/s",
    "mbit per second",
    "≥",
    "’",
]


@given(st.one_of(st.lists(st.sampled_from(PIECES), max_size=12).map("".join), st.text(max_size=40)))
def test_a_text_that_is_spelled_plainly_is_changed_by_no_spelling(text):
    plain = fold(text)
    if not _SPELLED.search(plain):
        assert all(pattern.sub(replacement, plain) == plain for pattern, replacement in _SPELLINGS)


@given(st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=60))
def test_plain_letters_are_folded_as_if_other_ones_stood_beside_them(text):
    assert fold(text) == fold(f"{text} \u200b")  # an invisible character, which folding drops


def test_what_has_an_identity_is_a_name():
    found = tokens(fold("10.0.0.1 example.net v2.1.330 http/3 --force 443/tcp"))
    assert {token.sort for token in found} == {Sort.NAME}


def test_meanings(subtests):
    for word, name, sign in [
        ("disabled", "enable", -1),
        ("allowed", "enable", 1),
        ("unencrypted", "encrypted", -1),
        ("unmounted", "mount", -1),
        ("rebooting", "reboot", 1),
        ("launching", "start", 1),
        ("rootless", "root", -1),
        ("unless", "unless", 1),
        ("kept", "keep", 1),
        ("lost", "keep", -1),
        ("closed", "open", -1),
        ("close", "close", 1),
        ("unused", "use", -1),
        ("ups", "up", 1),
    ]:
        with subtests.test(str(word)):
            assert (meaning(word).name, meaning(word).sign) == (name, sign)


def test_how_much_words_say():
    assert [meaning(word).weight for word in ("takes", "service", "runs", "backup")] == [EMPTY, LIGHT, LIGHT, FULL]


def test_no_word_stands_on_both_sides_or_in_two_groups():
    for table in (SAME, [side for entry in OPPOSITE for side in entry.split("|")]):
        found = [word for entry in table for word in entry.split()]
        assert sorted(found) == sorted(set(found))


def test_stances(subtests):
    for text, expected in [
        ("Gzip is enabled", [Stance.IS]),
        ("Gzip is disabled", [Stance.NOT]),
        ("Gzip is not disabled", [Stance.IS]),
        ("Gzip is no longer enabled", [Stance.NOT]),
        ("Gzip must be enabled", [Stance.MUST]),
        ("Gzip must not be enabled", [Stance.MUST_NOT]),
        ("Gzip need not be enabled", [Stance.OPTIONAL]),
        ("No restart is needed", [Stance.OPTIONAL]),
        ("Requires no restart", [Stance.OPTIONAL]),
        ("Does not have to restart", [Stance.OPTIONAL]),
        ("A restart is optional", [Stance.OPTIONAL]),
        ("It can be restarted", [Stance.CAN]),
        ("It cannot be restarted", [Stance.NOT]),
        ("Fails to start", [Stance.NOT]),
        ("Disabled users are purged", [Stance.IS]),
        ("Gzip is on and brotli is off", [Stance.IS, Stance.NOT]),
        ("Won't start until Redis is up", [Stance.MUST, Stance.IS]),
        ("Restart takes 2 minutes", [Stance.IS]),
        ("Restart needs 2 minutes", [Stance.IS]),
        ("Restart needs 2 GB", [Stance.MUST]),
    ]:
        with subtests.test(str(text)):
            assert stances(text) == expected


def clashes(known: str, new: str) -> list[str]:
    one, other = normal_form(known), normal_form(new)
    return [turn.word for turn in opposites(one, other, one.words & other.words).clashes]


def test_opposites_clash_whichever_comes_first(subtests):
    for known, new in [
        ("Gzip is on", "Gzip is off"),
        ("Gzip is on", "Gzip is not on"),
        ("Backups are encrypted", "Backups are unencrypted"),
        ("Updates are automatic", "Updates are manual"),
        ("Redis is required", "Redis is optional"),
        ("Redis is needed", "Redis is not needed"),
        ("Must be restarted", "Must not be restarted"),
        ("Always restarts", "Never restarts"),
        ("Sync works", "Sync fails"),
        ("Sync works", "Sync is broken"),
        ("Runs on the same disk", "Runs on a separate disk"),
        ("The port is open", "The port is closed"),
        ("Swap is used", "Swap is unused"),
        ("Runs with encryption", "Runs without encryption"),
    ]:
        with subtests.test(str(known)):
            assert clashes(known, new)
            assert sorted(clashes(known, new)) == sorted(clashes(new, known))
            assert relation(known, new).kind == Kind.CONTRADICTS


def test_one_denial_in_two_forms_is_no_clash(subtests):
    for known, new in [
        ("Gzip is disabled", "Gzip is not enabled"),
        ("No restart is needed", "A restart is not required"),
        ("Redis is optional", "Redis is not mandatory"),
        ("Updates are manual", "Updates are not automatic"),
        ("Must not be deleted", "Never delete it"),
        ("Must be deleted", "Can be deleted"),
        ("Works without a mail server", "Does not need a mail server"),
        ("Slow as gzip is off", "Gzip is off, slow"),
    ]:
        with subtests.test(str(known)):
            assert clashes(known, new) == []


def in_order(known: str, new: str) -> tuple[bool, bool]:
    one, other = normal_form(known), normal_form(new)
    found = order(one, other, one.words & other.words)
    return bool(found.clashes), bool(found.doubts)


@pytest.mark.parametrize(
    ("known", "new"),
    [
        ("Start Caddy after WireGuard", "Start Caddy before WireGuard"),
        ("Start Caddy after WireGuard", "Start WireGuard after Caddy"),
        ("Start Caddy after WireGuard", "Start Caddy independently of WireGuard"),
        ("After the deploy, migrate the schema", "Migrate the schema prior to the deploy"),
        ("Start it when the disk is full", "Start it unless the disk is full"),
        ("Copies from nas to vault", "Copies from vault to nas"),
        ("Use podman instead of docker", "Use docker rather than podman"),
    ],
)
def test_the_other_way_round_clashes(known, new):
    assert in_order(known, new)[0]
    assert in_order(new, known)[0]
    assert relation(known, new).kind == Kind.CONTRADICTS


@pytest.mark.parametrize(
    ("known", "new"),
    [
        ("Start Caddy after WireGuard", "WireGuard must be started before Caddy"),
        ("Start Caddy after WireGuard", "After WireGuard, start Caddy"),
        ("Start Caddy after WireGuard", "Don't start Caddy before WireGuard"),
        ("Drain the node before rebooting it", "Before rebooting the node, drain it"),
        ("Restart on a deploy", "Restart after a deploy"),
    ],
)
def test_the_same_order_in_other_words_does_not_clash(known, new):
    assert in_order(known, new) == (False, False)
    assert relation(known, new).kind == Kind.REINFORCES


@pytest.mark.parametrize(
    ("known", "new"),
    [
        ("Caddy proxies Grafana", "Grafana proxies Caddy"),
        ("Caddy proxies Grafana", "Caddy is proxied by Grafana"),
        ("Users in a locked group", "Locked users in a group"),
    ],
)
def test_parts_that_changed_places_are_doubted(known, new):
    one, other = normal_form(known), normal_form(new)
    assert rearranged(one, other, one.words & other.words)
    assert relation(known, new).kind == Kind.DISTINCT


def test_active_and_passive_are_the_same():
    assert relation("Caddy proxies Grafana", "Grafana is proxied by Caddy").kind == Kind.REINFORCES
    assert relation("Cron rotates the logs", "The logs are rotated by cron").kind == Kind.REINFORCES


def test_what_two_texts_share():
    found = overlap(
        normal_form("The health check fails on nas-01"), normal_form("Healthcheck fails on nas-02; call support")
    )
    assert found.shared == {"work"}
    assert (found.known.words, found.new.words, found.new.aside) == ({"nas-01"}, {"nas-02"}, {"call", "support"})


def test_a_subject_and_what_goes_without_saying_are_nobody_s_own():
    found = overlap(
        normal_form("Restart of jellyfin: start takes 60s"), normal_form("start takes 60s"), frozenset({"jellyfin"})
    )
    assert found.known.words == frozenset()


@pytest.mark.parametrize("text", ["Takes 60s to start", "Restart after a deploy; don't wait", "数据库 /var 5-10s"])
def test_a_normal_form_is_made_once(text):
    assert normal_form(text) is normal_form(text)
    assert normal_form(text) == normal_form(f"{text}")
