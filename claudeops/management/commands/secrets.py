"""`manage.py secrets`: find credentials in what is stored, and mask them."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from claudeops.lib.cli import NextAction, Result, Verb, VerbCommand, table
from claudeops.secret_scan import Scanned, scan


class Command(VerbCommand):
    help = "Credentials in what is stored. No value is ever printed."
    noun = "secrets"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.verbs = {
            "scan": Verb(
                "Count credentials in the database and the data folder. Exit code 1 when some are left.",
                self.scan,
                _scan,
            )
        }

    def scan(self, mask: bool) -> Result:
        done = scan(masking=mask)
        data = {
            "masked": mask,
            "found": done.count,
            "left": done.left_count,
            "kinds": dict(done.kinds().most_common()),
            "places": {place: dict(kinds.most_common()) for place, kinds in sorted(done.found.items())},
            "places_left": {place: dict(kinds.most_common()) for place, kinds in sorted(done.left.items())},
            "problems": done.problems,
        }
        again = [NextAction("manage.py secrets scan --mask", "mask them")] if done.left_count and not mask else []
        return Result(data, as_text(done), again, exit_code=1 if done.left_count or done.problems else 0)


def as_text(done: Scanned) -> str:
    if not done.count:
        return "\n".join(["No credential was found.", *done.problems])
    rows = [
        [place, kind, f"{number:,}"] for place, kinds in sorted(done.found.items()) for kind, number in kinds.items()
    ]
    lines = [table(["place", "kind", "number"], rows), ""]
    if not done.masking:
        lines.append(f"{done.count:,} found. --mask replaces them; nothing was changed.")
    else:
        lines.append(f"{done.count - done.left_count:,} of {done.count:,} masked. Backups from before still hold them.")
        lines += [f"Left: {place} ({kinds.total():,})" for place, kinds in sorted(done.left.items())]
    return "\n".join([*lines, *done.problems])


def _scan(parser: ArgumentParser) -> None:
    parser.add_argument("--mask", action="store_true", help="replace them by [secret: KIND]; without it, count only")
