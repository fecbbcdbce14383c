"""`manage.py secrets`: find credentials in what is stored, and mask them."""

from __future__ import annotations

from claudeops.features.secret_scan import Scanned, scan
from claudeops.lib.cli import Result, VerbCommand, arg, table, verb


class Command(VerbCommand):
    help = "Credentials in what is stored. No value is ever printed."

    @verb
    def scan(self, *, mask: bool = arg("replace them by [secret: KIND]; without it, count only")) -> Result:
        """Count credentials in the database and the data folder. Exit code 1 when some are left."""
        report = scan(masking=mask)
        data = {
            "masked": mask,
            "found": report.count,
            "left": report.left_count,
            "kinds": dict(report.kinds().most_common()),
            "places": {place: dict(kinds.most_common()) for place, kinds in sorted(report.found.items())},
            "places_left": {place: dict(kinds.most_common()) for place, kinds in sorted(report.left.items())},
            "problems": report.problems,
        }
        again = {"manage.py secrets scan --mask": "mask them"} if report.left_count and not mask else {}
        return Result(data, as_text(report), again, exit_code=1 if report.left_count or report.problems else 0)


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
