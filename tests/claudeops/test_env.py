"""claudeops.env: what the environment says, typed; what is wrong is named with what is allowed."""

from __future__ import annotations

import os
import re
import string
import subprocess
import sys

import pytest
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from hypothesis import assume, given
from hypothesis import strategies as st

from claudeops import env
from claudeops.env import BASE_DIR, VARIABLES

WRONG = [
    ("DEBUG", "maybe", "true or false"),
    ("CLAUDEOPS_WORKERS", "many", "a whole number from 1 to 64"),
    ("CLAUDEOPS_WORKERS", "65", "a whole number from 1 to 64"),
    ("CLAUDEOPS_WORKERS", "1.5", "a whole number from 1 to 64"),
    ("CLAUDEOPS_WORKERS", "", "a whole number from 1 to 64"),
    ("CLAUDEOPS_MAX_TIER", "0", "a whole number from 1 to 3"),
    ("CLAUDEOPS_MATCHING", "latest", "one of semantic, structural, supersede"),
    ("CLAUDEOPS_MAX_BUDGET_USD", "0", "a number from 0.01 to 10000"),
    ("CLAUDEOPS_MAX_BUDGET_USD", "nan", "a number from 0.01 to 10000"),
    ("CLAUDEOPS_MAX_BUDGET_USD", "2,50", "a number from 0.01 to 10000"),
    ("CLAUDEOPS_LOG_LEVEL", "LOUD", "one of DEBUG, INFO, WARNING, ERROR"),
    ("CLAUDEOPS_EMBEDDINGS", "maybe", "one of local, endpoint, off"),
    ("CLAUDEOPS_EMBEDDINGS_URL", "ftp://host/v1", "an address that begins with http:// or https://"),
    ("CLAUDEOPS_EMBEDDINGS_URL", "host:11434", "an address that begins with http:// or https://"),
    (
        "CLAUDEOPS_EMBEDDINGS_URL",
        "https://me:secret@host",
        "an address that begins with http:// or",
    ),
    ("CLAUDEOPS_ALLOWED_TOOLS", "Bash(docker ps", "tool rules like"),
    ("CLAUDEOPS_RESTART_LIMIT", "2", "a number of actions and the hours in which they count, like 2/4"),
    ("CLAUDEOPS_RESTART_LIMIT", "2/0", "a number of actions and the hours in which they count, like 2/4"),
    ("CLAUDEOPS_MAINTENANCE_HOUR", "3 Europe", "an hour from 0 to 23, and a time zone, like 3 Europe/Berlin"),
    ("CLAUDEOPS_MAINTENANCE_HOUR", "24", "an hour from 0 to 23, and a time zone, like 3 Europe/Berlin"),
    ("CLAUDEOPS_DATA_DIR", "", "the path of a folder"),
    ("CLAUDEOPS_DATA_DIR", __file__, "the path of a folder, not of a file"),
]


def test_a_wrong_value_is_refused_by_name_with_what_it_held_and_what_is_allowed(subtests):
    for name, raw, allowed in WRONG:
        with subtests.test(str(name)):
            with pytest.raises(ImproperlyConfigured) as refusal:
                VARIABLES[name].value({name: raw})
            assert str(refusal.value).startswith(f"{name} is {raw!r}; allowed is {allowed}")


def test_what_is_not_set_takes_the_default(subtests):
    for variable in VARIABLES.values():
        with subtests.test(variable.name):
            assert variable.value({}) == variable.default


def test_every_variable_is_the_setting_of_its_name():
    assert not {name for name in VARIABLES if not hasattr(settings, name)} - {"DATABASE_URL"}


class TestFiles:
    def test_a_secret_may_come_from_a_file_and_the_last_line_break_is_no_part_of_it(self, tmp_path):
        (tmp_path / "key").write_text("from the file\n")
        assert VARIABLES["SECRET_KEY"].value({"SECRET_KEY_FILE": str(tmp_path / "key")}) == "from the file"

    def test_the_file_beats_the_variable(self, tmp_path):
        (tmp_path / "n").write_text("7")
        assert (
            VARIABLES["CLAUDEOPS_WORKERS"].value(
                {"CLAUDEOPS_WORKERS": "3", "CLAUDEOPS_WORKERS_FILE": str(tmp_path / "n")}
            )
            == 7
        )

    def test_a_file_that_is_not_there_is_named(self, tmp_path):
        with pytest.raises(ImproperlyConfigured, match=r"SECRET_KEY_FILE names a file that cannot be read: .*nowhere"):
            VARIABLES["SECRET_KEY"].value({"SECRET_KEY_FILE": str(tmp_path / "nowhere")})

    def test_a_file_that_is_no_text_is_named(self, tmp_path):
        (tmp_path / "key").write_bytes(b"\xff\xfe\x00")
        with pytest.raises(ImproperlyConfigured, match="SECRET_KEY_FILE names a file that cannot be read"):
            VARIABLES["SECRET_KEY"].value({"SECRET_KEY_FILE": str(tmp_path / "key")})

    def test_a_wrong_value_in_a_file_is_refused_like_any_other(self, tmp_path):
        (tmp_path / "n").write_text("many")
        with pytest.raises(ImproperlyConfigured, match="CLAUDEOPS_WORKERS is 'many'; allowed is a whole number"):
            VARIABLES["CLAUDEOPS_WORKERS"].value({"CLAUDEOPS_WORKERS_FILE": str(tmp_path / "n")})


class TestReaders:
    @given(value=st.integers(), low=st.integers(-1000, 1000), span=st.integers(0, 1000), pad=st.text(" \t", max_size=2))
    def test_a_whole_number_is_taken_within_its_limits_and_nowhere_else(self, value, low, span, pad):
        reader = env.whole(low, low + span).parse
        if low <= value <= low + span:
            assert reader(f"{pad}{value}{pad}") == value
        else:
            with pytest.raises(ValueError):
                reader(str(value))

    @given(raw=st.text())
    def test_whatever_is_typed_a_number_is_read_or_refused(self, raw):
        for kind in (env.whole(0, 10), env.number(0, 10)):
            try:
                assert 0 <= kind.parse(raw) <= 10
            except ValueError:
                assert "from 0 to 10" in kind.allowed

    @given(value=st.floats(allow_nan=True, allow_infinity=True))
    def test_a_number_is_taken_within_its_limits_and_nowhere_else(self, value):
        reader = env.number(0.01, 10_000).parse
        if 0.01 <= value <= 10_000:
            assert reader(repr(value)) == value
        else:
            with pytest.raises(ValueError):
                reader(repr(value))

    @given(word=st.sampled_from(sorted(env.TRUE | env.FALSE)), upper=st.booleans())
    def test_truth_has_many_words(self, word, upper):
        assert env.boolean.parse(f" {word.upper() if upper else word} ") is (word in env.TRUE)

    @given(raw=st.text())
    def test_no_other_word_is_true_or_false(self, raw):
        assume(raw.strip().lower() not in env.TRUE | env.FALSE)
        with pytest.raises(ValueError):
            env.boolean.parse(raw)

    @given(names=st.lists(st.text(string.ascii_letters + "_.-[]: ", min_size=1).map(str.strip).filter(bool)))
    def test_names_are_what_stands_between_the_commas(self, names):
        assert env.names.parse(" , ".join(names)) == names

    rule = st.one_of(
        st.text(string.ascii_letters + "_", min_size=1),
        st.builds(
            "{}({})".format,
            st.text(string.ascii_letters, min_size=1),
            st.text(string.ascii_letters + " *:,-./", min_size=1),
        ),
    )

    @given(rules=st.lists(rule, max_size=8))
    def test_a_comma_inside_parentheses_belongs_to_its_rule(self, rules):
        assert env.tool_rules.parse(", ".join(rules)) == rules

    @given(raw=st.text("ab(),* ", max_size=30))
    def test_tool_rules_are_read_whole_or_refused_never_cut(self, raw):
        try:
            rules = env.tool_rules.parse(raw)
        except ValueError:
            return
        assert all(rule == rule.strip() and rule.count("(") == rule.count(")") for rule in rules)
        assert "".join(rules).replace(" ", "").replace(",", "") == raw.replace(" ", "").replace(",", "")

    def test_an_hour_is_in_utc_or_in_a_time_zone(self):
        assert env.hour.parse("4") == (4, "UTC")
        assert env.hour.parse("4 Europe/Berlin") == (4, "Europe/Berlin")

    def test_a_folder_is_taken_relative_to_the_checkout(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        assert env.folder.parse("data") == BASE_DIR / "data"
        assert env.folder.parse(str(tmp_path)) == tmp_path

    def test_a_home_is_expanded(self, tmp_path, monkeypatch):
        monkeypatch.setenv("HOME", str(tmp_path))
        assert env.folder.parse("~/data") == tmp_path / "data"


class TestNamesOfEarlierVersions:
    @pytest.mark.parametrize(
        ("name", "instead"),
        [
            ("CLAUDEOPS_TIER2_MEMORY_BUDGET", "set CLAUDEOPS_MEMORY_BUDGET, or the budget of an agent in the admin"),
            ("CLAUDEOPS_MATCHING_JUDGE_KEY_FILE", "set CLAUDEOPS_MODEL_JUDGE to http:NAME"),
            ("CLAUDEOPS_RECALL_REWRITE_TIMEOUT", "it is a constant now"),
            ("CLAUDEOPS_TRIAGE_BATCH", "it is a constant now"),
            ("CLAUDEOPS_HOUSE_TOOLS", "add a source rule in the admin"),
            ("CLAUDEOPS_HOUSE_COMMANDS", "add a source rule in the admin"),
            ("CLAUDEOPS_OUTSIDE_TOOLS_FILE", "add a source rule in the admin"),
            ("CLAUDEOPS_OUTSIDE_PATHS", "add a source rule in the admin"),
            ("CLAUDEOPS_TRUSTED_MCP_SERVERS", "add a source rule in the admin"),
        ],
    )
    def test_one_that_is_set_is_refused_with_what_to_do(self, name, instead):
        with pytest.raises(ImproperlyConfigured, match=f"^{name} is set, but is no variable any more: {instead}"):
            env.refuse_old({"HOME": "/", name: ""})

    def test_none_of_them_is_a_variable_and_what_to_do_names_variables(self):
        env.refuse_old(dict.fromkeys(VARIABLES, ""))
        named = {name for instead in env.GONE.values() for name in re.findall(r"CLAUDEOPS_\w+", instead)}
        assert named <= set(VARIABLES)


class TestUnknown:
    def test_what_nothing_reads_is_found_with_what_was_meant(self):
        source = {"CLAUDEOPS_WORKER": "1", "CLAUDEOPS_WORKERS": "1", "CLAUDEOPS_HOST_FILE": "x", "OTHER": "1"}
        assert env.unknown(source) == [("CLAUDEOPS_WORKER", "CLAUDEOPS_WORKERS")]

    def test_what_resembles_nothing_is_found_without(self):
        assert env.unknown({"CLAUDEOPS_QQQQQQQQQQQQQQQQQQQQQQQQ": ""}) == [("CLAUDEOPS_QQQQQQQQQQQQQQQQQQQQQQQQ", "")]


@pytest.mark.parametrize("command", ["check", "doctor", "migrate"])
@pytest.mark.processes
def test_a_wrong_value_stops_the_start_with_one_line(command, tmp_path):
    run = subprocess.run(
        [sys.executable, str(BASE_DIR / "manage.py"), command],
        env={"PATH": os.environ["PATH"], "CLAUDEOPS_DATA_DIR": str(tmp_path), "CLAUDEOPS_INTERVAL": "hourly"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 1
    assert run.stderr.strip() == (
        "claudeops cannot start: CLAUDEOPS_INTERVAL is 'hourly'; allowed is a whole number from 60 to 2592000."
    )


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("CLAUDEOPS_EMBEDDINGS", "endpoint", "CLAUDEOPS_EMBEDDINGS_URL and CLAUDEOPS_EMBEDDINGS_MODEL must say which"),
        (
            "CLAUDEOPS_TRIAGE_BATCH",
            "5",
            "CLAUDEOPS_TRIAGE_BATCH is set, but is no variable any more: it is a constant now",
        ),
    ],
)
@pytest.mark.processes
def test_an_endpoint_without_a_name_and_an_old_variable_stop_the_start(name, value, message, tmp_path):
    run = subprocess.run(
        [sys.executable, str(BASE_DIR / "manage.py"), "check"],
        env={"PATH": os.environ["PATH"], "CLAUDEOPS_DATA_DIR": str(tmp_path), name: value},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 1
    assert message in run.stderr
