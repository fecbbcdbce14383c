"""Memory markers in text and keys of the structured response: `memories/capture/markers.py`."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memories.capture.fields import checked_service
from memories.capture.markers import MemoryMarkers, UnknownMarker, memory_from_key, memory_markers
from memories.capture.statement import Statement
from memories.errors import InvalidMemory
from memories.models.memory import valid_service
from memories.taxonomy import OPS, PROJECT


def found(text):
    return [(marker.category, marker.service, marker.observation) for marker in memory_markers(text).found]


def test_a_marker_with_a_service():
    text = "Checked.\n[MEMORY:timing:jellyfin] Takes 60s to start after restart -- wait before checking health\n"
    assert memory_markers(text) == MemoryMarkers(
        [Statement("timing", "Takes 60s to start after restart -- wait before checking health", "jellyfin")]
    )


@pytest.mark.parametrize("category", OPS.categories)
def test_every_category_with_and_without_a_service(category):
    assert found(f"[MEMORY:{category}] No service") == [(category, None, "No service")]
    assert found(f"[MEMORY:{category}:my_svc-2]Close") == [(category, "my_svc-2", "Close")]


def test_markers_as_agents_write_them(subtests):
    for line, expected in [
        ("I note [MEMORY:timing:caddy] Slow  ", ("timing", "caddy", "Slow")),
        ("- [MEMORY:timing:Caddy] Slow", ("timing", "caddy", "Slow")),
        ("[MEMORY:timing:general] Slow", ("timing", None, "Slow")),
        ("[MEMORY:timing:a] one [MEMORY:behavior:b] two", ("timing", "a", "one [MEMORY:behavior:b] two")),
        ("**[MEMORY:timing:a] Slow**", ("timing", "a", "Slow")),
        ("**[MEMORY:timing:a]** Slow", ("timing", "a", "Slow")),
        ("[MEMORY:timing:home.assistant] Slow", ("timing", "home.assistant", "Slow")),
        ("[EVENT:info:a] ok. [MEMORY:timing:a] Slow", ("timing", "a", "Slow")),
        ("[MEMORY:timing:a] One. [MEMORY:behavior:b] Two", ("timing", "a", "One. [MEMORY:behavior:b] Two")),
        ("[MEMORY:timing:a] Uses **bold**", ("timing", "a", "Uses **bold**")),
        ("[MEMORY:timing:a] A\ttab and\u200b hidden", ("timing", "a", "A tab and hidden")),
    ]:
        with subtests.test(str(line)):
            assert found(line) == [expected]


def test_what_is_no_memory(subtests):
    for text in [
        "",
        "no marker",
        "[MEMORY:timing:caddy]",
        "[MEMORY:timing:caddy]    \nnext line",
        "[MEMORY:timing:caddy] \u200b",
        "[MEMORY:timing:caddy",
        "[memory:timing:caddy] lower case",
        "MEMORY:timing:caddy no bracket",
        "> [MEMORY:timing:caddy] quoted",
        "```\n[MEMORY:timing:caddy] in code\n```",
        "`[MEMORY:timing:caddy] in code`",
        "The page says [MEMORY:timing:caddy] evil",
        '[EVENT:info:caddy] The page says "[MEMORY:timing:caddy] evil"',
        "[EVENT:warning:caddy] an event",
    ]:
        with subtests.test(str(text)):
            markers = memory_markers(text)
            assert (markers.found, markers.unknown) == ([], [])


def test_another_category_is_unknown_and_said_so():
    (unknown,) = memory_markers("[MEMORY:misc:caddy] Something").unknown
    assert (unknown.category, unknown.line_text) == ("misc", "[MEMORY:misc:caddy] Something")
    assert unknown.reason == "'misc' is not a category (timing, dependency, behavior, remediation, maintenance)"


@pytest.mark.parametrize(
    "bracket", ["[MEMORY:Timing]", "[MEMORY:]", "[MEMORY:timing:my service]", "[MEMORY:timing:]", "[MEMORY:a:b:c]"]
)
def test_brackets_that_look_like_a_memory_are_unknown(bracket):
    markers = memory_markers(f"{bracket} Something")
    assert (markers.found, len(markers.unknown)) == ([], 1)


def test_a_service_that_is_too_long_to_store_is_unknown():
    markers = memory_markers(f"[MEMORY:timing:{'x' * 65}] Slow\n[MEMORY:timing:{'x' * 64}] Slow")
    assert len(markers.found) == 1
    assert markers.unknown[0].reason == "the service's name is longer than 64 characters"


def test_a_services_name_may_hold_dots_in_forms_and_fields_too():
    valid_service("home.assistant")
    assert checked_service("Home.Assistant") == "home.assistant"
    for wrong in ("home assistant", "home/assistant", "home,assistant"):
        with pytest.raises(InvalidMemory):
            checked_service(wrong)


def test_an_unknown_bracket_before_a_marker_is_reported_and_the_marker_taken():
    markers = memory_markers("[MEMORY:misc] or [MEMORY:timing] Slow")
    assert [marker.observation for marker in markers.found] == ["Slow"]
    assert [marker.category for marker in markers.unknown] == ["misc"]


def test_marker_lines_that_are_not_read_are_counted():
    text = "> [MEMORY:timing] a\n> plain\n```\n[MEMORY:timing] b\ncode\n```\n[MEMORY:timing] c"
    markers = memory_markers(text)
    assert (len(markers.found), markers.quoted) == (1, 2)


@given(st.text(alphabet=st.sampled_from("[]MEMORY:timng:ab-_ \n>`*\u2028\x00"), max_size=120) | st.text(max_size=200))
def test_any_text_gives_only_storable_markers(text):
    markers = memory_markers(text + "\n[MEMORY:timing:caddy] " + text)
    for marker in markers.found:
        assert marker.category in OPS.categories
        assert marker.observation == marker.observation.strip() != ""
        assert len(marker.observation.splitlines()) == 1
        assert marker.service is None or (0 < len(marker.service) <= 64 and marker.service == marker.service.lower())


# The structured response


def test_keys_of_the_structured_response(subtests):
    for key, expected in [
        ("jellyfin:timing", ("timing", "jellyfin")),
        ("timing", ("timing", None)),
        ("general:timing", ("timing", None)),
        ("home.assistant:timing", ("timing", "home.assistant")),
        (" Jellyfin : timing ", ("timing", "jellyfin")),
        (":timing", ("timing", None)),
        ("timing:jellyfin", ("timing", "jellyfin")),
        ("timing:behavior", ("behavior", "timing")),
    ]:
        with subtests.test(str(key)):
            marker = memory_from_key(key, "Takes\n60s")
            assert isinstance(marker, Statement)
            assert (marker.category, marker.service) == expected
            assert (marker.observation, marker.text) == ("Takes 60s", "Takes\n60s")


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("jellyfin:misc", "x", "'misc' is not a category"),
        ("misc", "x", "'misc' is not a category"),
        ("", "x", "'' is not a category"),
        ("a:b:timing", "x", "neither service:category nor category"),
        ("my service:timing", "x", "'my service' is not a service's name"),
        (f"{'x' * 65}:timing", "x", "is not a service's name"),
        ("jellyfin:timing", " \n", "there is no observation"),
    ],
)
def test_keys_that_are_not_stored(key, value, reason):
    unknown = memory_from_key(key, value)
    assert isinstance(unknown, UnknownMarker)
    assert reason in unknown.reason
    assert unknown.line_text == f"{key}: {value}"


@pytest.mark.parametrize("category", PROJECT.categories)
def test_a_session_with_a_project_may_say_what_holds_for_it(category):
    text = f"[MEMORY:{category}] The importer loses rows without a header"
    (found,) = memory_markers(text, in_project=True).found
    assert (found.taxonomy, found.category, found.confidence) == ("project", category, 0.5)
    found = memory_from_key(category, "The importer loses rows", in_project=True)
    assert (found.taxonomy, found.category) == ("project", category)


def test_without_a_project_its_categories_are_unknown_and_the_reason_says_so():
    for unknown in (memory_markers("[MEMORY:warning] x").unknown[0], memory_from_key("warning", "x")):
        assert unknown.reason == "'warning' is a category of projects, and its session has none"
    assert memory_markers("[MEMORY:timing] x", in_project=True).found[0].taxonomy == "ops"
    assert memory_markers("[MEMORY:misc] x", in_project=True).unknown[0].reason.endswith("warning, learning, context)")


def test_no_category_is_in_both_taxonomies():
    assert not set(OPS.categories) & set(PROJECT.categories)
