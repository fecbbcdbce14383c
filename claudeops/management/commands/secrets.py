"""`manage.py secrets`: find credentials in what is stored, and mask them."""

from __future__ import annotations

from claudeops.lib.cli import Result, VerbCommand, arg, table, verb
from claudeops.secret_scan import Scanned, scan


class Command(VerbCommand):
    help = "Credentials in what is stored. No value is ever printed."

    @verb
    def scan(self, *, mask: bool = arg("replace them by [secret: KIND]; without it, count only")) -> Result:
        """Count credentials in the database and the data folder. Exit code 1 when some are left."""
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
        again = {"manage.py secrets scan --mask": "mask them"} if done.left_count and not mask else {}
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
