"""Hooks are put into the text of the CLI's settings and taken out again; all else stays byte for byte."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions_app.errors import InvalidSettings
from sessions_app.hooks.installer import EMPTY, install, installed, uninstall, warnings
from sessions_app.hooks.json_text import parse
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
    // my own settings
    "model": "opus", // not sonnet
    "hooks": {
        "PreToolUse": [
            {"matcher": "Bash", "hooks": [{"type": "command", "command": "./check.sh"}]} // mine
        ],
        "Stop": []
    },
    "permissions": {"allow": ["Bash(ls *)",],}, /* the end */
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


def test_the_hooks_of_others_stay_with_their_comments_and_order():
    text = install(THEIRS, hooks(COOLDOWNS, AGENTS))
    value = parse(text).value
    assert value["hooks"]["PreToolUse"][0]["hooks"] == [{"type": "command", "command": "./check.sh"}]
    assert list(value) == ["model", "hooks", "permissions"]
    added = [line for line in text.splitlines() if line not in THEIRS.splitlines()]
    gone = [line for line in THEIRS.splitlines() if line not in text.splitlines()]
    assert gone == [line for line in THEIRS.splitlines() if line.endswith(("// mine", '"Stop": []'))]
    assert [line.replace(", // mine", " // mine") for line in added if "// mine" in line] == gone[:1]
    assert uninstall(text) == THEIRS


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        "{ }",
        "{}\n",
        EMPTY,
        "{\r\n\t\r\n}\r\n",
        '{"hooks": {}}',
        '{"hooks":{"PreToolUse":[],"SubagentStop":[ ]}}',
        '{\n\t"hooks": {\n\t}\n}',
        '{\r\n  "model": "opus"\r\n}',
        '\ufeff{"a": "}{][,//"}',
        '{"hooks": {"PreToolUse": [{"hooks": []}]}}',
        '{"hooks": {"PreToolUse": [7, null, {"hooks": 7}]}}',
        '{"hooks": {}, "hooks": {"PreToolUse": [\n]}}',
        "// first\n{ // none yet\n} // last",
        '{"a": 1 /* one */ /* two */ }',
        '{"a": 1, // one\n // two\n}',
        THEIRS,
    ],
)
@pytest.mark.parametrize("names", [[AGENTS], [COOLDOWNS], [AGENTS, COOLDOWNS], [OBSERVE], [COOLDOWNS, OBSERVE, AGENTS]])
def test_uninstalling_gives_the_text_of_before(text, names):
    with_hooks = install(text, hooks(*names))
    assert len(installed(with_hooks)) == sum(len(SETS[name]) for name in names)
    assert uninstall(with_hooks) == text
    for first in names:  # one set after the other
        rest = uninstall(with_hooks, [first])
        assert {one.name for one in installed(rest)} == set(names) - {first}
        assert uninstall(rest) == text


def test_a_hook_that_somebody_put_beside_ours_stays():
    value = json.loads(install(EMPTY, hooks(COOLDOWNS)))
    value["hooks"]["PreToolUse"][0]["hooks"].append({"type": "command", "command": "theirs"})
    rest = uninstall(json.dumps(value, indent=4))
    assert json.loads(rest)["hooks"]["PreToolUse"] == [
        {"matcher": "Bash", "hooks": [{"type": "command", "command": "theirs"}]}
    ]


def test_a_comment_that_somebody_put_beside_ours_stays():
    text = install(EMPTY, hooks(COOLDOWNS)).replace('"PreToolUse": [', '"PreToolUse": [ // theirs')
    assert "// theirs" in uninstall(text)


def test_a_text_that_was_formatted_anew_loses_our_hooks_alone():
    text = json.dumps(parse(install(THEIRS, hooks(AGENTS, COOLDOWNS))).value)
    rest = json.loads(uninstall(text))
    assert rest.pop("hooks")["PreToolUse"] == parse(THEIRS).value["hooks"]["PreToolUse"]
    assert rest == {"model": "opus", "permissions": {"allow": ["Bash(ls *)"]}}


def test_what_is_no_settings_is_refused_with_the_place(subtests):
    for text, said in [
        ("", "no JSON value at line 1, column 1"),
        ("{", "no key in quotation marks"),
        ("[1 2]", "no comma and no ]"),
        ('{"a": 1}}', "more text than one value"),
        ('{"a" 1}', "no colon"),
        ("{a: 1}", "no key in quotation marks"),
        ('{\n "a": 1,\n "b" : tru}', "line 3, column 8"),
        ('{"a": 1 /* open }', "no comma"),
        ("[" * 100_000, "nested too deeply"),
        ("[]", "no JSON object"),
        ('{"hooks": []}', "no object of lists"),
        ('{"hooks": {"Stop": {}}}', "no object of lists"),
    ]:
        with subtests.test(str(text)), pytest.raises(InvalidSettings, match=said):
            install(text, hooks(AGENTS))


def test_what_keeps_the_cli_from_calling_hooks_is_said():
    assert warnings("\ufeff{}") == []
    (said,) = warnings('{"a": 1,}')
    assert "ignores such a file" in said
    assert len(warnings('{"disableAllHooks": true, "allowedHttpHookUrls": []}')) == 2


SPACES = st.sampled_from(["", " ", "\n", "\r\n", "\n\t", " // x\n", "/* , } */", "\n  "])


def written(value, draw) -> str:
    """`value` as JSON with any whitespace, comments and trailing commas between."""
    if isinstance(value, dict | list) and value:
        pairs = value.items() if isinstance(value, dict) else [(None, one) for one in value]
        parts = [
            draw(SPACES)
            + ("" if key is None else json.dumps(key) + draw(SPACES) + ":" + draw(SPACES))
            + written(one, draw)
            + draw(SPACES)
            for key, one in pairs
        ]
        inside = ",".join(parts) + draw(st.sampled_from(["", "", "," + draw(SPACES)]))
        return f"{{{inside}}}" if isinstance(value, dict) else f"[{inside}]"
    if isinstance(value, dict | list):
        return draw(SPACES).join("{}" if isinstance(value, dict) else "[]")
    return json.dumps(value)


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


@st.composite
def texts(draw) -> tuple[str, dict]:
    value = draw(SETTINGS)
    return draw(SPACES) + written(value, draw) + draw(SPACES), value


@given(given_text=texts(), names=st.permutations([AGENTS, COOLDOWNS, OBSERVE]), count=st.integers(1, 3))
def test_any_settings_are_the_same_after_installing_and_uninstalling(given_text, names, count):
    text, value = given_text
    assert parse(text).value == value
    with_hooks = install(text, hooks(*names[:count]))
    assert uninstall(with_hooks) == text
    found = parse(with_hooks).value
    assert {key: one for key, one in found.items() if key != "hooks"} == {
        key: one for key, one in value.items() if key != "hooks"
    }
    for event, entries in value.get("hooks", {}).items():
        assert found["hooks"][event][: len(entries)] == entries


@given(text=st.text(alphabet='{}[],:"/*\\\n 1ahooks', max_size=40))
def test_any_text_is_read_or_refused(text):
    try:
        with_hooks = install(text, hooks(AGENTS))
    except InvalidSettings:
        return
    assert uninstall(with_hooks) == text


@given(value=st.recursive(LEAVES, lambda one: st.lists(one) | st.dictionaries(st.text(max_size=3), one)))
def test_plain_json_is_read_as_the_standard_library_reads_it(value):
    assert parse(json.dumps(value)).value == json.loads(json.dumps(value))
