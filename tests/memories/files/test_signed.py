"""A signature by a key that the project allows is its owner's word, whoever is at work; nothing else of it counts."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path

import pytest
from django.utils import timezone

from memories.committers import Look, signers_of
from memories.files.authors import authors_of
from memories.files.document import parse
from memories.models import Project, SeenCommit
from sessions_app.models import PromptReceipt
from tests.memories.files.conftest import Repository
from tests.support.ssh_keys import Key, make_key

pytestmark = pytest.mark.processes


@pytest.fixture
def ada(tmp_path: Path) -> Key:
    return make_key(tmp_path, "ada")


@pytest.fixture
def at_work(project: Project) -> PromptReceipt:
    """An agent that is at work in the folder."""
    return PromptReceipt.objects.create(cli_session_id="an agent", project=project)


def allow(project: Project, lines: str) -> None:
    project.allowed_signers = lines.replace("\n", "\r\n")  # as a form sends them
    project.save(update_fields=["allowed_signers"])


def author(repository: Repository) -> str:
    """Return whose word the file's one line is, as if it were looked at for the first time."""
    SeenCommit.objects.all().delete()
    look = Look(Project.objects.get(), None, timezone.now())
    found = authors_of(repository.file(), parse(repository.file().read_bytes()), look)
    return found.lines.get(0, "file")


def commit(repository: Repository, name: str = "Ada", key: Key | None = None, when: str = "") -> None:
    """Let `name` commit the file's one line as a first commit, signed by `key`, with `when` as both dates."""
    repository.save("- a\n")
    repository.git("init", "-q")
    repository.git("update-ref", "-d", "HEAD")
    repository.git("add", ".claude-mpm")
    dated = ("-c", f"alias.dated=!GIT_COMMITTER_DATE={when} GIT_AUTHOR_DATE={when} git", "dated") if when else ()
    author = f"--author={name} <{name.lower()}@example.org>"
    repository.git(*dated, *(key.signing if key else ()), "commit", "-qm", "Note it", author)


def test_whose_word_a_signed_commit_is(
    repository: Repository, project: Project, at_work: PromptReceipt, ada: Key, tmp_path: Path, subtests
) -> None:
    other = make_key(tmp_path, "other")
    own, both = ada.allowed("ada@example.org"), ada.allowed("ada@example.org") + other.allowed("bob@example.org")
    for about, key, by, allowed, said in [
        ("the key that is allowed, of an author who is not trusted", ada, "Eve", own, "git:ada@example.org"),
        ("the second of two", other, "Ada", both, "git:bob@example.org"),
        ("the key of another principal is that one's word", ada, "Ada", ada.allowed("bob@x.org"), "git:bob@x.org"),
        ("another key, of an author who is trusted", other, "Ada", own, "file"),
        ("the key for something else", ada, "Ada", ada.allowed("ada@example.org", 'namespaces="file"'), "file"),
        ("a key that is too old", ada, "Ada", ada.allowed("ada@example.org", 'valid-before="20200101"'), "file"),
        ("a key of an authority, which signs no commit", ada, "Ada", ada.allowed("*", "cert-authority"), "file"),
        ("nothing is allowed", ada, "Ada", " \n", "file"),
        ("lines that say nothing", ada, "Ada", "ada@example.org\n# nobody\n", "file"),
        ("no signature", None, "Ada", own, "file"),
    ]:
        with subtests.test(about):
            allow(project, allowed)
            commit(repository, name=by, key=key)
            assert author(repository) == said
    at_work.delete()
    allow(project, own)
    commit(repository, name="Ada", key=other)
    assert author(repository) == "git:Ada", "a foreign signature takes nothing from an author who is trusted"


def test_a_signature_that_is_carried_over_to_another_commit_counts_for_nothing(
    repository: Repository, project: Project, at_work: PromptReceipt, ada: Key
) -> None:
    allow(project, ada.allowed("ada@example.org"))
    commit(repository, key=ada)
    signed = repository.git("cat-file", "commit", "HEAD")
    (repository.path / "forged").write_text(signed.replace("Note it", "Note this"))
    forged = repository.git("hash-object", "-t", "commit", "-w", "forged").strip()
    assert author(repository) == "git:ada@example.org"
    repository.git("reset", "-q", "--hard", forged)
    assert author(repository) == "file"


def test_allowed_signers_of_the_repository_count_for_nothing(
    repository: Repository, project: Project, at_work: PromptReceipt, ada: Key, tmp_path: Path
) -> None:
    commit(repository, key=ada)
    (repository.path / ".allowed_signers").write_text(ada.allowed("ada@example.org"))
    repository.git("config", "gpg.format", "ssh")
    repository.git("config", "gpg.ssh.allowedSignersFile", str(repository.path / ".allowed_signers"))
    for allowed in ("", make_key(tmp_path, "other").allowed("ada@example.org")):
        allow(project, allowed)
        assert author(repository) == "file"
    assert "G" in repository.git("log", "-1", "--format=%G?"), "the person's own git believes it"


def test_a_date_changes_nothing(repository: Repository, project: Project, ada: Key, subtests) -> None:
    allow(project, ada.allowed("ada@example.org"))
    for year in ("2019", "2037"):
        for key, by, agent, said in [
            (None, "Ada", False, "git:Ada"),
            (None, "Ada", True, "file"),
            (ada, "Eve", True, "git:ada@example.org"),
        ]:
            with subtests.test(f"{year} {by} {agent}"):
                PromptReceipt.objects.filter(cli_session_id="an agent").delete()
                if agent:
                    PromptReceipt.objects.create(cli_session_id="an agent", project=project)
                commit(repository, name=by, key=key, when=f"{year}-03-01T12:00:00")
                assert repository.git("log", "-1", "--format=%cs %as").split() == [f"{year}-03-01"] * 2
                assert author(repository) == said


def test_a_key_that_is_allowed_until_a_day_signs_nothing_later_under_an_earlier_date(
    repository: Repository, project: Project, at_work: PromptReceipt, ada: Key
) -> None:
    allow(project, ada.allowed("ada@example.org", 'valid-before="20200101"'))
    commit(repository, key=ada, when="2019-03-01T12:00:00")
    assert author(repository) == "file"


def public(kind: str, *parts: bytes) -> str:
    """Return a public key as ssh writes it: a key with touch cannot be made without its token."""
    fields = b"".join(len(part).to_bytes(4, "big") + part for part in (kind.encode(), *parts))
    return f"{kind} {base64.b64encode(fields).decode()}"


POINT = hashlib.sha512(b"a point").digest()


@pytest.mark.parametrize(
    "key",
    [
        public("ssh-ed25519", POINT[:32]),
        public("ssh-rsa", b"\x01\x00\x01", b"\x00" + POINT * 6),
        public("ecdsa-sha2-nistp256", b"nistp256", b"\x04" + POINT),
        *(
            key
            for key in (
                public("sk-ssh-ed25519@openssh.com", POINT[:32], b"ssh:"),
                public("sk-ecdsa-sha2-nistp256@openssh.com", b"nistp256", b"\x04" + POINT, b"ssh:"),
            )
        ),
    ],
    ids=lambda key: key.partition(" ")[0],
)
def test_each_kind_of_key_is_kept_as_it_was_typed(project: Project, key: str) -> None:
    allow(project, f"ada@example.org {key}\n")
    with signers_of(Project.objects.get()) as path:
        assert Path(path).read_text().split() == ["ada@example.org", *key.split()]


SAYS_SSH = """#!/bin/sh
touch {ran}
case "$*" in *find-principals*) echo ada@example.org ;; esac
echo 'Good "git" signature for ada@example.org with ED25519 key SHA256:x'
"""
SAYS_PGP = """#!/bin/sh
touch {ran}
printf '\\n[GNUPG:] NEWSIG\\n[GNUPG:] GOODSIG 0123456789ABCDEF Ada\\n[GNUPG:] TRUST_ULTIMATE 0 pgp\\n'
"""


@pytest.mark.parametrize(
    ("setting", "kind", "says"),
    [
        ("gpg.ssh.program", "SSH SIGNATURE", SAYS_SSH),
        ("gpg.program", "PGP SIGNATURE", SAYS_PGP),
        ("gpg.openpgp.program", "PGP SIGNATURE", SAYS_PGP),
        ("gpg.x509.program", "SIGNED MESSAGE", SAYS_PGP),
    ],
)
def test_no_program_of_the_repository_verifies_a_signature(
    repository: Repository,
    project: Project,
    at_work: PromptReceipt,
    ada: Key,
    tmp_path: Path,
    setting: str,
    kind: str,
    says: str,
) -> None:
    allow(project, ada.allowed("ada@example.org"))
    program, ran = tmp_path / "program", tmp_path / "ran"
    program.write_text(says.format(ran=ran))
    program.chmod(0o755)
    commit(repository)
    head, _, message = repository.git("cat-file", "commit", "HEAD").partition("\n\n")
    signature = f"gpgsig -----BEGIN {kind}-----\n \n AAAA\n -----END {kind}-----"
    (repository.path / "forged").write_text(f"{head}\n{signature}\n\n{message}")
    repository.git("reset", "-q", "--hard", repository.git("hash-object", "-t", "commit", "-w", "forged").strip())
    repository.git("config", setting, str(program))
    said = author(repository)
    assert not ran.exists(), f"{setting} was run, and the line is {said}'s"
    assert said == "file"


@pytest.mark.parametrize(
    "told_to_git",
    [
        "shallow",
        "grafts",
        "replace",
    ],
)
def test_a_line_stays_that_of_its_own_commit_whatever_git_is_told_of_parents(
    repository: Repository, project: Project, told_to_git: str
) -> None:
    repository.save("# Notes\n")
    repository.commit()
    begun = repository.git("rev-parse", "HEAD").strip()
    repository.save("# Notes\n- a\n")
    repository.git("commit", "-qam", "Note it", "--author=Eve <eve@example.org>")
    repository.save("# Notes\n- a\n- b\n")
    repository.commit()
    latest, folder = repository.git("rev-parse", "HEAD").strip(), repository.path / ".git"
    if told_to_git == "shallow":  # as a clone with --depth=1 has it
        (folder / "shallow").write_text(f"{latest}\n")
    elif told_to_git == "grafts":
        (folder / "info" / "grafts").write_text(f"{latest} {begun}\n")
    else:
        repository.git("replace", "--graft", latest, begun)
    look = Look(project, None, timezone.now())
    found = authors_of(repository.file(), parse(repository.file().read_bytes()), look)
    assert found.lines.get(1, "file") == "file"
