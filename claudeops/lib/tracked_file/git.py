"""Run the git program on a repository: read a file and its history, commit by plumbing.

Git gets an environment of its own: no configuration of a user or the system, no hooks, no signing, no prompt, no
network, and a time limit for each call. Nothing here touches a person's working tree; a commit moves one ref, which is
the one atomic step. No name begins with `-`, and no shell is involved.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from secrets import token_hex

from claudeops.lib.domain_error import DomainError
from claudeops.lib.files import replace_file
from claudeops.lib.tracked_file.document import LARGEST, lines_of

SECONDS = 30.0
"""A call of git takes no longer."""
MOST_COMMITS = 1_000
"""Commits of one file that are read at once, the latest."""
NAME = "claudeops"
EMAIL = "claudeops@localhost"
IN_PROGRESS: Mapping[str, str] = {
    "rebase-merge": "a rebase",
    "rebase-apply": "a rebase",
    "MERGE_HEAD": "a merge",
    "CHERRY_PICK_HEAD": "a cherry-pick",
    "REVERT_HEAD": "a revert",
    "BISECT_LOG": "a bisect",
}
CONFIG = (
    *("core.hooksPath=/dev/null", "core.fsmonitor=false", "core.untrackedCache=false", "core.attributesFile=/dev/null"),
    *("commit.gpgSign=false", "log.showSignature=false", "gc.auto=0", "maintenance.auto=false", "safe.directory=*"),
    *("i18n.commitEncoding=UTF-8", "i18n.logOutputEncoding=UTF-8", "core.quotePath=false", "blame.ignoreRevsFile="),
    *("core.splitIndex=false", "core.logAllRefUpdates=true", "core.filesRefLockTimeout=1000"),
)
SHA = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
SCHEME = re.compile(r"\A(?:[a-z][a-z0-9+.-]*://)?(?:[^/@]*@)?", re.IGNORECASE)
HUNK = re.compile(r"([0-9a-f]{40,64}) \d+ (\d+)(?: \d+)?\Z")


class GitError(DomainError):
    """Git, or a repository, cannot be used as it is; the text says why and `fix` what to do."""

    code = "git"


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository on this host: its working tree, its git folder, and the folder of its refs."""

    root: Path
    git_dir: Path
    common: Path


@dataclass(frozen=True, slots=True)
class Head:
    """What a repository has checked out. `branch` is "" when HEAD is detached, `commit` "" on an unborn branch."""

    branch: str
    commit: str


@dataclass(frozen=True, slots=True)
class Blob:
    """A file in a commit or in the index: its mode ("100644"), its object and its bytes."""

    mode: str
    sha: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit of a file. `at` is its committer's time (UTC); lines added and removed in the file."""

    sha: str
    at: datetime
    author: str
    author_email: str
    signer: str
    committer: str
    committer_email: str
    subject: str
    body: str
    added: int
    removed: int
    is_root: bool

    @property
    def is_ours(self) -> bool:
        return self.committer_email == EMAIL

    @property
    def trailers(self) -> dict[str, list[str]]:
        """The `Name: value` lines of its last paragraph, by name."""
        by_name: dict[str, list[str]] = {}
        for line in self.body.strip().rpartition("\n\n")[2].splitlines():
            name, colon, value = line.partition(": ")
            if colon and re.fullmatch(r"[A-Za-z-]+", name):
                by_name.setdefault(name, []).append(value.strip())
        return by_name


@lru_cache(maxsize=1)
def _program(path: str) -> str:
    executable = shutil.which("git", path=path)
    return str(Path(executable).resolve()) if executable else ""


def program() -> str:
    """Return the path of the git program. Raises GitError."""
    path = _program(os.environ.get("PATH", os.defpath))
    if not path:
        raise GitError("The program git was not found on this host.", "Install git, such as: apt install git")
    return path


def version() -> str:
    """Return the version of git, such as "2.39.5". Raises GitError."""
    out = _run([program(), "--version"], {}, None, None).decode("utf-8", "replace")
    return out.split()[2] if len(out.split()) > 2 else out.strip()


def find_repository(folder: Path) -> Repository | None:
    """Return the repository that `folder` is in, None without one; no git is run. Raises GitError."""
    try:
        folder = folder.resolve()
        for root in (folder, *folder.parents):
            here = root / ".git"
            if here.is_dir() and (here / "HEAD").exists():
                return _repository(root, here)
            if here.is_file():  # a worktree or a submodule
                named = _text(here)
                if named.startswith("gitdir: "):
                    return _repository(root, (root / named.removeprefix("gitdir: ")).resolve())
    except (OSError, RuntimeError, ValueError) as error:
        raise GitError(f"The repository of {folder} cannot be read: {_words(error)}.") from None
    return None


def _repository(root: Path, git_dir: Path) -> Repository:
    named = git_dir / "commondir"
    common = (git_dir / _text(named)).resolve() if named.is_file() else git_dir
    return Repository(root, git_dir, common)


def _text(path: Path) -> str:
    """Return the text of a small file of git's, which anybody may have written. Raises OSError."""
    with path.open("rb") as file:
        return file.read(LARGEST).decode("utf-8", "replace").strip()


def init(folder: Path, branch: str = "main") -> Repository:
    """Make a repository in `folder`, which is made too; one that is there stays. Raises GitError."""
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise GitError(f"{folder} cannot be made: {_words(error)}.") from None
    arguments = ["-c", "core.hooksPath=/dev/null", "init", "--quiet", "--template=", f"--initial-branch={branch}"]
    _run([program(), *arguments, "--", str(folder)], {}, None, folder)
    repository = find_repository(folder)
    if repository is None or repository.root != folder.resolve():
        raise GitError(f"No repository could be made in {folder}.")
    return repository


def head(repository: Repository) -> Head:
    """Return what is checked out, read from the repository's files; git resolves what they do not say."""
    branch = _head_file(repository).removeprefix("ref: ")
    if not branch.startswith("refs/heads/"):
        return Head("", branch if SHA.fullmatch(branch) else _rev(repository, "HEAD"))
    return Head(branch.removeprefix("refs/heads/"), _rev(repository, branch))


def branch_exists(repository: Repository, branch: str) -> bool:
    return bool(_rev(repository, f"refs/heads/{branch}"))


def tip(repository: Repository, branch: str) -> str:
    """Return the commit of a branch; "" where there is none."""
    return _rev(repository, f"refs/heads/{branch}")


def parent(repository: Repository, commit: str) -> str:
    """Return the first parent of a commit; "" for a first one."""
    return _rev(repository, f"{_sha(commit)}^")


def in_progress(repository: Repository) -> str:
    """Return what a person is in the middle of, such as "a rebase"; "" for nothing."""
    return next((words for name, words in IN_PROGRESS.items() if (repository.git_dir / name).exists()), "")


def stamp(repository: Repository) -> tuple[str, ...]:
    """Return what changes when HEAD, its branch or an operation in progress does; a few looks at files, no git."""
    try:
        head_text = _head_file(repository)
    except GitError:
        return ("",)
    ref = head_text.removeprefix("ref: ")
    try:
        value = (repository.common / ref).read_text(encoding="utf-8").strip() if ref != head_text else ""
    except OSError:
        value = ""
    packed = "" if value else _stat(repository.common / "packed-refs")
    reftable = _stat(repository.common / "reftable" / "tables.list")
    return head_text, value, packed, reftable, in_progress(repository)


def _stat(path: Path) -> str:
    try:
        status = path.stat()
    except OSError:
        return ""
    return f"{status.st_mtime_ns} {status.st_size} {status.st_ino}"


def _head_file(repository: Repository) -> str:
    try:
        return (repository.git_dir / "HEAD").read_text(encoding="utf-8", errors="replace").strip()
    except OSError as error:
        raise GitError(f"The repository {repository.root} cannot be read: {_words(error)}.") from None


def _rev(repository: Repository, name: str) -> str:
    code, out, _ = _try(repository, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    return out.decode().strip() if code == 0 else ""


def blob_at(repository: Repository, commit: str, path: str) -> Blob | None:
    """Return the file in a commit, None where it has none. Raises GitError, also for a file that is too large."""
    if not commit:
        return None
    out = git(repository, "ls-tree", "-z", _sha(commit), "--", f":(literal,top){path}")
    return _blob(repository, out, "tree")


def blob_in_index(repository: Repository, path: str) -> Blob | None:
    """Return the file as it is staged, None when it is not in the index. Raises GitError for one in conflict."""
    out = git(repository, "ls-files", "--stage", "-z", "--", f":(literal,top){path}")
    if out.count(b"\0") > 1:
        raise GitError(f"{path} is in conflict in the index.", "Solve the conflict and commit it.")
    return _blob(repository, out, "index")


def _blob(repository: Repository, entry: bytes, of: str) -> Blob | None:
    if not entry:
        return None
    words = entry.partition(b"\t")[0].decode().split()
    mode, sha = (words[0], words[2]) if of == "tree" else (words[0], words[1])
    if mode not in ("100644", "100755"):
        name = entry.partition(b"\t")[2].decode("utf-8", "replace").strip("\0")
        raise GitError(f"{name} is no plain file in the repository.", "Commit a plain file in its place.")
    return Blob(mode, sha, read_blob(repository, sha))


def read_blob(repository: Repository, sha: str) -> bytes:
    """Return the bytes of an object. Raises GitError."""
    size = int(git(repository, "cat-file", "-s", _sha(sha)))
    if size > LARGEST:
        raise GitError(f"The file has {size:,} bytes; at most {LARGEST:,} are read.", "Make it shorter.")
    return git(repository, "cat-file", "blob", _sha(sha))


def write_blob(repository: Repository, data: bytes) -> str:
    """Store bytes as they are, through no filter; return the object's name. Raises GitError."""
    return git(repository, "hash-object", "-w", "--stdin", "--no-filters", data=data).decode().strip()


def make_commit(
    repository: Repository,
    parent: str,
    path: str,
    blob: tuple[str, str] | None,
    message: str,
    *,
    author: tuple[str, str] = (NAME, EMAIL),
    at: datetime,
) -> str:
    """Make the commit that gives `path` the blob (mode, object), or removes it (None); no ref, no index is touched.

    `author` is (name, address); the committer is claudeops. Raises GitError.
    """
    with tempfile.TemporaryDirectory(prefix="claudeops-index-") as folder:
        index = {"GIT_INDEX_FILE": str(Path(folder) / "index")}
        if parent:
            git(repository, "read-tree", _sha(parent), more=index)
        _put(repository, path, blob, index)
        tree = git(repository, "write-tree", "--missing-ok", more=index).decode().strip()
    name, email = author
    when = f"{int(at.timestamp())} +0000"
    identity = {
        "GIT_AUTHOR_NAME": _plain(name),
        "GIT_AUTHOR_EMAIL": _plain(email),
        "GIT_AUTHOR_DATE": when,
        "GIT_COMMITTER_NAME": NAME,
        "GIT_COMMITTER_EMAIL": EMAIL,
        "GIT_COMMITTER_DATE": when,
    }
    parents = ["-p", _sha(parent)] if parent else []
    out = git(
        repository, "commit-tree", "--no-gpg-sign", tree, *parents, "-F", "-", data=message.encode(), more=identity
    )
    return out.decode().strip()


def commit_file(repository: Repository, path: str, message: str, *, at: datetime) -> str:
    """Commit a file of the working tree as it is, of any size, and nothing else; "" where it is committed already.

    Raises GitError, also for a branch that was moved meanwhile.
    """
    now = head(repository)
    if not now.branch:
        raise GitError(f"{repository.root} has a detached HEAD.", "Check out a branch.")
    blob = git(repository, "hash-object", "-w", "--no-filters", "--", str(repository.root / path)).decode().strip()
    tree = git(repository, "ls-tree", "-z", now.commit, "--", f":(literal,top){path}").decode() if now.commit else ""
    if blob in tree.split():
        return ""
    commit = make_commit(repository, now.commit, path, ("100644", blob), message, at=at)
    move_branch(repository, now.branch, commit, now.commit, f"claudeops: {message.partition(chr(10))[0]}")
    stage(repository, path, ("100644", blob))
    return commit


def move_branch(repository: Repository, branch: str, commit: str, before: str, why: str) -> None:
    """Let a branch point to `commit` if it still points to `before` ("": it did not exist). Raises GitError."""
    identity = {"GIT_COMMITTER_NAME": NAME, "GIT_COMMITTER_EMAIL": EMAIL}
    arguments = ("-m", why, "--create-reflog", f"refs/heads/{branch}", _sha(commit), before or "0" * len(commit))
    code, _, message = _try(repository, "update-ref", *arguments, more=identity)
    if code == 0:
        return
    if ".lock" in message:
        raise GitError(
            f"The branch {branch} is locked by another git process.",
            f"It is tried again. If none runs, remove {repository.common / 'refs/heads' / branch}.lock",
        )
    raise GitError(f"The branch {branch} was moved meanwhile: {_first(message)}", "It is tried again.")


def stage(repository: Repository, path: str, blob: tuple[str, str] | None) -> None:
    """Give `path` the blob (mode, object) in the person's index, or remove it there; nothing else of it changes."""
    code, message = _put_index(repository, path, blob)
    if code:
        raise GitError(
            f"The index of {repository.root} cannot be written: {_first(message)}",
            f"It is tried again. If no git process runs, remove {repository.git_dir / 'index.lock'}",
        )


def _put_index(repository: Repository, path: str, blob: tuple[str, str] | None) -> tuple[int, str]:
    code, _, message = _try(repository, *_update_index(path, blob))
    return code, message


def _put(repository: Repository, path: str, blob: tuple[str, str] | None, more: Mapping[str, str]) -> None:
    git(repository, *_update_index(path, blob), more=more)


def _update_index(path: str, blob: tuple[str, str] | None) -> tuple[str, ...]:
    if blob is None:
        return ("update-index", "--force-remove", "--", path)
    mode, sha = blob
    return ("update-index", "--add", "--cacheinfo", f"{mode},{_sha(sha)},{path}")


def is_ancestor(repository: Repository, commit: str, of: str) -> bool:
    """Say whether `commit` is `of` or one before it; False for one that is not in the repository."""
    code, _, _ = _try(repository, "merge-base", "--is-ancestor", _sha(commit), _sha(of))
    return code == 0


def log(
    repository: Repository, commit: str, path: str, *, since: str = "", most: int = MOST_COMMITS, signers: str = ""
) -> list[Commit]:
    """Return the commits up to `commit` that changed the file, the latest first; those behind `since` if given.

    `signers` is the path of the allowed signers by which signatures are verified; "": none are.
    """
    reach = f"{_sha(since)}..{_sha(commit)}" if since else _sha(commit)
    return _log(repository, signers, f"--max-count={most}", "--numstat", reach, "--", f":(literal,top){path}")


def commits(repository: Repository, shas: Iterable[str], *, signers: str = "") -> list[Commit]:
    """Return these commits, without their lines."""
    wanted = sorted(map(_sha, shas))
    return _log(repository, signers, "--no-walk=unsorted", *wanted) if wanted else []


def _log(repository: Repository, signers: str, *arguments: str) -> list[Commit]:
    signed, mark = "%G?%x00%GS" if signers else "%x00", token_hex(8)  # no message holds the mark
    form = f"{mark}%H%x00%ct%x00%an%x00%ae%x00{signed}%x00%cn%x00%ce%x00%P%x00%s%x00%b%x00"
    out = git(
        repository,
        *("log", "--no-renames", "--no-ext-diff", "--no-textconv", "--no-color", "--no-show-signature", "--no-notes"),
        *("--no-mailmap", "--no-decorate", "--diff-merges=first-parent", f"--format={form}", *arguments),
        more=_signatures(signers) if signers else None,
    ).decode("utf-8", "replace")
    return [_commit(part) for part in out.split(mark)[1:]]


def _commit(text: str) -> Commit:
    sha, seconds, author, email, status, signer, name, committer, parents, subject, body, numbers = text.split("\0", 11)
    counts = numbers.split()
    added, removed = (int(one) if one.isdigit() else 0 for one in (counts[:2] if len(counts) > 1 else ("0", "0")))
    at = datetime.fromtimestamp(int(seconds), tz=UTC)
    signer = signer if status == "G" else ""
    return Commit(sha, at, author, email, signer, name, committer, subject, body, added, removed, not parents)


def _signatures(signers: str) -> dict[str, str]:
    """Return git's configuration to verify signatures of ssh by a file of allowed signers, and by no other program.

    A repository's own configuration names programs, too: an agent may have written it. That of the environment comes
    before it.
    """
    ssh = shutil.which("ssh-keygen", path="/usr/local/bin:/usr/bin:/bin") or "false"
    others = dict.fromkeys(("gpg.program", "gpg.openpgp.program", "gpg.x509.program"), "false")
    settings = {"gpg.format": "ssh", "gpg.ssh.program": ssh, "gpg.ssh.allowedSignersFile": signers, **others}
    values = {"GIT_CONFIG_COUNT": str(len(settings))}
    for at, (name, value) in enumerate(settings.items()):
        values |= {f"GIT_CONFIG_KEY_{at}": name, f"GIT_CONFIG_VALUE_{at}": value}
    return values


def shallow(repository: Repository) -> set[str]:
    """Return the commits before which the history was cut off: git takes all older lines for theirs."""
    path = repository.common / "shallow"
    return set(_text(path).split()) if path.is_file() else set()


def last_change(repository: Repository, commit: str, path: str) -> str:
    """Return the last commit up to `commit` that changed the file, or removed it; "" when none ever did."""
    if not commit:
        return ""
    return git(repository, "rev-list", "-1", _sha(commit), "--", f":(literal,top){path}").decode().strip()


def is_ignored(repository: Repository, path: str) -> bool:
    return _try(repository, "check-ignore", "--quiet", "--", path)[0] == 0


def blame(repository: Repository, commit: str, path: str, data: bytes) -> list[str]:
    """Return for each line of the file in `commit`, which has the bytes `data`, the commit that it is from.

    The lines are those of a document: git knows no carriage return alone as a line's end. Raises GitError.
    """
    out = git(repository, "blame", "--porcelain", "--no-textconv", _sha(commit), "--", path).decode("utf-8", "replace")
    shas = [match[1] for line in out.split("\n") if line[:1] != "\t" and (match := HUNK.match(line))]
    text = data.decode("utf-8-sig", "replace")
    rows = [row for row in re.split(r"(?<=\n)", text) if row]
    if len(rows) != len(shas):
        raise GitError(f"git names {len(shas):,} of {len(rows):,} lines of {path}.", "It is tried again.")
    return [sha for row, sha in zip(rows, shas, strict=True) for _ in lines_of(row)]


def is_filtered(repository: Repository, path: str) -> bool:
    """Say whether the repository passes the file through a program (LFS, an encryption), which is not run here."""
    out = git(repository, "check-attr", "-z", "filter", "--", path).split(b"\0")
    return len(out) > 2 and out[2] not in (b"unspecified", b"unset", b"")


def checkouts(repository: Repository) -> list[Path]:
    """Return the folders of a repository's working trees, by its own list, whatever a folder says. Raises GitError.

    One that was removed by hand is in it until git prunes it, unless another folder stands in its place.
    """
    roots = [repository.common.parent] if repository.common.name == ".git" else []
    try:
        for entry in sorted(repository.common.glob("worktrees/*/gitdir")):
            link = entry.parent / (_text(entry) if entry.is_file() else "")
            root = link.parent.resolve()
            here = find_repository(root) if link.is_file() else None
            if not root.exists() or (here is not None and here.git_dir == entry.parent.resolve()):
                roots.append(root)
    except (OSError, RuntimeError, ValueError) as error:
        raise GitError(f"The worktrees of {repository.root} cannot be read: {_words(error)}.") from None
    return roots


def remotes(repository: Repository) -> set[str]:
    """Return the addresses of a repository's remotes, each in one form: host/path, or the path on this host.

    No git is run, since a hook waits for those of all projects. Raises OSError.
    """
    config, addresses, is_remote = repository.common / "config", set(), False
    for line in _text(config).splitlines() if config.is_file() else ():
        name, _, value = line.partition("=")
        if name.lstrip().startswith("["):
            is_remote = name.lstrip().lower().startswith("[remote ")
        elif is_remote and name.strip().lower() == "url":
            addresses.add(_address(value.strip().strip('"')))
    return addresses


def _address(url: str) -> str:
    """Return git@host:path, ssh://git@host:22/path and https://host/path.git as host/path."""
    plain = SCHEME.sub("", url.strip()).rstrip("/")
    if plain.startswith("/"):
        return plain.removesuffix("/.git")
    host, _, path = re.sub(r":(?:\d+/)?", "/", plain.removesuffix(".git"), count=1).partition("/")
    return f"{host.lower()}/{path.lstrip('/')}"


def shares_history(repository: Repository, other: Repository) -> bool:
    """Say whether `other` has a commit that is the tip of a branch of `repository`, here or at a remote."""
    form = ("--format=%(objectname)", f"--count={MOST_COMMITS}")
    tips = git(repository, "for-each-ref", *form, "refs/heads", "refs/remotes")
    return b" commit " in git(other, "cat-file", "--batch-check", data=tips)


def leave_out(repository: Repository, path: str) -> bool:
    """Have git ignore a file in this clone and its worktrees; False where it is tracked, which no rule changes.

    The rule goes into info/exclude, which is not committed. Raises GitError.
    """
    if git(repository, "ls-files", "-z", "--", f":(literal,top){path}"):
        return False
    if not is_ignored(repository, path):
        file = repository.common / "info" / "exclude"
        rule = "/" + re.sub(r"([\\*?\[])", r"\\\1", path)
        try:
            file.parent.mkdir(exist_ok=True)
            before = file.read_bytes().rstrip(b"\n") + b"\n" if file.exists() else b""
            replace_file(file, before + f"{rule}\n".encode())
        except OSError as error:
            raise GitError(f"{file} cannot be written: {_words(error)}.") from None
        if not is_ignored(repository, path):
            raise GitError(f"A rule of .gitignore takes {path} in again.")
    return True


def git(
    repository: Repository, verb: str, *arguments: str, data: bytes | None = None, more: Mapping[str, str] | None = None
) -> bytes:
    """Run git and return what it prints. Raises GitError with what it says."""
    code, out, message = _try(repository, verb, *arguments, data=data, more=more)
    if code:
        raise GitError(f"git {verb} failed in {repository.root}: {_first(message)}")
    return out


def _try(
    repository: Repository, verb: str, *arguments: str, data: bytes | None = None, more: Mapping[str, str] | None = None
) -> tuple[int, bytes, str]:
    settings = [part for one in CONFIG for part in ("-c", one)]
    environment = {
        "GIT_DIR": str(repository.git_dir),
        "GIT_WORK_TREE": str(repository.root),
        **(more or {}),
    }
    command = [program(), "--no-pager", *settings, verb, *arguments]
    return _called(command, environment, data, repository.root)


def _run(command: Sequence[str], more: Mapping[str, str], data: bytes | None, folder: Path | None) -> bytes:
    code, out, message = _called(command, more, data, folder)
    if code:
        raise GitError(f"git failed: {_first(message)}")
    return out


def _called(
    command: Sequence[str], more: Mapping[str, str], data: bytes | None, folder: Path | None
) -> tuple[int, bytes, str]:
    environment = {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": os.devnull,
        "LC_ALL": "C",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_SYSTEM": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_ALLOW_PROTOCOL": "none",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_GRAFT_FILE": os.devnull,
        "GIT_EDITOR": "false",
        **more,
    }
    try:
        run = subprocess.run(
            list(command),
            env=environment,
            input=b"" if data is None else data,
            capture_output=True,
            cwd=folder,
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise GitError(f"git did not answer within {SECONDS:.0f} seconds.", "It is tried again.") from None
    except OSError as error:
        raise GitError(f"git could not be started: {_words(error)}.") from None
    return run.returncode, run.stdout, run.stderr.decode("utf-8", "replace")


def _sha(name: str) -> str:
    if not SHA.fullmatch(name):
        raise GitError(f"{name[:80]!r} is no commit.")
    return name


def _plain(name: str) -> str:
    """Return a name that git accepts: it refuses line breaks and brackets, and one without any letter."""
    plain = re.sub(r"[<>\x00-\x1f\x7f]", "", name).strip(" .,:;\"'\\")
    return plain[:200] or NAME


def _first(message: str) -> str:
    lines = [line for line in message.splitlines() if line.strip()]
    return re.sub(r"^(fatal|error): ", "", lines[0])[:300] if lines else "it said nothing."


def _words(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
