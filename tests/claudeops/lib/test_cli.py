"""Commands: the arguments of a verb by its signature, what it answers, and what it refuses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from claudeops.lib.cli import Refusal, Result, SoleCommand, VerbCommand, arg, by, listing, more, verb
from tests.support import commands


def number(text: str) -> int:
    if text == "thirteen":
        raise Refusal("unlucky", "13 is not read.", "Give another one.")
    return len(text)


@dataclass(frozen=True)
class Colours:
    dark: bool = arg("less light")
    tint: str | None = arg("a colour", choices=("red", "blue"))


class Base(VerbCommand):
    help = "Boats."

    @verb
    def sail(
        self,
        where: str = arg("a harbour"),
        crew: Sequence[int] = arg("numbers", metavar="N", default=()),
        *,
        knots: int = arg("how fast", default=5, within=(1, 30)),
        words: str | None = arg("their letters are counted", read=number),
        tag: Sequence[str] = arg(),
        back: bool | None = arg("whether it returns"),
        sails: int = 2,
        day: bool = arg(group="time"),
        night: bool = arg(group="time"),
        by: str = by(),
        colours: Colours,
    ) -> Result:
        """Sail somewhere.

        This is for who reads the code.
        """
        data = {name: value for name, value in locals().items() if name != "self"} | {"colours": vars(colours)}
        return Result(data, f"Sails to {where}.", {"boat show": "see it"}, exit_code=3 if night else 0)


class Boat(Base):
    @verb
    def show_(self) -> Result:
        """Show it."""
        raise Refusal("sunk", "It is not there.", "Lift it.")


class Anchor(SoleCommand):
    def run(self, depth: float = arg("metres")) -> Result:  # type: ignore[override]
        return Result({"depth": depth})


run, result = partial(commands.run, Boat()), partial(commands.result, Boat())


def test_each_parameter_is_an_argument_by_its_kind_its_type_and_its_default(monkeypatch):
    monkeypatch.setattr("getpass.getuser", lambda: "ann")
    assert result("sail", "Graz") == {
        "where": "Graz",
        "crew": [],
        "knots": 5,
        "words": None,
        "tag": [],
        "back": None,
        "sails": 2,
        "day": False,
        "night": False,
        "by": "ann",
        "colours": {"dark": False, "tint": None},
    }
    given = (
        "7",
        "8",
        "--knots",
        "9",
        "--words",
        "four",
        "--tag",
        "a",
        "--tag",
        "b",
        "--no-back",
        "--by",
        "me",
        "--dark",
    )
    found = result("sail", "Graz", *given, "--dark", "--tint", "red")
    expected: dict[str, Any] = {"crew": [7, 8], "knots": 9, "words": 4, "tag": ["a", "b"], "back": False, "by": "me"}
    assert found == found | expected | {"colours": {"dark": True, "tint": "red"}}


def test_the_first_paragraph_of_the_docstring_is_the_help(capsys):
    assert run("sail", "--help")[0] == 0
    assert "Sail somewhere.\n\npositional" in capsys.readouterr().out
    assert list(Boat().verbs) == ["sail", "show"]


@pytest.mark.parametrize(
    "wrong", [("sail",), ("sail", "Graz", "x"), ("sail", "Graz", "--tint", "green"), ("sail", "a", "--day", "--night")]
)
def test_wrong_usage_exits_with_2(wrong):
    assert run(*wrong)[0] == 2


@pytest.mark.parametrize(
    ("given", "code", "message"),
    [
        (("sail", "Graz", "--knots", "31"), "usage", "--knots is 31; allowed is 1 to 30."),
        (("sail", "Graz", "--words", "thirteen"), "unlucky", "13 is not read."),
        (("show",), "sunk", "It is not there."),
    ],
)
def test_a_refusal_has_its_code_its_words_and_what_helps(given, code, message):
    status, document = commands.document(Boat(), *given)
    assert (status, document["ok"], document["error"]) == (1, False, {"code": code, "message": message})
    status, out, err = run(*given)
    assert (status, out) == (1, "")
    assert err == f"Error: {message}\n" + (f"{document['fix']}\n" if document["fix"] else "")


def test_the_answer_is_one_document_or_a_text_with_the_exit_code_of_the_result():
    assert run("sail", "Graz", "--night") == (3, "Sails to Graz.\n", "")
    code, document = commands.document(Boat(), "sail", "Graz", "--night")
    assert (code, document["ok"], document["command"]) == (3, True, "test_cli sail")
    assert document["next_actions"] == [{"command": "boat show", "description": "see it"}]
    assert commands.document(Anchor(), "2.5")[1]["result"] == {"depth": 2.5}


def test_records_are_listed_by_columns():
    columns = {"name": "name", "letters": lambda one: len(one.name)}
    rows = [Path("ab"), Path("abcde")]
    assert listing(rows, columns) == "name   letters\n-----  -------\nab     2\nabcde  5"
    assert listing([], columns, "None.") == "None."
    assert (more(2, 3), more(3, 3)) == ("\n2 of 3; --limit shows more.", "")
