"""What the detector finds, what it leaves alone, and how long it takes."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claudeops.lib.secrets import find, mask
from claudeops.lib.secrets.rules import KINDS
from claudeops.lib.secrets.table import TABLE
from tests.claudeops.lib.secrets.credentials import credentials
from tests.claudeops.lib.secrets.honest_logs import FORMS, honest_lines
from tests.claudeops.lib.secrets.later_credentials import later_credentials
from tests.claudeops.lib.secrets.values import Maker
from tests.support.thorough import PROFILE


def left_of(text: str, value: str) -> str:
    """The characters of the value that no finding covers."""
    start = text.index(value)
    found = find(text)
    places = range(start, start + len(value))
    return "".join(text[at] for at in places if not any(one.start <= at < one.end for one in found))


CASES = [*credentials(), *later_credentials()]


def test_a_credential_is_covered_and_the_rest_stays(subtests):
    for what, text, value in CASES:
        with subtests.test(str(what)):
            assert len(left_of(text, value).strip(" =.\n\\n")) <= 2
            masked = mask(text)
            assert "[secret: " in masked
            assert mask(masked) is masked
            assert find(masked) == []


def test_the_table_names_a_hundred_kinds():
    assert len({row["kind"] for rows in TABLE["rules"].values() for row in rows}) >= 100
    assert not any(set("[]\n*") & set(kind) for kind in KINDS)


PREFIXED = [(row["kind"], prefix, row) for row in TABLE["rules"]["prefixed"] for prefix in row["prefix"]]


def test_each_prefix_of_the_table_is_found_in_a_sentence_and_in_an_escape():
    letters = {
        "digits": "0123456789",
        "hex": "0123456789abcdef",
        "anyhex": "0123456789abcdef",
        "upper": "ABCDEFGHJK23456789",
        "base32": "ABCDEFGHJK234567",
        "lower": "abcdefghjkmn23456789",
        "uuid": "0123456789abcdef",
    }
    maker = Maker(3)
    for kind, prefix, row in PREFIXED:
        alphabet = letters.get(row["alphabet"], "abcdefghjkmnABCDEFGH23456789")
        value = prefix + maker.of(alphabet, max(row["length"][0], min(row["length"][1], 30)))
        for text in (f"It fails with {value} since noon", f"first line\\n{value}"):
            found = find(text)
            assert found, (kind, text)
            assert found[0].end == text.index(value) + len(value), (kind, text)
            assert text.index(value) - 1 <= found[0].start <= text.index(value) + len(prefix), (kind, text)


def test_a_placeholder_is_no_value(subtests):
    for text in [
        "password=<your password>",
        "password: ${DB_PASSWORD}",
        "password=********",
        "token: xxxxxxxxxxxxxxxx",
        "PASSWORD=REDACTED",
        "password: [secret: password]",
        "password: !vault |",
        "DB_PASSWORD={{ vault_db_password }}",
        "password = os.environ['X1_PASSWORD']",
        "token=$(cat /run/token)",
        "--password=$PW1",
        "password=%(password)s",
        "https://user:${PASSWORD}@host/",
        "Authorization: Bearer <token>",
        "api_key: your-api-key-1",
        "op://vault/item/password1",
        "the password is set by ansible",
        "-----BEGIN RSA PRIVATE KEY----- is the first line of such a file",
        "sk-learn-is-not-a-key-at-all-2",
        "key-value store",
    ]:
        with subtests.test(str(text)):
            assert mask(text) is text


def test_fewer_than_one_honest_line_in_ten_thousand_is_masked():
    thorough = PROFILE == "thorough"  # 100,000 lines
    lines = list(honest_lines(100_000 if thorough else 30 * len(FORMS), seed=99 if thorough else 8))
    wrong = [line for line in lines if find(line)]
    print(f"masked wrongly: {len(wrong)} of {len(lines)} honest lines")
    assert len(wrong) <= len(lines) / 10_000, wrong[:5]


def test_the_zero_width_and_the_full_width_are_found_where_they_stand():
    value = "ghp_" + "\u200b".join(["a1B2c3D4e5F6", "g7H8i9J0k1L2m3N4o5P6q7R8"])
    assert mask(f"é {value} ö") == "é [secret: GitHub token] ö"
    assert mask("ｐａｓｓｗｏｒｄ＝ｈｕｎｔｅｒ２２ 。") == "ｐａｓｓｗｏｒｄ＝[secret: password] 。"


ANY = st.text(st.characters(), max_size=200)
PIECES = st.lists(
    st.one_of(
        st.sampled_from(
            [
                "password",
                "token: ",
                "=",
                ": ",
                " is ",
                '"',
                "'",
                "\\",
                "\n",
                "\\n",
                "[secret: password]",
                "[secret: ",
                "]",
                "***",
                "ghp_",
                "a1B2c3D4" * 5,
                "://",
                "u:p4ss@",
                "eyJ",
                ".",
                "-----BEGIN PRIVATE KEY-----",
                "-----END PRIVATE KEY-----",
                "MIIEpAIBAAKCAQEA7bq",
                "Cookie: a=b1c2d3e4f5",
                "curl -u a:b1c2d3 ",
                "$6$abc$",
                "\x00",
                "пароль",
                "密码",
                "\u200b",
                "ｐ",
                "\ud800",
                "Basic b3BzOmh1bnRlcjIy",
                " ",
                "hunter2",
            ]
        ),
        st.text(st.characters(), max_size=5),
    ),
    max_size=25,
).map("".join)


@given(st.one_of(ANY, PIECES))
def test_any_text_has_findings_that_are_within_it_and_apart_and_masks_to_what_has_none(text):
    end = 0
    for one in find(text):
        assert end <= one.start < one.end <= len(text)
        assert one.kind != "unreadable text"
        end = one.end
    masked = mask(text)
    assert find(masked) == []
    assert mask(masked) is masked
    assert (masked is text) == (masked == text)


ENDLESS = [
    "`",
    "a",
    "A1b",
    "://",
    "password ",
    "password=",
    "password is ",
    "eyJ",
    "eyJ-",
    "eyJ.",
    "-----BEGIN ",
    "-----BEGIN PRIVATE KEY-----\nabcdefghijklmnopqrst\n",
    "-----END PRIVATE KEY-----",
    "token: ",
    "$6$",
    "~",
    '\\"',
    "\\",
    "curl -u ",
    "sk-",
    "пароль ",
    "密码是",
    "\u200b",
    "cookie:a=",
    "recovery codes: a1b2 ",
    "aws secret ",
    "echo a | sudo ",
    "htpasswd -b ",
    "credentials a/",
    "abcdefghijklmnopqrstuvwxyz012345\n",
    "://a:b",
    "?sig=",
    "***",
    "[secret: password]",
    "pw ",
    "password: '",
    "\n",
    "{",
    "+/",
    "A1b/",
]


@pytest.mark.parametrize("piece", ENDLESS, ids=ascii)
def test_the_time_grows_with_the_length_alone(piece):
    def seconds(length: int) -> float:
        text = (piece * (length // len(piece) + 1))[:length]
        start = time.process_time()
        find(text)
        return time.process_time() - start

    short, long = min(seconds(1_500) for _ in range(2)), min(seconds(24_000) for _ in range(2))
    assert long < 0.05 or long / max(short, 0.002) < 80  # 16 times the length; quadratic would be 256


def test_a_line_takes_less_than_a_millisecond():
    lines = [line[:120] for line in honest_lines(10 * len(FORMS))]
    best = 1.0
    for _ in range(3):
        start = time.process_time()
        for line in lines:
            find(line)
        best = min(best, (time.process_time() - start) / len(lines))
    print(f"{best * 1000:.3f} ms a line of at most 120 characters")
    assert best < 0.001  # 0.05 ms on an idle machine
