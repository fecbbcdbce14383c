"""Event and cooldown markers, and the lists of the structured answer."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions_app.runner.markers import level_of, markers, structured_checks, structured_events


@pytest.mark.parametrize("word", ["warning", "warn", "degraded", "WARN", "Degraded"])
def test_words_for_a_warning(word):
    assert level_of(word) == "warning"


@pytest.mark.parametrize("word", ["critical", "error", "err", "fatal", "failure", "failed", "ERROR"])
def test_words_for_something_critical(word):
    assert level_of(word) == "critical"


@pytest.mark.parametrize("word", ["info", "ok", "notice", "anything"])
def test_every_other_word_is_information(word):
    assert level_of(word) == "info"


def test_an_event_stands_alone_or_after_a_sentence_with_or_without_a_service():
    found = markers("Checked. [EVENT:warning:jellyfin]  Restarted\n[EVENT:info] All well").events
    assert [(event.level, event.service, event.message) for event in found] == [
        ("warning", "jellyfin", "Restarted"),
        ("info", None, "All well"),
    ]


def test_markers_in_code_blocks_and_quotations_are_somebody_elses_words():
    text = "```\n[EVENT:critical:db] in a block\n```\n> [EVENT:critical:db] quoted\n\n[EVENT:info:db] mine"
    found = markers(text)
    assert [event.message for event in found.events] == ["mine"]
    assert found.quoted == 2


def test_a_services_name_may_hold_dots():
    text = "[EVENT:warning:home.assistant] slow\n[COOLDOWN:restart:home.assistant] success - back"
    found = markers(text)
    assert (found.events[0].service, found.cooldowns[0].service) == ("home.assistant", "home.assistant")


@pytest.mark.parametrize("dash", ["—", "–", "-"])
def test_a_cooldown_is_read_with_any_dash(dash):
    (found,) = markers(f"[COOLDOWN:restart:jellyfin] success {dash} answers again after 58 s").cooldowns
    assert (found.action, found.service, found.outcome, found.message) == (
        "restart",
        "jellyfin",
        "success",
        "answers again after 58 s",
    )


@pytest.mark.parametrize(
    "line",
    ["[COOLDOWN:reboot:nas] success - done", "[COOLDOWN:restart:jellyfin] maybe - who knows", "[COOLDOWN:restart] x"],
)
def test_a_cooldown_that_cannot_be_read_is_reported(line):
    found = markers(line)
    assert found.cooldowns == ()
    assert len(found.malformed) == 1


def test_the_same_report_is_one_restart_and_after_another_tool_call_a_second_one():
    (report,) = markers("[COOLDOWN:restart:jellyfin] success - restarted").cooldowns
    assert report.fingerprint(3) == report.fingerprint(3)
    assert report.fingerprint(3) != report.fingerprint(4)


def test_the_same_event_has_one_fingerprint_whatever_its_spacing_and_case():
    a, b = markers("[EVENT:warn:Jellyfin] Slow  start\n[EVENT:warning:jellyfin] slow start").events
    assert a.fingerprint == b.fingerprint


def test_structured_events_without_a_message_are_counted_as_dropped():
    events, dropped = structured_events([{"level": "error", "message": "down", "service": "db"}, {"level": "info"}, 3])
    assert [(event.level, event.service) for event in events] == [("critical", "db")]
    assert dropped == 2


@pytest.mark.parametrize(
    ("status", "healthy"), [("healthy", True), ("OK", True), ("up", True), ("degraded", False), ("?", False)]
)
def test_a_service_is_well_only_when_a_known_word_says_so(status, healthy):
    (check,), dropped = structured_checks([{"name": "Jellyfin", "status": status}])
    assert (check.service, check.healthy, dropped) == ("jellyfin", healthy, 0)


def test_the_last_check_of_a_service_counts():
    checks, _ = structured_checks([{"name": "db", "status": "down"}, {"name": "db", "status": "healthy"}, {"name": ""}])
    assert [(check.service, check.healthy) for check in checks] == [("db", True)]


@given(st.text(max_size=300))
def test_no_text_raises(text):
    found = markers("[EVENT:" + text + "\n[COOLDOWN:" + text)
    assert all(event.level in ("info", "warning", "critical") for event in found.events)
