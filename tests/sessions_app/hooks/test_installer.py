"""Hooks are put into the CLI's settings and taken out again; all else stays."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions_app.errors import InvalidSettings
from sessions_app.hooks.installer import EMPTY, install, installed, uninstall, warnings
from sessions_app.hooks.settings_file import open_to_others
from sessions_app.runner.agent_hooks import AGENTS, COOLDOWNS, OBSERVE, SETS, groups

URL, TOKEN = "http://127.0.0.1:8000", "$CLAUDEOPS_HOOK_TOKEN"


def hooks(*names: str, **options):
    return [one for name in names for one in groups(name, url=URL, token=TOKEN, **options)]


def test_a_file_is_open_to_others_when_its_group_or_all_may_read_it(tmp_path):
    path = tmp_path / "settings.json"
    assert not open_to_others(path)
    path.write_text("{}")
    for mode, is_open in ((0o600, False), (0o700, False), (0o620, False), (0o640, True), (0o604, True)):
        path.chmod(mode)
        assert open_to_others(path) is is_open, oct(mode)


THEIRS = """\
{
    "model": "opus",
    "hooks": {
        "PreToolUse": [
            {
                "matcher": "Bash",
                "hooks": [
                    {
                        "type": "command",
                        "command": "./prüfe.sh"
                    }
                ]
            }
        ],
        "Stop": []
    },
    "permissions": {
        "allow": [
            "Bash(ls *)"
        ]
    }
}
"""


def test_what_is_installed_is_what_the_cli_reads():
    text = install(EMPTY, hooks(AGENTS, COOLDOWNS, fail_closed=True))
    entry = {
        "type": "http",
        "url": f"{URL}/hooks/PreToolUse",
        "timeout": 3,
        "headers": {"Authorization": f"Bearer {TOKEN}", "X-Claudeops-Hooks": "cooldowns"},
        "allowedEnvVars": ["CLAUDEOPS_HOOK_TOKEN"],
        "onFailure": "block",
    }
    found = json.loads(text)
    assert list(found) == ["hooks"]
    assert list(found["hooks"]) == ["SubagentStart", "SubagentStop", "PreToolUse"]
    assert found["hooks"]["PreToolUse"] == [{"matcher": "Bash", "hooks": [entry]}]
    assert "onFailure" not in text.replace('"onFailure": "block"', "", 1), "only a tool call can be refused"
    assert text.startswith('{\n  "hooks": {\n    "SubagentStart": [\n      {\n        "hooks": [\n')
    assert [(one.name, one.event, one.token, one.fail_closed) for one in installed(text)] == [
        ("agents", "SubagentStart", TOKEN, False),
        ("agents", "SubagentStop", TOKEN, False),
        ("cooldowns", "PreToolUse", TOKEN, True),
    ]


def test_the_start_of_a_session_is_a_command_and_the_rest_of_observing_is_posted():
    text = install(EMPTY, groups(OBSERVE, url=URL, token="cops_secret", token_file="/home/user/x.token"))
    found = json.loads(text)["hooks"]
    assert list(found) == ["SessionStart", "UserPromptSubmit", "PreCompact", "SessionEnd"]
    ((hook,),) = [entry["hooks"] for entry in found["SessionStart"]]
    assert (hook["type"], hook["timeout"]) == ("command", 3)
    assert "cops_secret" not in hook["command"]
    assert {entry["hooks"][0]["type"] for name, (entry,) in found.items() if name != "SessionStart"} == {"http"}
    assert [(one.event, one.url.rpartition("/")[2], one.token) for one in installed(text)] == [
        ("SessionStart", "SessionStart", "/home/user/x.token"),
        *((event, event, "cops_secret") for event in ("UserPromptSubmit", "PreCompact", "SessionEnd")),
    ]


def test_the_settings_are_as_before_when_our_hooks_are_gone():
    orders = [[AGENTS], [COOLDOWNS], [AGENTS, COOLDOWNS], [OBSERVE], [COOLDOWNS, OBSERVE, AGENTS]]
    texts = [
        *("{}", EMPTY, "{}\r\n", '{\n\t"model": "opus"\n}', '{\r\n  "model": "opus"\r\n}', "\ufeff{}\n"),
        *(
            '{\n  "a": "}{][,//"\n}',
            '{\n  "hooks": {\n    "PreToolUse": [\n      7,\n      null\n    ]\n  }\n}',
            THEIRS,
        ),
    ]
    for text in texts:
        for names in orders:
            with_hooks = install(text, hooks(*names))
            assert len(installed(with_hooks)) == sum(len(SETS[name]) for name in names)
            assert uninstall(with_hooks) == text
            for first in names:  # one set after the other
                rest = uninstall(with_hooks, [first])
                assert {one.name for one in installed(rest)} == set(names) - {first}
                assert uninstall(rest) == text
    added = install(THEIRS, hooks(COOLDOWNS, AGENTS)).splitlines()
    assert [line for line in added if line in THEIRS.splitlines()][:4] == THEIRS.splitlines()[:4]


def test_settings_without_our_hooks_are_not_formatted_anew():
    assert uninstall('{"hooks": {"Stop":[]},"a":1}') == '{"hooks": {"Stop":[]},"a":1}'


def test_a_hook_that_somebody_put_beside_ours_stays():
    value = json.loads(install(EMPTY, hooks(COOLDOWNS)))
    value["hooks"]["PreToolUse"][0]["hooks"].append({"type": "command", "command": "theirs"})
    rest = uninstall(json.dumps(value, indent=4))
    assert json.loads(rest)["hooks"]["PreToolUse"] == [
        {"matcher": "Bash", "hooks": [{"type": "command", "command": "theirs"}]}
    ]


def test_what_is_no_settings_is_refused_with_the_place(subtests):
    for text, said in [
        ("", "line 1 column 1"),
        ("{", "line 1 column 2"),
        ('{"a": 1}}', "Extra data"),
        ('{"a": 1,}', "not JSON"),
        ('{\n "a": 1 // mine\n}', "line 2"),
        ('{\n "a": 1,\n "b" : tru}', "line 3 column 8"),
        ("[" * 100_000, "nested deeper"),
        ("[]", "no JSON object"),
        ('{"hooks": []}', "no object of lists"),
        ('{"hooks": {"Stop": {}}}', "no object of lists"),
    ]:
        with subtests.test(str(text)), pytest.raises(InvalidSettings, match=said):
            install(text, hooks(AGENTS))


def test_what_keeps_the_cli_from_calling_hooks_is_said():
    assert warnings("\ufeff{}") == []
    assert len(warnings('{"disableAllHooks": true, "allowedHttpHookUrls": []}')) == 2


LEAVES = st.none() | st.booleans() | st.integers() | st.text(max_size=5)
ENTRIES = st.lists(
    st.fixed_dictionaries({"hooks": st.lists(st.dictionaries(st.sampled_from(["type", "url"]), LEAVES), max_size=2)})
    | LEAVES,
    max_size=2,
)
HOOKS = st.dictionaries(st.sampled_from(["PreToolUse", "SubagentStart", "Stop"]), ENTRIES, max_size=3)
SETTINGS = st.fixed_dictionaries(
    {}, optional={"model": LEAVES, "hooks": HOOKS, "x": st.recursive(LEAVES, lambda one: st.lists(one) | HOOKS)}
)


@given(
    value=SETTINGS,
    names=st.permutations([AGENTS, COOLDOWNS, OBSERVE]),
    count=st.integers(1, 3),
    indent=st.sampled_from([None, 2, 4, "\t"]),
)
def test_any_settings_are_the_same_after_installing_and_uninstalling(value, names, count, indent):
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    with_hooks = install(text, hooks(*names[:count]))
    after = json.loads(uninstall(with_hooks))
    events = {event: entries for event, entries in value.get("hooks", {}).items() if entries}
    assert {event: entries for event, entries in after.pop("hooks", {}).items() if entries} == events
    assert after == {key: one for key, one in value.items() if key != "hooks"}
    found = json.loads(with_hooks)["hooks"]
    assert all(found[event][: len(entries)] == entries for event, entries in value.get("hooks", {}).items())


@given(text=st.text(alphabet='{}[],:"/*\\\n 1ahooks', max_size=40))
def test_any_text_is_read_or_refused(text):
    with suppress(InvalidSettings):
        assert json.loads(uninstall(install(text, hooks(AGENTS)))) == json.loads(text)
