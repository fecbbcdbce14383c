"""Which sections an agent's file has, and the one rule of agent ids."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memories.capture.fields import agent_id
from memories.files.sections import OTHER_TYPE, RECENT, sections_for
from memories.models.project import FILE_LIMITS
from memories.taxonomy import AGENT


def test_the_name_of_an_agent_becomes_its_id(subtests):
    for name, expected in [
        ("research", "research"),
        ("Research Agent", "research"),
        ("research-agent", "research"),
        ("ResearchAgent", "research"),
        ("plugins/Data-Engineer", "data_engineer"),
        ("my-plugin:code reviewer", "code_reviewer"),
        (".claude/agents/data_engineer_agent.md", "data_engineer"),
        ("agent", "agent"),
        ("  ", ""),
        ("Ünïcode Agent", "ünïcode"),
        ("U\u0308ni\u0308code-agent", "ünïcode"),
        ("Ärzte", "ärzte"),
        ("Größe", "größe"),
        ("データ 分析", "データ_分析"),
        ("हिन्दी", "हिन्दी"),
        ("C", "c"),
    ]:
        with subtests.test(str(name)):
            assert agent_id(name) == expected


@given(st.text(max_size=200))
def test_an_id_is_an_id_of_itself_unless_it_ends_with_agent(name: str) -> None:
    found = agent_id(name)
    assert len(found) <= 64 and len(found.encode()) <= 200 and found == found.lower()
    assert all(character == "_" or unicodedata.category(character)[0] in "LMN" for character in found)
    assert found.endswith("agent") or agent_id(found) == found


def test_two_names_never_share_an_id() -> None:
    """What an id cannot hold is in its last digits; `ncode` was the id of three of these."""
    names = [
        "Ünïcode",
        "Unicode",
        "ncode",
        "Äncode",
        "C",
        "C++",
        "C#",
        "v1.2",
        "v12",
        "Ärzte!",
        "Ärzte",
        "研究",
        "检索",
    ]
    names += ["x" * 64, "x" * 65, "x" * 66, "𝕏" * 60 + "a", "𝕏" * 60 + "b"]
    assert len({agent_id(name) for name in names}) == len(names)
    assert agent_id("C++") == agent_id("plugins/C++ Agent") != agent_id("c")


def test_the_ten_standard_sections_hold_every_type() -> None:
    standard = sections_for("qa")
    assert len(standard.names) == FILE_LIMITS["sections"][0] == 10
    assert {standard.section_of(kind) for kind in AGENT.categories} <= set(standard.names)
    assert standard.section_of("anything else") == RECENT
    assert standard.type_of("common mistakes to avoid") == "mistake"
    assert standard.type_of("Domain-Specific Knowledge") == OTHER_TYPE


@pytest.mark.parametrize("agent", ["research", "engineer"])
def test_an_agent_with_sections_of_its_own_keeps_the_required_ones(agent: str) -> None:
    found = sections_for(agent)
    assert set(found.required) < set(found.names) and len(found.names) <= 10
    assert set(found.by_type.values()) <= set(found.names)


def test_a_project_defines_sections_for_an_agent() -> None:
    found = sections_for("writer", {"writer": ["Tone"]})
    assert found.names[-2:] == ("Tone", RECENT)
    assert found.section_of("strategy") == RECENT
