"""What the CLI posts is read or refused, never an exception."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sessions_app.errors import InvalidHook, UnknownHook
from sessions_app.hooks.events import HookAnswer, Payload, document, known, parse

GIVEN = {"session_id": "s-1", "hook_event_name": "SubagentStart", "cwd": "/srv/app", "agent_type": "research"}


def posted(**changes) -> bytes:
    return json.dumps(GIVEN | changes).encode()


def test_a_hook_is_read_with_the_types_of_its_fields():
    assert parse("SubagentStart", posted(agent_id="a-1", tool_input={"command": "ls"})) == Payload(
        "s-1", cwd="/srv/app", agent_id="a-1", agent_type="research", tool_input={"command": "ls"}
    )


def test_fields_of_another_type_count_as_missing():
    found = parse("SubagentStart", posted(cwd=7, agent_type=None, tool_input="ls", prompt=["x"]))
    assert (found.cwd, found.agent_type, found.tool_input, found.prompt) == ("", "", {}, "")


def test_what_no_database_stores_is_taken_out_of_a_text():
    assert parse("SubagentStart", posted(agent_type="re\0se\ud800arch")).agent_type == "rese?arch"


def test_what_is_no_hook_is_refused_with_the_reason(subtests):
    for data, said in [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b"\xff\xfe\x00", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"[]", "no JSON object"),
        (posted(hook_event_name="Stop"), "that of the hook 'Stop'"),
        (posted(session_id=""), "session_id is needed"),
        (posted(session_id="s" * 101), "at most 100 characters"),
        (posted(agent_id="a" * 101), "at most 100 characters"),
    ]:
        with subtests.test(str(data)), pytest.raises(InvalidHook, match=said):
            parse("SubagentStart", data)


def test_an_unknown_event_is_refused_with_those_there_are():
    with pytest.raises(UnknownHook, match="no hook 'Nonsense'") as refused:
        known("Nonsense")
    assert "PreToolUse" in refused.value.fix


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@example(data=b'{"session_id": "\\ud800"}')
@given(
    data=st.binary(max_size=200)
    | st.dictionaries(st.sampled_from([*GIVEN, "agent_id", "tool_input"]), VALUES).map(
        lambda odd: json.dumps(GIVEN | odd).encode()
    )
)
def test_whatever_is_posted_is_read_or_refused(data):
    try:
        found = parse("SubagentStart", data)
    except InvalidHook:
        return
    (found.cli_session_id + found.cwd + found.agent_type).encode()
    assert "\0" not in found.cli_session_id


def test_a_reason_to_deny_goes_before_a_context():
    answers = [HookAnswer(context="Know this."), HookAnswer(deny="Not now."), HookAnswer(deny="Nor here.")]
    assert document("PreToolUse", answers) == {
        "hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": "deny",
            "permissionDecisionReason": "Not now.\nNor here.",
        }
    }


def test_contexts_are_joined_and_nothing_to_say_is_an_empty_object():
    answers = [HookAnswer(context="One."), HookAnswer(), HookAnswer(context="Two.")]
    assert document("SubagentStart", answers) == {
        "hookSpecificOutput": {"hookEventName": "SubagentStart", "additionalContext": "One.\n\nTwo."}
    }
    assert document("SubagentStart", []) == {}
