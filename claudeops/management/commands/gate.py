"""The command `gate` with the verb that needs to know sessions' tools."""

from __future__ import annotations

from claudeops.lib.cli import Refusal, Result, arg, verb
from memories.management.commands.gate import Command as GateCommand
from memories.management.parameters import project
from memories.models import Project
from sessions_app.runner.exposure import Call, depends, judge
from sessions_app.runner.ingest import table_of


class Command(GateCommand):
    @verb
    def explain(
        self,
        *,
        command: str = arg("a shell command, as an agent runs it", metavar="COMMAND"),
        project: Project | None = project("as in a session of this project"),
    ) -> Result:
        """Say whose words a command's output counts as, and why."""
        if not command.strip():
            raise Refusal("usage", "The command is empty.", 'manage.py gate explain --command "docker logs web"')
        folder = project.path if project else ""
        sources = judge(Call("", "Bash", command), table_of(project), folder) or ()
        if not sources:
            counts_as, text = "house", "The own machines: it reports its own work, or shows their configuration."
        elif all(map(depends, sources)):
            counts_as = "depends"
            text = "It depends on the text: a line with a sentence is outside text, names and numbers are the house's."
        else:
            counts_as, text = "outside", "Outside text: others can write what it shows."
        shown = [f"  {source}" for source in sources]
        rule = "Another opinion is a source rule in the admin, such as Bash(PROGRAM SUBCOMMAND)."
        data = {"command": command, "counts_as": counts_as, "sources": list(sources)}
        return Result(data, "\n".join([text, *shown, rule]))
