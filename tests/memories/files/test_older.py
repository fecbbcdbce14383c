"""Files of older shapes come in with every line: forty of our own making, and each shape by itself."""

from __future__ import annotations

import re
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memories.files import older, sync, take_in
from memories.files.document import parse
from memories.files.limits import Limits
from memories.files.older import Converted
from memories.files.sections import RECENT, sections_for
from memories.files.storage import agents_on_disk
from memories.files.sync import sync_file
from memories.files.told import told_to
from memories.models import AgentFile, AgentFileEntry, Memory, Project
from memories.models.project import CLAUDE_CODE
from tests.memories.files.conftest import Repository

FOLDER = Path(__file__).parent / "older"
FILES = sorted(FOLDER.iterdir())
AT = datetime(2026, 1, 5, 9, tzinfo=UTC)
BEFORE_TEXT = re.compile(r"[\s#*+•–-]*(?:\d{1,2}[.)](?=\s))?\s*")
DAY = re.compile(r"[\[(]?20\d\d-(?:0\d|1[0-2])-\d\d(?:[ T][\d:]+Z?)?(?:\](?!\()|\)|(?= –|:))(?: –|:)?\s+(?=\S)")


def converted(*files: tuple[str, bytes], agent: str = "research") -> Converted:
    return older.convert(files, agent, "Shop", sections_for(agent), Limits.of().as_dict(), AT)


def text_of(made: Converted) -> str:
    return made.document.to_bytes().decode()


def bare(text: str) -> str:
    """Return a line without what says which kind of line it is."""
    return DAY.sub("", text[BEFORE_TEXT.match(text).end() :], count=1).strip()  # type: ignore[union-attr]


def lines_of(data: bytes) -> Counter[str]:
    text = data.decode("utf-8-sig").replace("\r\n", "\n")
    return Counter(found for line in text.split("\n") if (found := bare(line)))


@pytest.mark.parametrize(
    ("text", "kept", "below"),
    [
        (b"# R\nNotes.\n\nOnly on staging:\n\n- a\n- b\n", "# R\nNotes.\n", "\nOnly on staging:\n\n- a\n- b\n"),
        (b"# R\n\nOnly on staging\nof the shop:\n1. a\n", "# R\n", "\nOnly on staging\nof the shop:\n- a\n"),
        (b"# R\n\nWhat we know.\n\n- a\n", "# R\n\nWhat we know.\n", "\n- a\n"),
        (b"# R\n<!-- kept:\nas it is -->\n- a\n", "# R\n<!-- kept:\nas it is -->\n", "\n- a\n"),
    ],
)
def test_what_leads_a_list_in_goes_with_it_below_recent_learnings(text: bytes, kept: str, below: str) -> None:
    made = text_of(converted(("research.md", text)))
    assert f"## {RECENT}{below}" in made
    assert kept.splitlines()[-1] in made.partition(f"## {RECENT}")[0].splitlines()


def test_there_are_forty_files() -> None:
    assert len(FILES) == 40


def test_a_file_of_an_older_shape_comes_out_with_every_line(subtests):
    for path in FILES:
        with subtests.test(str(path)):
            agent, _ = older.agent_of(path.name)
            made = converted((path.name, path.read_bytes()), agent=agent)
            missing = lines_of(path.read_bytes()) - lines_of(made.document.to_bytes())
            assert agent and missing == lines_of(
                b"Components" if path.name == "web_ui_memories.md" else b""
            )  # twice in it
            assert made.document.entries and made.reports[0].entries == len(made.document.entries)
            assert all(entry.section for entry in made.document.entries)
            for number, at in enumerate(made.sources):
                if at is not None:
                    assert bare(parse(path.read_bytes()).lines[at[1]][0]) == bare(made.document.lines[number][0])


@pytest.mark.django_db
def test_forty_older_files_of_one_folder_are_taken_in_once(project: Project, repository: Repository) -> None:
    folder = repository.file().parent
    folder.mkdir(parents=True)
    for path in FILES:
        (folder / path.name).write_bytes(path.read_bytes())
    agents = sorted({older.agent_of(path.name)[0] for path in FILES})
    for agent in agents:
        done = sync_file(project, agent, create=True, at=AT)
        of_agent = [path for path in FILES if older.agent_of(path.name)[0] == agent]
        assert done.state in ("ok", "full") and len(done.notes) == len(of_agent)
        wanted = sum((lines_of(path.read_bytes()) for path in of_agent), Counter())
        # A second title of one name becomes a heading of the section it stands in.
        missing = set(wanted) - set(lines_of(repository.file(agent).read_bytes()))
        assert all("Last Updated" in line for line in missing)  # which is renewed
        entries = parse(repository.file(agent).read_bytes()).entries
        assert AgentFileEntry.objects.filter(file__agent=agent).count() == len({entry.text for entry in entries})
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert {path.name: path.read_bytes() for path in FILES}.items() <= before.items()
    count = Memory.objects.count()
    for agent in agents:
        again = sync_file(project, agent, create=True, at=AT)
        assert not again.changed and not again.notes
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert Memory.objects.count() == count


def test_a_flat_list_becomes_recent_learnings_and_prose_stays_above_it() -> None:
    made = converted(("research.md", b"Notes of May.\n\n- one\n- two\n\nAnd this.\n"))
    body = text_of(made).split("-->\n\n", 1)[1]
    assert body == "Notes of May.\n\n## Recent Learnings\n- one\n- two\n\nAnd this.\n"
    assert text_of(made).startswith("# Research Memory - Shop\n\n<!-- MEMORY LIMITS: 8 KB")


def test_a_date_before_an_entry_becomes_its_day() -> None:
    data = (
        b"- [2025-03-02] one\n- 2025-03-04: two\n* (2025-03-05 14:02) three\n- [2025-02-30] four\n- [2025-03-06](x)\n"
    )
    made = converted(("research.md", data))
    assert [(entry.text, made.since(entry.start, entry.end)) for entry in made.document.entries] == [
        ("one", datetime(2025, 3, 2, tzinfo=UTC)),
        ("two", datetime(2025, 3, 4, tzinfo=UTC)),
        ("three", datetime(2025, 3, 5, tzinfo=UTC)),
        ("[2025-02-30] four", None),
        ("[2025-03-06](x)", None),
    ]
    assert made.reports[0].dated == 3


def test_numbered_lines_are_entries_and_what_is_nested_stays_with_them() -> None:
    made = converted(("research.md", b"1. one\n   more\n   1) nested\n   - nested\n2) two\n"))
    assert [entry.text for entry in made.document.entries] == ["one more", "two"]
    assert "   1) nested\n   - nested\n- two\n" in text_of(made)


def test_deeper_headings_are_sections_where_there_are_no_others() -> None:
    made = converted(("research.md", b"# R\n### API\n- one\n#### Errors\n- two\n"))
    assert [section.name for section in made.document.sections if section.line >= 0] == ["API", "Errors"]
    kept = converted(("research.md", b"# R\n## API\n- one\n### Errors\n- two\n"))
    assert "### Errors\n" in text_of(kept)
    assert [(entry.section, entry.text) for entry in kept.document.entries] == [("API", "one"), ("API", "two")]


def test_code_and_comments_stay_as_they_are() -> None:
    data = b"- one\n```\n1. code\n# code\n```\n<!--\n1. comment\n-->\n"
    assert text_of(converted(("research.md", data))).endswith(
        "- one\n```\n1. code\n# code\n```\n<!--\n1. comment\n-->\n"
    )


def test_two_older_files_of_one_agent_become_one_with_each_section_once() -> None:
    made = converted(
        ("research.md", b"## API\n- one\n\n## B\n- x\n"), ("research_memory.md", b"## api\n- two\n- [2025-01-01] y\n")
    )
    assert [(entry.section, entry.text) for entry in made.document.entries] == [
        ("API", "one"),
        ("API", "two"),
        ("API", "y"),
        ("B", "x"),
    ]
    assert {at[0] for at in made.sources if at} == {0, 1}


def test_a_file_of_the_present_shape_is_not_an_older_one() -> None:
    sections = sections_for("research")
    assert not older.is_older(parse(b"## Project Architecture\n- one\n\n1. prose of a person\n"), sections)
    assert not older.is_older(parse(b"<!-- Last Updated: x -->\n- one\n1. two\n"), sections)
    assert not older.is_older(parse(b"## Of my own\n- one\n"), sections)
    assert older.is_older(parse(b"- one\n"), sections)
    assert older.is_older(parse(b"### A\n- one\n"), sections)


def test_the_agent_of_an_older_file_is_read_from_its_name(subtests):
    for name, agent, sure in [
        ("research_memories.md", "research", True),
        ("Data-Engineer_memory.md", "data_engineer", True),
        ("research_agent_memories.md", "research", True),
        ("version-control-agent.md", "version_control", False),
        ("research.md", "research", False),
        ("README.md", "", False),
        ("MEMORY.md", "", False),
        ("research_memories.txt", "", False),
    ]:
        with subtests.test(str(name)):
            assert older.agent_of(name) == (agent, sure)


WORDS = st.text(st.sampled_from("ab 1.-#*[]:`<>!\t\n"), max_size=60)


@given(WORDS)
@example("- [2025-01-01] - x\n")
def test_every_word_of_any_text_comes_out(text: str) -> None:
    made = converted(("research.md", text.encode()))
    wanted = Counter(re.findall(r"[ab]+", text))
    assert not wanted - Counter(re.findall(r"[ab]+", text_of(made)))
    again = converted(("research.md", made.document.to_bytes()))
    assert again.document.to_bytes() == made.document.to_bytes()


# In a repository.


def put(repository: Repository, name: str, text: str) -> Path:
    path = repository.file().parent / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@pytest.mark.django_db
def test_an_older_file_that_a_person_committed_is_that_persons_word(project: Project, repository: Repository) -> None:
    text = "- [2025-03-02] Orders live in Postgres\n- Deploys run from the tag\n"
    path = put(repository, "research_memories.md", text)
    repository.commit()
    path.write_text(text + "- Nobody committed this line\n")
    done = sync_file(project, "research", create=True, at=AT)
    assert done.notes == ["research_memories.md is taken in: 3 lines, of them 3 entries, 1 section, 1 date."]
    rows = {row.text: row for row in AgentFileEntry.objects.select_related("memory")}
    assert rows["Orders live in Postgres"].author == "git:Ada"
    assert rows["Orders live in Postgres"].since == datetime(2025, 3, 2, tzinfo=UTC)
    assert rows["Deploys run from the tag"].memory.confidence == 1.0
    assert rows["Nobody committed this line"].author == "file"
    assert rows["Nobody committed this line"].since == AT


@pytest.mark.django_db
def test_an_older_file_in_the_place_of_the_new_one_is_copied(project: Project, repository: Repository) -> None:
    repository.save("1. Orders live in Postgres\n2. Deploys run from the tag\n")
    sync_file(project, "research", create=True)
    assert "## Recent Learnings\n- Orders live in Postgres\n- Deploys run from the tag\n" in repository.text()
    copies = list(repository.file().parent.glob("research_agent.md.older-*"))
    assert [path.read_text() for path in copies] == ["1. Orders live in Postgres\n2. Deploys run from the tag\n"]
    assert not sync_file(project, "research", create=True).changed


def in_claude_code(project: Project, repository: Repository, name: str, text: str) -> Path:
    """Let the CLI write an agent's file in its own layout."""
    Project.objects.update(files_folder=CLAUDE_CODE[0], files_pattern=CLAUDE_CODE[1])
    project.refresh_from_db()
    path = repository.path / ".claude" / "agent-memory" / name / "MEMORY.md"
    path.parent.mkdir(parents=True)
    path.write_bytes(text.encode())
    return path


@pytest.mark.django_db
def test_a_file_of_claude_code_without_our_sections_is_taken_in_where_it_is(
    project: Project, repository: Repository
) -> None:
    front = "\ufeff---\r\nname: ops-memory\r\ntags:\r\n- none of ours\r\n---\r\n"
    for name, begin, end in (("ops", "", "\n"), ("web-ui", front, "\r\n")):
        text = f"{begin}- Use tabs in Makefiles{end}"
        path = in_claude_code(project, repository, name, text)
        done = sync_file(project, name, create=True)
        assert (done.state, done.problem) == ("ok", "")
        written = path.read_bytes().decode()
        assert written.startswith(begin) and f"## Recent Learnings{end}- Use tabs in Makefiles{end}" in written
        assert [one.read_bytes().decode() for one in path.parent.glob("MEMORY.md.older-*")] == [text]
        assert told_to(name, project.pk).text == "### Recent Learnings\n- Use tabs in Makefiles"
        assert not sync_file(project, name, create=True).changed


def test_front_matter_of_the_first_of_several_older_files_stays_and_no_other_s() -> None:
    made = converted(
        ("a.md", b"+++\r\nname = 1\r\n+++\r\n- one\r\n"), ("b.md", b"---\nname: b\ntags:\n- x\n---\n- two\n")
    )
    assert text_of(made).startswith("+++\r\nname = 1\r\n+++\r\n# Research Memory - Shop\r\n")
    assert [entry.text for entry in made.document.entries] == ["one", "two"] and "name: b" not in text_of(made)


@pytest.mark.django_db
def test_an_older_file_that_cannot_be_read_is_a_problem(project: Project, repository: Repository) -> None:
    path = put(repository, "research.md", "- Orders live in Postgres\n")
    path.write_bytes(b"- a\x00b\n")
    done = sync_file(project, "research", create=True)
    assert (done.state, done.problem) == ("unreadable", "research.md cannot be taken in: it holds NUL bytes.")
    path.write_text("- Orders live in Postgres\n")
    assert sync_file(project, "research", create=True).state == "ok"
    assert AgentFile.objects.get().entries.count() == 1


@pytest.mark.django_db
def test_an_older_file_beside_a_file_that_is_in_step_is_left_alone(project: Project, repository: Repository) -> None:
    sync_file(project, "research", create=True)
    put(repository, "research.md", "- Orders live in Postgres\n")
    assert not sync_file(project, "research", create=True).changed
    assert not Memory.objects.exists()


@pytest.mark.django_db
def test_the_agents_of_a_folder_are_found_by_the_names_of_their_files(project: Project, repository: Repository) -> None:
    for name in ("research_agent.md", "qa_memories.md", "notes.md", "README.md", "Odd Name_agent.md"):
        put(repository, name, "- one\n")
    assert agents_on_disk(project) == ["qa", "research"]


@pytest.mark.django_db
@pytest.mark.parametrize("target", ["/etc/hostname", "../../../outside.md"])
def test_an_older_file_that_links_out_of_the_repository_is_not_read(
    project: Project, repository: Repository, target: str
) -> None:
    (repository.path.parent / "outside.md").write_text("- secret of another folder\n")
    path = put(repository, "research.md", "")
    path.unlink()
    path.symlink_to(target)
    done = sync_file(project, "research", create=True)
    assert done.state == "unreadable" and "leads out of the repository" in done.problem


@pytest.mark.django_db
def test_an_older_file_with_more_entries_than_a_file_may_have_is_a_problem(
    project: Project, repository: Repository
) -> None:
    put(repository, "research.md", "".join(f"1. fact {n}\n" for n in range(10_001)))
    done = sync_file(project, "research", create=True)
    assert done.problem == "research.md cannot be taken in: it has more than 10,000 entries."
    assert not repository.file().exists() and not Memory.objects.exists()


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("module", "step"),
    [(take_in, "_place"), (sync, "next_document"), (sync, "_mark_left"), (sync, "_settle")],
)
def test_a_sync_that_dies_while_it_takes_in_an_older_file_is_finished_by_the_next(
    project: Project, repository: Repository, monkeypatch: pytest.MonkeyPatch, module: ModuleType, step: str
) -> None:
    put(repository, "research.md", "1. [2025-03-02] Orders live in Postgres\n2. Deploys run from the tag\n")

    class Killed(BaseException):
        pass

    def killed(*_: object, **__: object) -> None:
        raise Killed

    with monkeypatch.context() as patched, pytest.raises(Killed):
        patched.setattr(module, step, killed)
        sync_file(project, "research", create=True, at=AT)
    sync_file(project, "research", create=True, at=AT)
    assert repository.text().count("Orders live in Postgres") == 1
    assert Memory.objects.count() == AgentFileEntry.objects.count() == 2
    since = AgentFileEntry.objects.get(text="Orders live in Postgres").since
    assert since == datetime(2025, 3, 2, tzinfo=UTC)
    assert not sync_file(project, "research").changed
