"""Masks in values and in bytes."""

from __future__ import annotations

import json
from collections import Counter

from hypothesis import example, given
from hypothesis import strategies as st

from claudeops.lib.secrets import mask, mask_bytes, mask_counted, mask_value
from tests.claudeops.lib.secrets.test_find import CASES, PIECES
from tests.claudeops.lib.secrets.values import ALNUM, DIGITS, UPPER, Maker

TOKEN = "ghp_" + "a1B2" * 9


def test_the_kinds_are_counted():
    assert mask_counted(f"{TOKEN} and password=hunter2, password=hunter3") == (
        "[secret: GitHub token] and password=[secret: password], password=[secret: password]",
        Counter({"password": 2, "GitHub token": 1}),
    )


def test_a_value_keeps_its_shape_and_loses_what_stands_under_a_secrets_name():
    given_value = {
        "user": "ops",
        "password": "blau",
        "tokens": 17,
        "input_tokens": 12345,
        "pin": None,
        "nested": [{"api_key": "a1b2c3d4e5"}, (f"use {TOKEN}", 2.5, True)],
        TOKEN: "key",
        "dbPassword": 12345678,
        "passwords": ["rot12345", ""],
        "token_type": "bearer",
        "password_file": "/run/secrets/x",
    }
    assert mask_value(given_value) == {
        "user": "ops",
        "password": "[secret: password]",
        "tokens": 17,
        "input_tokens": 12345,
        "pin": None,
        "nested": [{"api_key": "[secret: key]"}, ("use [secret: GitHub token]", 2.5, True)],
        "[secret: GitHub token]": "key",
        "dbPassword": "[secret: password]",
        "passwords": ["[secret: password]", ""],
        "token_type": "bearer",
        "password_file": "/run/secrets/x",
    }
    assert mask_value(mask_value(given_value)) == mask_value(given_value)


def test_two_keys_that_are_masked_alike_both_stay():
    assert len(mask_value({TOKEN: 1, TOKEN.replace("B", "C"): 2})) == 2


def test_bytes_keep_their_number_and_their_line_breaks():
    key = Maker(1).pem()
    data = f"start\n{key}\r\npassword: hünter22 é\nend {TOKEN}\n".encode()
    masked, counts = mask_bytes(data)
    assert len(masked) == len(data)
    assert [at for at, byte in enumerate(masked) if byte in b"\r\n"] == [
        at for at, byte in enumerate(data) if byte in b"\r\n"
    ]
    assert counts == Counter({"private key": 1, "password": 1, "GitHub token": 1})
    assert b"MII" not in masked and b"nter22" not in masked and b"a1B2" not in masked
    assert b"end [secret: GitHub token]***" in masked
    assert mask_bytes(masked)[0] is masked


def test_bytes_that_hold_nothing_and_those_that_are_no_text_stay():
    for data in (b"", b"nothing here\n", b"\xff\xfe\x00" * 10):
        assert mask_bytes(data)[0] is data
    data = b"\xff password=hunter2\n\x80"
    assert mask_bytes(data)[0] == b"\xff password=*******\n\x80"


def test_what_is_escaped_is_found_as_it_is_read_and_covered_as_it_is_written():
    lines = [
        r'{"text": "pass\u0077ord=hun\u0074er22 and more", "n": 1}',
        r'{"text": "line\npassword: \"x\ty9-q\"\nend"}',
        r'{"inner": "{\"password\": \"hunter\\u00322\"}"}',
        '{"password": "h\\"u\\\\nter2"}',
        '{"password": 48151623, "input_tokens": 12345}',
        json.dumps({"key": Maker(2).pem()}),
    ]
    for line in lines:
        masked = mask_bytes(line.encode())[0]
        assert len(masked) == len(line.encode())
        before, after = json.loads(line), json.loads(masked)
        assert list(before) == list(after)
        assert before != after, line
        for part in ("hunter", "y9-q", "nter2", "48151623", "MII"):
            assert part not in masked.decode()
        assert mask_bytes(masked)[0] is masked
    assert b"12345" in mask_bytes(lines[4].encode())[0]


def test_a_line_of_json_that_is_cut_off_is_masked_too():
    line = r'{"text": "the pass\u0077ord is hunter22, then'
    assert b"hunter22" not in mask_bytes(line.encode())[0]


def test_a_key_over_several_lines_of_plain_text_is_found_between_lines_of_json():
    data = f'{{"a": 1}}\n{Maker(1).pem()}\n{{"b": 2}}\n'.encode()
    masked = mask_bytes(data)[0]
    assert masked.startswith(b'{"a": 1}\n') and masked.endswith(b'\n{"b": 2}\n')
    assert b"MII" not in masked


def test_each_credential_is_covered_in_bytes_as_plain_text_and_as_json():
    for what, text, value in CASES:
        for data in (
            text.encode(),
            json.dumps({"text": text}).encode(),
            json.dumps({"text": text}, ensure_ascii=False).encode(),
        ):
            masked = mask_bytes(data)[0]
            assert len(masked) == len(data), what
            assert json.dumps(value).encode()[1:-1] not in masked and value.encode() not in masked, (what, masked)
            assert mask_bytes(masked)[0] is masked, what


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), PIECES),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.one_of(PIECES, st.sampled_from(["password", "token", "pin"])), inner, max_size=4),
    ),
    max_leaves=8,
)


def shape(value: object) -> object:
    """The structure without the strings' contents."""
    if isinstance(value, dict):
        return [shape(one) for one in value.values()]
    if isinstance(value, list):
        return [shape(one) for one in value]
    return type(value).__name__


class Pairs(list):
    """A JSON object as pairs, so that keys that are masked alike both stay."""


def shape_of(text: str | bytes) -> object:
    def pairs(items):
        return Pairs([type(value).__name__ if not isinstance(value, list) else value for _, value in items])

    return shape(json.loads(text, object_pairs_hook=pairs))


@given(JSON, st.booleans())
@example({"-----BEGIN PRIVATE KEY-----passwordpassword\x85": None}, False)
def test_json_stays_json_of_the_same_structure_and_size(value, ascii_only):
    line = json.dumps(value, ensure_ascii=ascii_only)
    try:
        data = line.encode()
    except UnicodeEncodeError:
        data = json.dumps(value).encode()
    masked, counts = mask_bytes(data)
    assert len(masked) == len(data)
    assert shape_of(masked) == shape_of(data)
    assert mask_bytes(masked)[0] is masked
    assert bool(counts) == (masked != data)


@given(st.one_of(st.binary(max_size=200), PIECES.map(lambda text: text.encode("utf-8", "surrogatepass"))))
def test_any_bytes_keep_their_number_and_their_line_breaks(data):
    masked, _ = mask_bytes(data)
    assert len(masked) == len(data)
    assert [at for at, byte in enumerate(masked) if byte in b"\r\n"] == [
        at for at, byte in enumerate(data) if byte in b"\r\n"
    ]
    assert mask_bytes(masked)[0] is masked


@given(JSON)
def test_a_masked_value_stays_masked(value):
    masked = mask_value(value)
    assert mask_value(masked) == masked
    assert mask(json.dumps(masked)) is not None


def test_a_key_named_key_with_our_own_words_is_no_secret_beside_one():
    for number in range(20):
        value = Maker(number).base64(32)
        for said in (f"PrivateKey = {value}", f"the WireGuard private key is {value}", "the private key"):
            for one in ({"key": "s23:timing", "value": said}, {"value": said, "key": "s23:timing"}):
                line = json.dumps({"memories": [one]})
                for shown in (line, json.dumps({"text": line})):
                    masked = mask_bytes(shown.encode())[0].decode()
                    assert "s23:timing" in masked
                    assert value not in masked
    assert "hunter2" not in mask('"key": "s23:timing", "password": "hunter2"')


def test_a_mask_within_a_name_names_no_value():
    assert mask_value({f"curl -u a:{TOKEN} ": -10}) == {"curl -u a:[secret: GitHub token] ": -10}


FILLERS = ["密码是", "密码: ", "パスワードは", "пароль ", "password=", "password is ", "Bearer ", "curl -u ", "$6$a$"]
SIGNS = ["://", "`", "[", ">", "[MEMORY:", '"', " ", "~", "\\", "-", "aB3"]


def test_a_long_repetition_hides_no_value_behind_it(subtests):
    """tests/benchmarks/test_gate.py measures how long 100,000 characters of each take."""
    for filler in [*FILLERS, *SIGNS]:
        with subtests.test(str(filler)):
            long = filler * (4_000 // len(filler))
            masked = mask(f"{long}\n\npassword: Tr0ub4dor&3x\n\n{long}")
            assert "Tr0ub4dor" not in masked
            assert mask(masked) == masked


SPLITS = {
    "a line break": "{}\n{}",
    "a line break and an indentation": "the token is {}\n        {} and it expires",
    "a line break of another system": "{}\r\n{}",
    "a backslash at the end of the line": "{}\\\n{}",
    "two strings": '"{}"\n"{}"',
    "two strings in brackets": "key = ('{}'\n       '{}')",
    "a sum": 'key = "{}" + "{}"',
    "a sum over two lines": 'key = "{}" +\n    "{}"',
    "strings and a backslash": '"{}" \\\n   "{}"',
    "an escape": '{{"text": "{}\\n{}"}}',
    "an escape within an escape": '{{"text": "{{\\"t\\": \\"{}\\\\n{}\\"}}"}}',
    "HTML": "<p>{}<br>{}</p>",
    "a quotation": "> {}\n> {}",
    "a comment": "# {}\n# {}",
}


def tokens(seed: int) -> list[str]:
    m = Maker(seed)
    return [
        "ghp_" + m.of(ALNUM, 36),
        "glpat-" + m.of(ALNUM, 20),
        "AKIA" + m.of(UPPER + DIGITS, 16),
        "sk_live_" + m.of(ALNUM, 32),
    ]


def test_a_token_that_is_split_is_masked_whole():
    """But for fewer than eight characters, and one in thirty rests that look like a word or a number by chance."""
    whole = missed = 0
    for name, form in SPLITS.items():
        for token in [token for seed in range(3) for token in tokens(seed)]:
            for cut in range(8, len(token) - 7):
                data = form.format(token[:cut], token[cut:]).encode()
                masked, (covered, _) = mask(data.decode()), mask_bytes(data)
                assert mask(masked) == masked
                assert len(covered) == len(data)
                assert [at for at, byte in enumerate(covered) if byte in b"\r\n"] == [
                    at for at, byte in enumerate(data) if byte in b"\r\n"
                ]
                if name.startswith("an escape"):
                    json.loads(covered)
                left = [half in text for half in (token[:cut], token[cut:]) for text in (masked, covered.decode())]
                whole, missed = whole + 1, missed + any(left)
    assert whole > 2_500
    assert missed <= whole / 30


WORDS = st.lists(
    st.sampled_from(
        """is was then restart Restart the web01 host-7 GitHub JavaScript v1beta1 2026-11-27T10:00:00Z 12:30 10.0.0.5
        fix 9fceb02 3f2a9c1b7d44 sha256sum python3 /var/lib/x deploy-7d9f-x2k4p README.md ERROR HTTP/1.1 --force -v
        CI_JOB_ID user_name userName x86_64 0x7ffee4b2 1.2.3 eth0 80/tcp info: MEMORY nightly""".split()  # noqa: SIM905
    ),
    min_size=1,
    max_size=6,
).map(" ".join)


@given(st.integers(1, 50), st.sampled_from(sorted(SPLITS)), WORDS)
def test_the_text_after_a_token_stays(seed, name, words):
    for token in tokens(seed):
        text = SPLITS[name].format(token, words)
        masked = mask(text)
        assert words in masked, text
        assert token not in masked
        assert words.encode() in mask_bytes(text.encode())[0]
