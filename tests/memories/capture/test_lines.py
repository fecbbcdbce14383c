"""Which lines are an agent's own words: `memories/capture/lines.py`."""

from __future__ import annotations

import time

from hypothesis import given
from hypothesis import strategies as st

from memories.capture.lines import LINE_BREAK, LONGEST, MOST_LINES, accepted_lines


def own(text):
    return [line for _, line in accepted_lines(text).lines]


def test_plain_lines_are_all_accepted_with_their_numbers():
    assert accepted_lines("a\r\nb\rc\n").lines == ((1, "a"), (2, "b"), (3, "c"), (4, ""))


def test_quoted_lines_are_skipped_and_counted():
    accepted = accepted_lines("a\n> b\n  > c\n>>d\nlazy\n\ne > f")
    assert [line for _, line in accepted.lines] == ["a", "", "e > f"]
    assert accepted.skipped == ("> b", "  > c", ">>d", "lazy")


def test_what_is_in_a_fence_is_skipped(subtests):
    for text, expected in [
        ("a\n```\nb\n```\nc", ["a", "c"]),
        ("a\n```python title\nb\n```\nc", ["a", "c"]),
        ("a\n~~~\nb\n```\nb\n~~~\nc", ["a", "c"]),
        ("a\n````\nb\n```\nb\n````\nc", ["a", "c"]),
        ("a\n```\nb\n`````  \nc", ["a", "c"]),
        ("a\n```\nb\n``` not the end\nb\n```\nc", ["a", "c"]),
        ("a\n```\nnever closed\n> quoted in it", ["a"]),
        ("1. a\n    ```\n    b\n    ```\nc", ["1. a", "c"]),
        ("a\n- ```sh\n  b\n  ```\nc", ["a", "c"]),
        ("a\n10. ```\nb\n```\nc", ["a", "c"]),
        ("a ```inline``` b\n```all of it```\nc", ["a ```inline``` b", "```all of it```", "c"]),
        ("``\na\n``", ["``", "a", "``"]),
        ("> ```\na", ["a"]),
        ("a\n- ```\nb\n- ```\nb\n```\nc", ["a", "c"]),
    ]:
        with subtests.test(str(text)):
            assert own(text) == expected


def test_fenced_lines_are_counted_with_their_fences():
    assert accepted_lines("a\n```\nb\n> c\n```").skipped == ("```", "b", "> c", "```")


@given(st.text(alphabet="ab`~> \n\r-1.<!|", max_size=80))
def test_every_line_is_accepted_or_counted_and_kept_in_order(text):
    accepted = accepted_lines(text)
    numbers = [number for number, _ in accepted.lines]
    assert numbers == sorted(set(numbers))
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    assert len(lines) == len(numbers) + len(accepted.skipped)
    assert all(lines[number - 1] == line for number, line in accepted.lines)
    assert not any(line.lstrip().startswith(">") for _, line in accepted.lines)


MARKER = "[MEMORY:timing:caddy] Reload takes 3 s"

QUOTED = {
    "a fence": f"The file:\n```\n{MARKER}\n```",
    "a fence of tildes": f"~~~text\n{MARKER}\n~~~",
    "a fence that nothing closes": f"Output:\n```\n$ cat notes\n\n{MARKER}",
    "a fence in a list": f"- the file:\n  ```\n  {MARKER}\n  ```",
    "a fence whose text is not indented like its list": f"1. the file:\n   ```\n{MARKER}\n   ```",
    "indented code": f"The file says\n\n    {MARKER}",
    "code indented by a tab": f"The file says\n\n\t{MARKER}",
    "indented code in a list": f"- The file says\n\n      {MARKER}",
    "inline code": f"`{MARKER}`",
    "inline code in a sentence": f"The page holds `{MARKER}`.",
    "inline code over two lines": f"The page holds `some\n{MARKER}`",
    "inline code of two backticks": f"``\n{MARKER} `x` ``",
    "an HTML block": f"<div>\n{MARKER}\n</div>",
    "an element with empty lines": f"<details>\n<summary>page</summary>\n\n{MARKER}\n\n</details>",
    "preformatted text": f"<pre>\n{MARKER}\n\n</pre>",
    "a quotation in HTML that nothing closes": f"<blockquote>\n\n{MARKER}",
    "a comment": f"<!--\n{MARKER}\n-->",
    "a comment with empty lines": f"<!-- a\n\n{MARKER}\n\n-->",
    "a comment in a paragraph": f"Fine <!--\n{MARKER} --> so far",
    "an attribute": f'<a title="\n{MARKER}">x</a>',
    "an inline element": f"It holds <q>\n{MARKER}</q>",
    "a quotation": f"> {MARKER}",
    "a quotation in a list": f"- > {MARKER}",
    "the lazy continuation of a quotation": f"> The page says\n{MARKER}",
    "the lazy continuation in a list": f"- > The page says\n{MARKER}",
    "a table": f"| page | text |\n|---|---|\n| a | {MARKER} |",
    "a table without outer pipes": f"page | text\n---|---\n{MARKER} | a",
    "quotation marks": f'"{MARKER}"',
    "quotation marks in a sentence": f'The page says "please note. {MARKER}" at its end.',
    "German quotation marks": f"Dort steht „so ist es. {MARKER}“.",
    "guillemets": f"Il y est écrit «\n{MARKER} ».",
    "Japanese quotation marks": f"ログに「。{MARKER}」とある",
    "quotation marks over lines": f'The page says "hello\n{MARKER}\nbye".',
    "single quotation marks": f"The page says 'hello\n{MARKER}' at its end.",
    "a sentence about another's words": f"The page says {MARKER}",
    "a sentence with a colon": f"The last line of the log is: {MARKER}",
    "an escaped bracket": f"\\{MARKER}",
    "a link": f"[{MARKER}](https://example.org)",
    "a row that is no table": f"| a | {MARKER} |",
}


def test_a_marker_that_quotes_another_is_not_the_agents_own_and_is_counted(subtests):
    for text in QUOTED.values():
        with subtests.test(str(text)):
            accepted = accepted_lines(text)
            assert accepted.markers == ()
            assert sum(MARKER in line for line in accepted.skipped) == 1


OWN = {
    "a line": MARKER,
    "a line of a paragraph": f"I looked at caddy\n{MARKER}\nand went on",
    "an indented line of a paragraph": f"I looked at caddy\n      {MARKER}",
    "a line indented by three spaces": f"Done.\n\n   {MARKER}",
    "a bullet": f"- {MARKER}",
    "another bullet": f"* {MARKER}",
    "a sign as a bullet": f"• {MARKER}",
    "a number": f"12. {MARKER}",
    "a number with a parenthesis": f"3) {MARKER}",
    "a nested bullet": f"- a\n  - b\n    - {MARKER}",
    "a nested bullet, indented by four": f"1. a\n    - {MARKER}",
    "a paragraph of a list item": f"1. Looked at caddy\n\n    {MARKER}",
    "a checkbox": f"- [x] {MARKER}",
    "bold": f"**{MARKER}**",
    "bold in a list": f"- **{MARKER}**",
    "italics": f"_{MARKER}_",
    "an emoji": f"📝 {MARKER}",
    "an arrow": f"→ {MARKER}",
    "a heading": f"### {MARKER}",
    "a label": f"Memory: {MARKER}",
    "a label in bold": f"**Note:** {MARKER}",
    "a clause of its own": f"I note {MARKER}",
    "after a sentence": f"Reloaded it twice. {MARKER}",
    "after a sentence in Japanese": f"確認しました。{MARKER}",
    "after another marker": f"[EVENT:info:caddy] {MARKER}",
    "after a quotation and an empty line": f"> It was slow\n\n{MARKER}",
    "after a fence": f"```\n$ caddy reload\n```\n{MARKER}",
    "after a fence in a list": f"- ran\n  ```\n  caddy reload\n  ```\n- {MARKER}",
    "after a fence that is indented like no list": f"10. ran\n```\ncaddy reload\n```\n{MARKER}",
    "after a table and an empty line": f"| a | b |\n|---|---|\n| 1 | 2 |\n\n{MARKER}",
    "after an element": f"<br>\n\n{MARKER}",
    "after a placeholder": f"Ran docker restart <name> twice\n{MARKER}",
    "after an apostrophe": f"It's the users' disk, rock 'n' roll\n{MARKER}",
    "after inches": f'A 5" disk\n{MARKER}',
    "after closed quotation marks": f'It says "fine" and “good”\n{MARKER}',
    "after inline code": f"Ran `caddy reload`\n{MARKER}",
    "with code": f"{MARKER}; see `caddy reload`",
    "with a quotation": f'{MARKER} and says "ok"',
    "with a pipe": f"{MARKER} | grep caddy",
    "before a rule": f"{MARKER}\n\n---",
    "Windows line breaks": f"Done.\r\n{MARKER}\r\n",
}


def test_a_marker_in_plain_text_is_the_agents_own(subtests):
    for text in OWN.values():
        with subtests.test(str(text)):
            (place,) = [place for place in accepted_lines(text).markers if place.line.startswith(MARKER, place.start)]
            assert LINE_BREAK.split(text)[place.number - 1] == place.line


@given(st.lists(st.sampled_from(["[EVENT:info] a", "`", '"', "> ", "<b>", "</b>", "|", "\n", " ", "a.", "```"])))
def test_no_text_puts_a_marker_where_it_is_not(parts):
    text = "".join(parts)
    lines = LINE_BREAK.split(text)
    for place in accepted_lines(text).markers:
        assert lines[place.number - 1] == place.line
        assert place.line.startswith("[EVENT:", place.start)
        assert (place.number, place.line) in accepted_lines(text).lines


PARTS = ["`", "``` ", "> ", "*", "[", "|", "|a\n|-\n", "- a\n", "  - ", "<a ", "<!--", "<a>", '"', "a `b``c```d", "a\n"]


def test_no_text_makes_reading_slow(subtests):
    for part in [*PARTS, "[MEMORY:", f"{MARKER}. "]:
        with subtests.test(str(part)):
            text = f"{MARKER}\n" + (part * LONGEST)[: LONGEST - 50]
            started = time.process_time()
            accepted_lines(text)
            assert time.process_time() - started < 5  # half a second alone


def test_a_text_that_is_too_long_to_be_parsed_has_no_markers_and_they_are_counted():
    for text in ("word " * (LONGEST // 5), "\n" * MOST_LINES):
        accepted = accepted_lines(f"{MARKER}\n{text}")
        assert (accepted.markers, accepted.skipped) == ((), (MARKER,))
