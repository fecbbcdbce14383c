"""What the gate and the reading of markers cost a text."""

from __future__ import annotations

from claudeops.lib.secrets import mask
from memories.capture.gate import LONGEST, Word, judge
from memories.capture.markers import memory_markers
from memories.capture.text import fold
from sessions_app.runner.markers import markers
from tests.benchmarks.conftest import Report
from tests.benchmarks.measure import Series, ms
from tests.memories.observe.poisoned import HONEST

SENTENCES = {
    "English": "Takes 60 s to start after a restart on node-3; wait before checking /health, or it flaps. ",
    "German": "Braucht 60 s für den Start nach einem Neustart auf Node-3; vorher nicht prüfen, sonst flattert er. ",
    "Russian": "Запускается за 60 с после перезагрузки узла node-3; не проверять раньше, иначе он мигает. ",
    "Japanese": "ノード３の再起動後、起動に60秒かかる。それまでヘルスチェックをしないこと。",
    "a command": "`docker ps --format '{{.Names}}' | grep <name>` shows it; curl -sf http://localhost/health | jq . ",
}
LENGTHS = (100, 1_000, 10_000)


def test_gate(report: Report, smoke: bool) -> None:
    rows = []
    for name, sentence in SENTENCES.items():
        texts = [(sentence * (length // len(sentence) + 1))[:length] for length in LENGTHS]
        rows.append((name, *(ms(timed(text, 3 if smoke else 60).median) for text in texts)))
    report("GATE, one text, median", ("text", *(f"{length:,} characters" for length in LENGTHS)), rows)


def timed(text: str, times: int) -> Series:
    series = Series()
    for _ in range(times):
        verdict = series.time(lambda: judge(text, fold(text))).verdict
        assert verdict == "allow"
    return series


def test_gate_of_facts(report: Report, smoke: bool) -> None:
    """Facts of observed sessions: the rules for knowledge, and the model's word."""
    word, series = Word("allow", 0.9, "haiku"), Series()
    for turn in range(1 if smoke else 17):
        for text in HONEST:
            said = f"{text} {turn}"
            assert series.time(lambda said=said: judge(said, said, taxonomy="knowledge", word=word)).verdict == "allow"
    report("GATE, one fact with the rules for knowledge", ("median", "p95"), [(ms(series.median), ms(series.p95))])


def test_markers(report: Report, smoke: bool) -> None:
    plain = "- Looked at **caddy**: `caddy reload` took 3 s, see the log.\n\n"
    rows = []
    for name, number in (("without a marker", 0), ("one marker", 1), ("ten markers", 10)):
        marked = "\n".join(f"[MEMORY:timing:caddy-{n}] Reload takes {n} s" for n in range(number))
        cells = []
        for length in LENGTHS:
            text = f"{(plain * (length // len(plain) + 1))[: max(0, length - len(marked))]}\n\n{marked}"
            series = Series()
            for turn in range(3 if smoke else 60):
                found = series.time(both, f"{text}\n{turn}")  # not the same text: the last ones are cached
                assert found == number
            cells.append(ms(series.median))
        rows.append((name, *cells))
    report("MARKERS, read from one text, median", ("text", *(f"{length:,} characters" for length in LENGTHS)), rows)


def both(text: str) -> int:
    assert not markers(text).events
    return len(memory_markers(text).found)


HOSTILE = {
    "密码是": "密码是",
    "password=": "password=",
    "backticks": "`",
    "brackets": "[",
    "[MEMORY:": "[MEMORY:",
    "spaces": " ",
    "quotes": '"',
    "quotations": "> a\n",
    "list items": "- a\n  ",
    "a table": "|a|b|\n",
    "tildes": "~",
    "orders": "run the ",
    "hosts": "a.b-c.",
}
LIMIT = 3.0
"""Seconds for 100,000 characters, on a busy machine; a quiet one takes less than one."""


def test_hostile_repetitions(report: Report, smoke: bool) -> None:
    length = 10_000 if smoke else 100_000
    rows = []
    for name, filler in HOSTILE.items():
        text = f"[MEMORY:timing:x] a\n{filler * (length // len(filler))}"[:length]
        series = [Series(), Series(), Series(), Series()]
        series[0].time(mask, text)
        series[1].time(both, text)
        series[2].time(lambda text=text: judge(text[:LONGEST], fold(text[:LONGEST])))
        series[3].time(lambda text=text: judge(text[:LONGEST], fold(text[:LONGEST]), taxonomy="knowledge"))
        assert max(one.median for one in series) < LIMIT
        rows.append((name, *(ms(one.median) for one in series)))
    report(
        f"HOSTILE, {length:,} characters", ("repeated", "mask", "markers", "gate (10,000)", "knowledge (10,000)"), rows
    )
