"""The demo's recorded streams have the CLI's own shapes, and hold nothing of a real machine."""

from __future__ import annotations

import json
import re
from datetime import datetime
from itertools import pairwise
from pathlib import Path

import pytest

from memories.capture.markers import memory_from_key, memory_markers
from sessions_app.demo.setup import AGENTS
from sessions_app.replay.pick import PACKAGE
from sessions_app.runner.command import RESPONSE_SCHEMA
from sessions_app.runner.markers import markers

RECORDED = Path(__file__).parents[2] / "data" / "streams"
STREAMS = PACKAGE / "demo" / "streams"
FILES = sorted(STREAMS.glob("*/*.jsonl"))
NAMES = [f"{file.parent.name}/{file.stem}" for file in FILES]
streams = pytest.mark.parametrize("file", FILES, ids=NAMES)


def lines(file):
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def message(line):
    found = line.get("message")
    return found if isinstance(found, dict) else {}


def blocks(line):
    content = message(line).get("content", [])
    return content if isinstance(content, list) else []


def kind(line):
    """What sort of line it is: its type, with the subtype or the blocks that decide its fields."""
    names = [line["type"], line.get("subtype", "") if line["type"] == "system" else ""]
    names += [block["type"] for block in blocks(line)]
    names.append("synthetic" if message(line).get("model") == "<synthetic>" else "")
    return ":".join(filter(None, names))


def said(file):
    """The texts that may carry markers."""
    return [
        block["text"]
        for line in lines(file)
        if line["type"] == "assistant" and line["message"]["model"] != "<synthetic>"
        for block in blocks(line)
        if block["type"] == "text"
    ]


def all_of(name):
    return "\n".join(text for text in said(STREAMS / name))


def real_lines():
    return [line for file in sorted(RECORDED.glob("*.jsonl")) for line in lines(file)]


def test_every_agent_of_the_demo_has_its_streams():
    assert {file.parent.name for file in FILES} == set(AGENTS)
    assert len(FILES) == 22


@streams
def test_no_line_has_a_field_that_the_cli_does_not_write(file):
    known: dict[str, set[str]] = {}
    messages: dict[str, set[str]] = {}
    for line in real_lines():
        known.setdefault(kind(line), set()).update(line)
        messages.setdefault(kind(line), set()).update(message(line))
    for line in lines(file):
        assert kind(line) in known
        assert set(line) <= known[kind(line)]
        assert set(message(line)) <= messages[kind(line)]


@streams
def test_a_stream_is_one_process_from_its_introduction_to_its_result(file):
    played = lines(file)
    assert kind(played[0]) == "system:init"
    assert [line["type"] for line in played].count("result") == 1
    assert played[-1]["type"] == "result"
    assert len({line["session_id"] for line in played}) == 1
    ids = [line["uuid"] for line in played]
    assert len(set(ids)) == len(ids)


@streams
def test_every_tool_result_answers_the_tool_use_before_it(file):
    asked: list[str] = []
    for line in lines(file):
        for block in blocks(line):
            if block["type"] == "tool_use":
                asked.append(block["id"])
            if block["type"] == "tool_result":
                assert [block["tool_use_id"]] == asked
                asked.clear()
    assert not asked


@streams
def test_lines_of_one_message_share_its_id_and_repeat_their_usage(file):
    seen: dict[str, list[str]] = {}
    order = []
    for line in lines(file):
        if line["type"] == "assistant":
            name = line["message"]["id"]
            usage = json.dumps(line["message"]["usage"])
            seen.setdefault(name, []).append(usage)
            order.append(name)
            assert len(blocks(line)) == 1
    assert all(len(set(usages)) == 1 for usages in seen.values())
    assert [name for i, name in enumerate(order) if i == 0 or order[i - 1] != name] == list(seen)


@streams
def test_the_result_counts_what_the_stream_shows(file):
    *played, result = lines(file)
    turns = 1 + sum(line["type"] == "user" for line in played)
    assert result["num_turns"] == turns
    used = {line["message"]["id"]: line["message"]["usage"] for line in played if line["type"] == "assistant"}
    for field in ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"):
        assert result["usage"][field] == sum(usage[field] for usage in used.values())
    assert result["total_cost_usd"] == sum(model["costUSD"] for model in result["modelUsage"].values())
    assert 0 < result["total_cost_usd"] < 0.1


@streams
def test_time_runs_forward_and_a_run_takes_about_half_a_minute(file):
    *played, result = lines(file)
    times = [datetime.fromisoformat(line["timestamp"]) for line in played if "timestamp" in line]
    assert times == sorted(times)
    assert 10 <= (times[-1] - times[0]).total_seconds() <= 60
    assert max((b - a).total_seconds() for a, b in pairwise(times)) <= 20
    assert 10_000 <= result["duration_ms"] <= 62_000


@streams
def test_nothing_of_a_real_machine_or_person_is_in_it(file):
    text = file.read_text(encoding="utf-8")
    roots = set(re.findall(r"(?<![\w./:\]*-])/(srv|home|root|work|Users|opt|mnt|tmp)\b(?:/([\w.-]+))?", text))
    assert roots <= {("srv", "homelab"), ("srv", "media"), ("srv", "backup"), ("srv", "tea-shop"), ("home", "agent")}
    assert not re.findall(r"[\w.]+@[\w-]+\.(?:com|net|org|io|dev)\b", text)
    addresses = set(re.findall(r"\b\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}\b", text))
    public_resolvers = {"9.9.9.9", "149.112.112.112"}
    assert {a for a in addresses if not a.startswith(("127.", "10.", "0."))} <= public_resolvers


@streams
def test_a_good_run_ends_with_an_answer_to_the_schema(file):
    result = lines(file)[-1]
    if result["is_error"]:
        assert "structured_output" not in result
        return
    answer = result["structured_output"]
    assert json.loads(result["result"]) == answer
    assert set(answer) == set(RESPONSE_SCHEMA["required"])
    levels = RESPONSE_SCHEMA["properties"]["events"]["items"]["properties"]["level"]["enum"]
    states = RESPONSE_SCHEMA["properties"]["services_checked"]["items"]["properties"]["status"]["enum"]
    assert {event["level"] for event in answer["events"]} <= set(levels)
    assert {check["status"] for check in answer["services_checked"]} <= set(states)
    services = ["caddy", "jellyfin", "postgres", "adguard", "wireguard"]
    of_homelab = not file.parent.name.startswith("shop-")
    assert [check["name"] for check in answer["services_checked"]] == (services if of_homelab else [])


@streams
def test_every_marker_an_agent_writes_can_be_read(file):
    for text in said(file):
        assert not markers(text).malformed
        unknown = memory_markers(text, in_project=bool(AGENTS[file.parent.name].get("project"))).unknown
        assert [marker.category for marker in unknown] in ([], ["baseline"])
    for memory in lines(file)[-1].get("structured_output", {}).get("memories", []):
        assert memory_from_key(memory["key"], memory["value"]).category in (
            "timing",
            "dependency",
            "behavior",
            "maintenance",
        )


def test_most_runs_of_the_watch_record_little_and_one_records_nothing():
    quiet = lines(STREAMS / "homelab-watch" / "03-all-quiet.jsonl")[-1]["structured_output"]
    assert not quiet["memories"]
    assert not memory_markers(all_of("homelab-watch/03-all-quiet.jsonl")).found


def test_the_foreign_markers_are_in_the_tool_result_the_quotation_and_the_fence():
    name = "homelab-watch/04-foreign-markers.jsonl"
    read = memory_markers(all_of(name))
    assert (read.found, read.quoted) == ([], 2)
    assert [marker.category for marker in read.unknown] == ["baseline"]
    results = [block for line in lines(STREAMS / name) if line["type"] == "user" for block in blocks(line)]
    assert any("[MEMORY:behavior:adguard]" in block["content"] for block in results)


def test_an_outage_climbs_from_tier_one_to_tier_three_and_is_mended_there():
    def escalation(name):
        return lines(STREAMS / name)[-1]["structured_output"]["escalation"]

    assert escalation("homelab-watch/06-jellyfin-hangs.jsonl")["needed"] is True
    for file in (STREAMS / "homelab-investigate").glob("*.jsonl"):
        assert escalation(file.relative_to(STREAMS))["failed_checks"]
    for file in (STREAMS / "homelab-mend").glob("*.jsonl"):
        assert escalation(file.relative_to(STREAMS)) == {"needed": False}
        assert markers("\n".join(said(file))).cooldowns


def test_runs_fail_in_two_of_the_ways_a_run_can_fail():
    failed = {file.stem: lines(file)[-1] for file in FILES if lines(file)[-1]["is_error"]}
    assert {name: result["subtype"] for name, result in failed.items()} == {
        "07-api-down": "success",
        "02-lost-in-logs": "error_max_turns",
    }
