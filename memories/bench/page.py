"""One Markdown page of what the benches found, made of their JSON documents alone. Pure: the same in, the same out.

No path of a machine gets onto it: of a set its file's name, of a model its identity, of an error nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

KINDS = ("recall", "matching", "latency")
MEASURES = ("recall@1", "recall@5", "recall@10", "recall@20", "hit@1", "hit@5", "mrr", "ndcg@10")
AIMS_MS = {1_000: 15, 10_000: 20, 100_000: 30, 1_000_000: 80}
"""p95 of a recall by number of memories, milliseconds; in between the next larger size's."""
REMEMBER_MS, MEMORY_MB, START_S, VECTORS = 20, 400, 1.0, 0.99
"""remember's p50, memory and start, all up to AIMED_AT memories; the share of the ten nearest at any size."""
AIMED_AT = 100_000

Data = Mapping[str, Any]


def page(found: Sequence[tuple[str, Data]], command: str) -> str:
    """The page of (kind, result) in the order given within each kind. `command` is how it is made again."""
    parts = [
        "# Results",
        f"Made by `{command}` from the `--json` documents of the benches; edits are lost when it is\n"
        "made again. What is measured and how: [recall](recall.md#measuring), [matching](matching.md#figures), "
        "[how fast it is](benchmarks.md).",
    ]
    makers = {"recall": _recall, "matching": _matching, "latency": _latency}
    for kind in KINDS:
        of_kind = [data for name, data in found if name == kind]
        if of_kind:
            parts += makers[kind](of_kind)
    return "\n\n".join(parts) + "\n"


def _recall(found: Sequence[Data]) -> list[str]:
    parts = ["## Recall", "Means over the queries, 95 % bootstrap intervals in brackets."]
    for data in found:
        context = ", with neighbour context" if data["context"] else ""
        parts += [
            f"### {data['set']}{context}",
            f"{data['counted']:,} queries over {data['memories']:,} memories; {_meaning(data['semantic'])}.",
            _measured_on(data["machine"]),
        ]
        rows = []
        for name, figures in data["variants"].items():
            if figures:
                shown = [_with_interval(figures[one]) if name == "recall" else _mean(figures[one]) for one in MEASURES]
                rows.append([f"**{name}**" if name == "recall" else name, *shown])
        parts.append(_table(["ranking", *MEASURES], rows))
        if data["categories"]:
            rows = [
                [name, f"{figures['queries']:,}", *(_with_interval(figures[one]) for one in MEASURES)]
                for name, figures in data["categories"].items()
            ]
            parts.append(_table(["category", "queries", *MEASURES], rows))
    return parts


def _matching(found: Sequence[Data]) -> list[str]:
    headers = [
        *("set", "pairs", "macro-F1", "distinct lost", "contradictions swallowed", "restatements merged"),
        "destructive errors",
    ]
    rows = []
    for data in found:
        rates = ("distinct_lost", "contradictions_swallowed", "restatements_merged", "destructive")
        by = "" if data["semantic"].startswith("on") else " (by words alone)"
        rows.append(
            [f"{data['set']}{by}", f"{data['pairs']:,}", f"{data['macro_f1']:.3f}", *(_percent(data[r]) for r in rates)]
        )
    parts = ["## Matching", _table(headers, rows)]
    parts.append("How often what a person said (first) was taken for what:")
    kinds = ("reinforces", "contradicts", "distinct")
    rows = [
        [f"{data['set']}: {truth}", *(f"{data['confusion'][truth][taken]:,}" for taken in kinds)]
        for data in found
        for truth in kinds
    ]
    parts.append(_table(["said", *kinds], rows))
    meanings = sorted({_meaning(data["semantic"]) for data in found})
    parts.append(_sentence("; ".join(meanings)))
    parts.append(_measured_on(found[-1]["machine"], speed=False))
    return parts


def _latency(found: Sequence[Data]) -> list[str]:
    parts = [
        "## Latency",
        "Milliseconds, each call in a process that does nothing else; a recall with its query's embedding and its\n"
        "record, no query twice. Under load, another process rebuilds the index, sweeps and takes a session in\n"
        "meanwhile. Own CPU is the processor time of the asking process, PostgreSQL's not counted: others on the\n"
        "machine make a call wait, and move this less. The sentences are made by a generator.",
    ]
    for data in found:
        machine = data["machine"]
        counts = [f"{one['memories']:,}" for one in data["sizes"]]
        sizes = counts[0] if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
        parts.append(f"### {machine['database']}, {sizes} memories")
        parts.append(_measured_on(machine, _loads(data)))
        parts.append(f"{_sentence(_meaning(data['semantic']))} {data['runs']} calls of each kind.")
        headers = [
            *("memories", "recall p50", "p95", "aim p95", "own CPU p50", "p95"),
            *("under load p50", "p95", "remember p50", "p95", "own CPU p50"),
        ]
        parts.append(_table(headers, [_times(one) for one in data["sizes"]]))
        headers = [
            "memories",
            "process MB",
            "start to first answer s",
            "vector recall@10",
            "vectors",
            "done under load",
        ]
        parts.append(_table(headers, [_others(one) for one in data["sizes"]]))
    measured = {one["memories"] for data in found for one in data["sizes"]}
    missing = [f"{size:,}" for size in AIMS_MS if size not in measured]
    if missing:
        parts.append(f"**Not measured for this page**, though there are aims: {' and '.join(missing)} memories.")
    return parts


def _times(one: Data) -> list[str]:
    recall, under, remember = one["recall"], one["under_load"], one["remember"]
    aim = next((ms for size, ms in AIMS_MS.items() if one["memories"] <= size), None)
    reached = "" if aim is None else f"{aim}: " + ("reached" if recall["p95"] < aim else "missed")
    return [
        f"{one['memories']:,}",
        *(f"{recall[name]:g}" for name in ("p50", "p95")),
        reached,
        *(f"{one['recall_cpu'][name]:g}" for name in ("p50", "p95")),
        *(f"{under[name]:g}" for name in ("p50", "p95")),
        _against(f"{remember['p50']:g}", remember["p50"] < REMEMBER_MS, one, f"{REMEMBER_MS}"),
        f"{remember['p95']:g}",
        f"{one['remember_cpu']['p50']:g}",
    ]


def _others(one: Data) -> list[str]:
    did, exact = one["load_did"], one["vector_recall_at_10"]
    near = "" if exact is None else f"{exact:.3f}" + ("" if exact >= VECTORS else f" (aim {VECTORS}: missed)")
    return [
        f"{one['memories']:,}",
        _against(str(one["memory_mb"]), one["memory_mb"] < MEMORY_MB, one, f"{MEMORY_MB}"),
        _against(f"{one['start_seconds']:g}", one["start_seconds"] < START_S, one, f"{START_S:g}"),
        near,
        _vectors(one),
        f"{did['indexed']:,} indexed, {did['swept']:,} swept, {did['ingested']:,} taken in, "
        f"{did['refused']:,} refused, in {did['seconds']:g} s",
    ]


def _vectors(one: Data) -> str:
    real, mixed, by = one["vectors"]["real"], one["vectors"]["mixed"], one.get("vectors_served_by")
    if not real:
        return "none"
    return f"{real:,} by the model, {mixed:,} mixed with noise" + (f"; searched by {by}" if by else "")


def _against(shown: str, reached: bool, one: Data, aim: str) -> str:
    return shown if reached or one["memories"] > AIMED_AT else f"{shown} (aim {aim}: missed)"


def _loads(data: Data) -> list[float]:
    return [value for one in data["sizes"] for value in one["load"] if value is not None]


def _measured_on(machine: Data, loads: Sequence[float] = (), *, speed: bool = True) -> str:
    """Date, machine and versions; and that it was busy, when more wanted to run than there are cores."""
    busy = [*loads, *([machine["load"]] if machine["load"] is not None else [])]
    on = [machine["database"]] if machine["database"] else []
    on += [f"{machine['cores']} cores, {machine['processor']}", f"Python {machine['python']}"]
    on += [f"Django {machine['django']}", f"numpy {machine['numpy']}"]
    if busy and speed:
        on.append(f"load {min(busy):g} to {max(busy):g}" if min(busy) < max(busy) else f"load {busy[0]:g}")
    text = f"Measured {machine['at']}: {', '.join(on)}."
    # What the bench does itself is a load of one, and of two with the load it makes.
    if speed and loads and max(busy) > machine["cores"] + 1:
        text += (
            f"\n**Measured under load**: others used the machine too (up to {max(busy):g} processes wanted its "
            f"{machine['cores']} cores), so these are not the figures of a quiet machine."
        )
    return text


def _meaning(semantic: str) -> str:
    if semantic.startswith("on"):
        return f"meaning by {semantic[4:-1]}" if semantic.startswith("on (") else "meaning is on"
    return "by words alone, without a model"


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def _with_interval(figure: Data) -> str:
    return f"{figure['mean']:.3f} [{figure['low']:.3f}, {figure['high']:.3f}]"


def _mean(figure: Data) -> str:
    return f"{figure['mean']:.3f}"


def _percent(share: float) -> str:
    return f"{share:.1%}".replace("%", " %")


def _table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in (headers, *rows)]
    lines.insert(1, "|" + "---|" * len(headers))
    return "\n".join(lines)
