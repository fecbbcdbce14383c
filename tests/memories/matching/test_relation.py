"""What matching must get right, whatever it is made of: `memories/matching`. No database."""

from __future__ import annotations

import json
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memories import matching
from memories.matching import Kind, Relation, relation
from memories.matching.function_words import words

START = "Takes 60s to start after restart -- wait before checking health"
SAME, AGAINST, OTHER = Kind.REINFORCES, Kind.CONTRADICTS, Kind.DISTINCT
PIECES = sorted(
    words(
        "the backup restart caddy wireguard after before when unless without not never must can need is on off enabled"
        " disabled 60s 5 minutes every day to from nas vault 3 nodes port 8096 , ; -- and or because only at manual"
        " automatic by about once twice sunday healthcheck health check optional required lost kept fails works"
    )
)
texts = st.text(st.characters(), max_size=200)
sentences = st.lists(st.sampled_from(PIECES), max_size=9).map(" ".join)


def kind(known: str, new: str, about: str | None = None) -> Kind:
    return relation(known, new, about=about).kind


def test_the_scenarios_of_the_issue(subtests):
    for known, new, expected in [
        (START, "Takes about 60 seconds to start after a restart", SAME),
        (START, "After a restart it takes 1 minute to start", SAME),
        (START, "Sometimes crashes on first start", OTHER),
        (START, "Takes 5 minutes to start", AGAINST),
        ("Takes 60s to start", "Takes 5 minutes to start", AGAINST),
        ("Takes 60s to start", "Takes 1 minute to start", SAME),
        ("Takes 60s to start", "Takes a minute to start", SAME),
        ("Must be started after WireGuard", "Can be started independently of WireGuard", AGAINST),
        ("Must be started after WireGuard", "WireGuard has to be started first, before it", OTHER),
    ]:
        with subtests.test(str(known)):
            assert kind(known, new) == expected
            assert kind(new, known) == expected


@pytest.mark.parametrize(
    "new",
    [
        "MUST BE STARTED AFTER WIREGUARD!",
        "  must be   started, after `WireGuard`.",
        "“Must be started after WireGuard”",
        "Must\u200b be started after Wire\u00adGuard",
        "Must be started after the WireGuard",
        "Must generally be started after WireGuard",
        "It has to be started after WireGuard",
    ],
)
def test_spelling_small_words_and_hedges_make_no_difference(new):
    found = relation("Must be started after WireGuard", new)
    assert (found.kind, found.score) == (SAME, 1.0)


def test_other_things_by_name_are_other_facts(subtests):
    for known, new in [
        ("Listens on port 8096", "Listens on port 8920"),
        ("Runs on version 2.1.3", "Runs on version 2.1.4"),
        ("Needs PHP 8.2", "Needs PHP 8.3"),
        ("Backups go to nas-01", "Backups go to nas-02"),
        ("Proxies media.example.net", "Proxies photos.example.net"),
        ("Logs are in /var/log/caddy", "Logs are in /srv/log/caddy"),
        ("Is reached at 10.0.0.4", "Is reached at 10.0.0.5"),
        ("Scrubs on Mondays", "Scrubs on Fridays"),
        ("Answers 502 during a reload", "Answers 504 during a reload"),
        ("The web container must run as UID 1000", "The web container must run as UID 999"),
        ("Depends on Redis", "Depends on Postgres"),
        ("Restart the web worker after a deploy", "Restart the mail worker after a deploy"),
    ]:
        with subtests.test(str(known)):
            assert kind(known, new) == OTHER


@pytest.mark.parametrize("cosine", [None, 0.97])
@pytest.mark.parametrize(
    ("known", "new"),
    [
        ("The volume is mounted from ceph-a", "The volume is mounted from ceph-b"),
        ("The pool runs in zone-a", "The pool runs in zone-b"),
        ("The scheduler runs on node-i", "The scheduler runs on node-a"),
        ("The gateway is owned by team A", "The gateway is owned by team B"),
        ("the gateway is owned by team a.", "the gateway is owned by team i."),
        ("The backup goes to disk C", "The backup goes to disk D"),
        ('The vm "pve-a" hosts the registry', 'The vm "pve-b" hosts the registry'),
        ("Host I is slow after a reboot", "Host A is slow after a reboot"),
        ("The a-record is set by hand", "The b-record is set by hand"),
        ("vg_a is full", "vg_b is full"),
    ],
)
def test_a_lone_letter_is_part_of_the_name(known, new, cosine):
    assert relation(known, new, cosine=cosine).kind == OTHER


AGREEING = """
Use the async runtime for the importer | Do not forget to use the async runtime for the importer
Drain the node before a reboot | Do not forget to drain the node before a reboot
Drain the node before a reboot | Never forget to drain the node before a reboot
Rotate the keys each month | Don't forget to rotate the keys each month
Run the checks after each deploy | Never skip the checks after each deploy
Disable the cache before the import | Remember not to skip disabling the cache before the import
Disable the cache before the import | Make sure not to skip disabling the cache before the import
Restart the worker if it hangs | Do not hesitate to restart the worker if it hangs
Check the certificate first | Do not fail to check the certificate first
Check the certificate first | Never neglect to check the certificate first
The backup works | The backup no longer fails
Do not restart the gateway | Refrain from restarting the gateway
The cache must stay disabled | Never enable the cache
It is possible to restore a single table | It is not impossible to restore a single table
Flush the queue before stopping | You should never forget to flush the queue before stopping
The daemon must not be running | Make sure the daemon is not running
"""
COMPATIBLE = """
Verify the checksum | Do not omit verifying the checksum
Verify the checksum | Never forget verifying the checksum
The feature is disabled in production | Leave the feature disabled in production
The swap must be disabled | Leave the swap disabled
Do not enable the swap | Leave the swap disabled
The old node must be offline | Keep the old node offline
The standby must not be online | Keep the standby offline
Do not disable the firewall | Keep the firewall enabled
The firewall must stay on | Do not disable the firewall
The exporter needs the socket | Without the socket the exporter does not start
The importer needs the queue | The importer cannot work without the queue
Mails are sent by the worker | Mails are sent asynchronously by the worker
The importer runs at night | The importer runs asynchronously
Use the client for uploads | Use the asynchronous client for uploads
Writes are buffered for five seconds | Writes are asynchronous
Do not send mails synchronously | Mails are sent asynchronously
Lock the vault at night | Never leave the vault unlocked at night
"""
DENIED = """
Do not forget to drain the node before a reboot | Do not drain the node before a reboot
Don't forget to rotate the keys each month | Never rotate the keys each month
Run the checks after each deploy | Skip the checks after each deploy
Use the async runtime for the importer | Do not use the async runtime for the importer
The import runs asynchronously | The import runs synchronously
Leave the feature disabled in production | Leave the feature enabled in production
Keep the old node offline | Keep the old node online
Make sure that the daemon is running | Make sure that the daemon is not running
Der Dienst darf neu gestartet werden | Der Dienst darf nicht neu gestartet werden
Der Knoten hat eine Sicherung | Der Knoten hat keine Sicherung
Den Dienst immer neu starten | Den Dienst niemals neu starten
不要重启网关 | 可以重启网关
禁止在备份期间重启数据库 | 允许在备份期间重启数据库
必须加密备份 | 不必加密备份
备份已加密 | 备份未加密
El servicio puede reiniciarse | El servicio no puede reiniciarse
Nunca reiniciar el servicio | Reiniciar el servicio
Le service peut être redémarré | Le service ne peut pas être redémarré
La passerelle n'est pas redémarrée | La passerelle est redémarrée
バックアップ中に再起動してよい | バックアップ中に再起動してはいけない
ゲートウェイは再起動できる | ゲートウェイは再起動できない
백업 중에 재시작해도 된다 | 백업 중에 재시작하면 안 된다
Сервис можно перезапускать | Сервис нельзя перезапускать
O serviço pode ser reiniciado | O serviço não pode ser reiniciado
De dienst mag herstart worden | De dienst mag niet herstart worden
ห้ามรีสตาร์ทเกตเวย์ | รีสตาร์ทเกตเวย์ได้
"""


def pairs_of(table: str) -> list[tuple[str, str]]:
    """Each line both ways round."""
    lines = [line.split(" | ") for line in table.strip().splitlines()]
    return [(known, new) for known, new in lines] + [(new, known) for known, new in lines]


def test_a_negation_has_a_scope_and_two_of_them_agree(subtests):
    for known, new in pairs_of(AGREEING):
        with subtests.test(new):
            assert [relation(known, new, cosine=cosine).kind for cosine in (None, 0.9)] == [SAME, SAME]
    for known, new in pairs_of(COMPATIBLE):
        with subtests.test(new):
            assert AGAINST not in [relation(known, new, cosine=cosine).kind for cosine in (None, 0.7, 0.8, 0.9)]


def test_one_denial_is_a_contradiction_in_other_languages_too(subtests):
    for known, new in pairs_of(DENIED):
        with subtests.test(new):
            assert [relation(known, new, cosine=cosine).kind for cosine in (None, 0.6, 0.95)] == [AGAINST] * 3


def test_a_denial_in_other_words_is_a_question_and_no_restatement():
    for known, new in [
        ("备份期间不要重启数据库", "可以在备份期间重启数据库"),
        ("Der Dienst darf neu gestartet werden", "Der Dienst muss nicht neu gestartet werden"),
    ]:
        found = relation(known, new)
        assert (found.kind, matching.may_be_one(found.evidence)) == (OTHER, True)
        assert relation(known, new, cosine=0.99).kind == OTHER
    for known, new in [
        ("不要重启节点1", "可以重启节点2"),
        ("不要重启网关", "备份每天运行"),
        ("Das Backup darf nicht gelöscht werden", "Das Backup darf geprüft werden"),
    ]:
        found = relation(known, new)
        assert (found.kind, matching.may_be_one(found.evidence)) == (OTHER, False), new


SIBLINGS = """
Race probe number {} about the ledger file | The race probe number {} waits for the lock | Probe no. {} is slow
PR #{} waits for review | Node {} is slow after a reboot | Step {} takes ten minutes | Run {} ended with a timeout
Build {} fails on arm | Camera {} records at night | Replica {} lags behind the leader | Level {} alerts go to the chat
Priority {} tickets page the on-call | Probe {} writes to the ledger | PR {} broke the build | Thread {} deadlocks
Migration {} locks the orders table | GPU {} overheats under load | Check {} fails without IPv6 | API v{} returns XML
The probe with number {} waits | Line {} of the config is ignored | The printer on floor {} jams often
The cable of rack {} is loose | After step {} the cache is empty | Python 3.1{} images lack the timezone data
Ticket ABC-1{} is about the disk | Table orders_{} is partitioned | Version {} of the API needs a token
The 202{} report is in the archive | The 202{} certificates are archived | The 0{}:00 job rotates logs
The {} o'clock run imports orders | The v{} API needs a token | node-{} has 32 GB of memory
"""
"""A thing in the place of {}, by number."""


def test_what_numbers_or_names_the_subject_is_no_value_of_it(subtests):
    frames = [frame.strip() for line in SIBLINGS.strip().splitlines() for frame in line.split("|")]
    pairs = [(frame.format(one), frame.format(other)) for frame in frames for one, other in ((5, 6), (2, 3))]
    pairs += [
        (frame.format(one), frame.format(other))
        for frame, one, other in (
            ("Slot {} holds the spare disk", "five", "six"),
            ("Sensor {} reads too low", "seven", "eight"),
            ("Zone {} is drained at night", "A", "B"),
            ("Team {} deploys on Mondays", "red", "blue"),
            ("{}'s backup is incremental", "Monday", "Tuesday"),
            ("The {} replica lags behind", "second", "third"),
            ("The {} cluster runs nightly builds", "dev", "prod"),
        )
    ]
    pairs.append(("Probe 5 takes 10 s", "Probe 6 takes 20 s"))
    for known, new in pairs:
        with subtests.test(str(known)):
            assert [relation(known, new, cosine=cosine).kind for cosine in (None, 0.97)] == [OTHER, OTHER]


def test_a_value_of_the_same_subject_that_changed_is_a_contradiction(subtests):
    for frame, one, other in [
        ("The port of the proxy is {}", 8443, 9443),
        ("A restart takes {} s", 60, 90),
        ("Node 1 takes {} s to start", 60, 90),
        ("Probe number 5 runs every {} minutes", 10, 20),
        ("The 02:00 job takes {} minutes", 5, 9),
        ("Camera 4 records at {} frames per second", 10, 20),
        ("The service has {} replicas", 3, 5),
        ("{} workers serve the queue", "Two", "Five"),
        ("The database runs on a {} node cluster", 3, 5),
        ("Allow {} restarts per hour", 3, 5),
        ("Send {} reports to the team", 5, 6),
        ("Keep {} copies of each dump", 3, 5),
        ("The scheduler makes {} retries", 3, 5),
        ("The array can lose only {}", "one disk", "two disks"),
        ("The number of workers is {}", 5, 6),
        ("The log level is {}", 3, 4),
        ("The backup starts at {}", "02:00", "03:00"),
        ("{} nodes form the quorum", 3, 5),
        ("MTU {} fixed the stalls", 1380, 1280),
    ]:
        with subtests.test(frame):
            assert kind(frame.format(one), frame.format(other)) == AGAINST
    assert kind("Slot five holds the spare disk", "Slot 5 holds the spare disk") == SAME
    assert kind("Probe no. 5 waits for the lock", "Probe number 5 waits for the lock") == SAME


def test_an_article_is_no_letter_of_a_name():
    assert kind("Restart the node a minute after the upgrade", "Restart node a minute after upgrade") == SAME
    assert kind("The e-mail relay is slow", "The email relay is slow") == SAME
    swapped = ("The primary is db-a and the standby db-b", "The primary is db-b and the standby db-a")
    assert kind(*swapped) != SAME
    assert kind("Zone A holds the backups", "zone-a holds the backups") == SAME


def test_a_name_that_differs_outweighs_everything_that_clashes():
    assert kind("nas-01 is backed up at 02:00", "nas-02 is not backed up") == OTHER
    assert kind("The orders queue keeps messages for 7 days", "The mail queue keeps messages for 2 days") == OTHER


@pytest.mark.parametrize(
    ("known", "new"),
    [
        ("Backup of the library takes 20 minutes", "Backup of the media library takes 20 minutes"),
        ("Restart after an upgrade", "Restart after a kernel upgrade"),
        ("Copies snapshots from tank to vault", "Copies snapshots to vault"),
        ("All clients are logged", "Only guest clients are logged"),
    ],
)
def test_a_word_more_is_a_fact_more(known, new):
    assert kind(known, new) == OTHER
    assert kind(new, known) == OTHER


def test_a_statement_more_is_the_same_fact_unless_it_is_one_itself():
    known = "Takes 60s to start after restart"
    assert kind(known, f"{known} -- be patient") == SAME
    assert kind(known, f"{known}; the import of nas-03 fails") == OTHER
    assert kind(f"{known}; be patient", f"{known}; warn the users") == OTHER


def test_the_subject_need_not_be_named():
    assert kind("Takes 60s to start", "Jellyfin takes 60s to start") == OTHER
    assert kind("Takes 60s to start", "Jellyfin takes 60s to start", about="jellyfin") == SAME
    assert kind("Takes 60s to start", "Jellyfin takes 2 minutes to start", about="jellyfin") == AGAINST
    assert kind("Takes 60s to start", "Sonarr takes 60s to start", about="jellyfin") == OTHER


def test_a_denial_of_less_leaves_the_rest_true():
    assert kind("Streaming works", "Streaming does not work from abroad") == OTHER
    assert kind("Streaming works from abroad", "Streaming does not work") == AGAINST


def test_texts_that_turn_round_twice_may_say_the_same():
    assert kind("Works when gzip is on", "Fails when gzip is off") == OTHER
    assert kind("Retention is 30 days", "Retention is not 7 days") == OTHER


def test_any_text_is_itself(subtests):
    for text in ["", " ", "...", "👍", "数据库每天备份", "to be or not to be", "\x00\ud800", "a" * 10_000]:
        with subtests.test(ascii(text)):
            assert kind(text, text) == SAME


@pytest.mark.parametrize(
    ("known", "new"),
    [("👍", "👎"), ("Backups ✅", "Backups ❌"), ("数据库每天备份", "数据库每周备份"), ("", "Takes 60s"), ("?", "!")],
)
def test_what_is_not_understood_is_not_merged(known, new):
    assert kind(known, new) == OTHER


@given(texts, texts)
def test_no_text_makes_it_raise_and_the_evidence_is_json(known, new):
    found = relation(known, new)
    assert 0 <= found.score <= 1
    assert found.why
    assert json.loads(json.dumps(found.evidence, allow_nan=False)) == found.evidence


@given(texts | sentences, texts | sentences)
def test_it_does_not_matter_which_text_was_there_first(known, new):
    there, back = relation(known, new), relation(new, known)
    assert (there.kind, there.score) == (back.kind, back.score)


@given(sentences, st.lists(st.tuples(st.integers(0, 8), st.sampled_from(PIECES)), max_size=2))
def test_nor_does_it_for_texts_that_are_nearly_the_same(known, changes):
    pieces = known.split()
    for at, piece in changes:
        pieces.insert(at, piece)
    new = " ".join(pieces)
    there, back = relation(known, new), relation(new, known)
    assert (there.kind, there.score) == (back.kind, back.score)


@given(texts | sentences)
def test_a_text_reinforces_itself(text):
    assert relation(text, text).kind == SAME
    assert relation(text, text).score == 1.0


@pytest.mark.parametrize(
    "piece",
    [
        "word ", "x", "1 2 3 ", "60s to start, ", "not without ", "and or not ", "if a then b ", "a.b:c=d/",
        "((", "- ", "5-10 ", "'", "a_b-c ",
    ],
)  # fmt: skip
def test_long_texts_are_read_in_linear_steps(piece):
    """Counted, not timed: twice the text takes at most little more than twice the steps."""

    def steps(length: int) -> int:
        count = 0

        def trace(frame: object, event: str, argument: object) -> object:
            nonlocal count
            count += event in ("line", "call")
            return trace

        text = (piece * 10_000)[:length]
        before = sys.gettrace()
        sys.settrace(trace)
        try:
            matching.relation(text, text[: length - 7] + " x")
        finally:
            sys.settrace(before)
        return count

    short, long = steps(1_500), steps(3_000)
    assert long < 2.5 * short + 1_000


def test_the_evidence_says_what_was_compared():
    found = relation(START, "Takes 5 minutes to start")
    assert found.evidence["quantities"] == [{"known": "60 s", "new": "5 minutes", "verdict": "different"}]
    assert found.evidence["shared"] == ["start"]
    assert found.evidence["only_known"] == ["check", "health", "wait"]
    assert found.evidence["only_new"] == []
    assert found.evidence["similarity"] == found.score
    assert found.why == "Of the same thing one says 60 s, the other 5 minutes."


def test_the_evidence_says_what_turned_round():
    found = relation("Gzip is enabled", "Gzip is no longer active")
    assert found.evidence["negation"] == {"known": [], "new": ["not"]}
    assert {"word": "gzip", "known": "is", "new": "is not"} in found.evidence["stance"]
    assert relation("Gzip is on", "Gzip is disabled").evidence["antonyms"] == {"known": [], "new": ["disabled"]}
    assert relation("Starts before Redis", "Starts after Redis").evidence["order"]
    assert relation("Uses wg0", "Uses wg1").evidence["names"] == {"known": ["wg0"], "new": ["wg1"]}


def test_another_matcher_can_take_its_place(monkeypatch):
    class Sure:
        def relation(self, known: str, new: str, *, about: str | None = None, cosine: float | None = None) -> Relation:
            return Relation(Kind.DISTINCT, 0.5, {"why": f"{known}, {new} of {about}"})

    monkeypatch.setattr(matching, "matcher", Sure())
    assert relation("a", "a", about="b").why == "a, a of b"
