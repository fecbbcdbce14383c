"""Marks of a merge and front matter, as the engines for agents' files and for MEMORY.md both read them."""

from __future__ import annotations

import pytest

from claudeops.lib.tracked_file.document import front_matter
from memories.curate import document as curated
from memories.files import document as agents

pytestmark = pytest.mark.fast

TWO_WAY = "<<<<<<< HEAD\n- port 8443\n=======\n- port 9443\n>>>>>>> laptop\n"
DIFF3 = "<<<<<<< ours\n- a\n||||||| base\n- b\n=======\n- c\n>>>>>>> theirs\n"
CONFLICTS = {
    "two-way": f"# Memory\n\n{TWO_WAY}",
    "diff3": f"# Memory\n{DIFF3}- last\n",
    "of a merge of merges": DIFF3.replace("|||||||", "||||||||| x").replace("<<<<<<<", "<<<<<<<<<"),
    "without labels": TWO_WAY.replace(" HEAD", "").replace(" laptop", ""),
    "CRLF": TWO_WAY.replace("\n", "\r\n"),
    "a byte order mark": f"\ufeff{TWO_WAY}",
    "an empty side": "- a\n<<<<<<< HEAD\n=======\n- b\n>>>>>>> x\n",
    "of another program": "<<<<<<< Conflict 1 of 1\n%%%%%%% diff\n- a\n+++++++ side\n- b\n>>>>>>> ends\n",
    "the first mark was left": "- a\n<<<<<<< HEAD\n- b\n",
    "the last mark was left": "- a\n>>>>>>> laptop\n- b\n",
    "cut off": "<<<<<<< HEAD\n- a\n=======\n",
    "one side closes the fence": "```\n<<<<<<< HEAD\na\n```\n=======\nb\n>>>>>>> x\n- c\n",
    "one side opens a fence": "<<<<<<< HEAD\n```sh\na\n=======\n```\nb\n>>>>>>> x\n```\n- c\n",
    "in front matter": f"---\nname: a\n{TWO_WAY}---\n- c\n",
}
NO_CONFLICTS = {
    "an example in a fence": f"# Merging\n\n```\n{TWO_WAY}```\n- a\n",
    "an example with tildes": f"~~~ text\n{DIFF3}~~~\n- a\n",
    "in a comment": f"<!--\n{TWO_WAY}-->\n- a\n",
    "a heading that is underlined": "Ports\n=======\n\n- a\n",
    "a longer underline": "A title\n=====================\n- a\n",
    "named in a sentence": "- A line `<<<<<<< HEAD` begins a conflict, >>>>>>> ends it\n",
    "indented": "    <<<<<<< HEAD\n    a\n    =======\n    >>>>>>> x\n",
    "quoted": "> <<<<<<< HEAD\n> =======\n> >>>>>>> x\n",
    "a table": "||||||| \n|-|\n- a\n",
    "fewer signs": "<<<<<< a\n======\n>>>>>> b\n",
}


def test_both_engines_find_the_same_conflicts(subtests):
    for tables, wanted in ((CONFLICTS, True), (NO_CONFLICTS, False)):
        for name, text in tables.items():
            with subtests.test(name):
                of_agent = agents.parse(text.encode())
                assert (of_agent.conflict, "conflict" in of_agent.unreadable) == (wanted, wanted)
                assert (curated.parse(text).conflict_line is not None) == wanted


FRONT = {
    "YAML": "---\nname: qa\ntags:\n- a\n---\n",
    "YAML that ends with dots": "---\n# a comment\n\nname: qa\n...\n",
    "TOML": '+++\ntitle = "x"\n[extra]\n- no entry\n+++\n',
    "a table of TOML": "+++\n[extra]\na = 1\n+++\n",
    "CRLF and blanks": "--- \r\nname: qa\r\n## no section\r\n- no: entry\r\n---\t\r\n",
    "a byte order mark": '\ufeff---\n"quoted key": qa\n---\n',
    "nothing": "---\n---\n",
}
NO_FRONT = {
    "a rule before entries": "---\n- [ ] a\n---\n",
    "a rule before a title": "---\n# Title\n\n- a\n\n---\n",
    "not closed": "---\nname: qa\n",
    "not at the beginning": "\n---\nname: qa\n---\n",
    "of two kinds": "---\nname: qa\n+++\n",
    "a longer rule": "----\nname: qa\n----\n",
}


def test_front_matter_is_kept_byte_for_byte_and_holds_neither_entry_nor_section(subtests):
    rest = "- An entry\n"
    for name, text in FRONT.items():
        with subtests.test(name):
            assert front_matter(text.removeprefix("\ufeff").splitlines()) == len(text.splitlines())
            of_agent, document = agents.parse((text + rest).encode()), curated.parse(text + rest)
            assert [entry.text for entry in of_agent.entries] == ["An entry"]
            assert [entry.text for entry in document.entries] == ["An entry"]
            assert not any(section.prose for section in of_agent.sections)
            assert of_agent.to_bytes().decode() == document.text == text + rest
    for name, text in NO_FRONT.items():
        with subtests.test(name):
            assert front_matter(text.removeprefix("\ufeff").splitlines()) == 0
