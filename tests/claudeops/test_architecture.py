"""The architecture of DESIGN section 2: directions of imports, places of modules, lengths of files.

Reads the files of the repository; runs none of them.
"""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest

from claudeops.env import BASE_DIR

PACKAGES = ("claudeops", "memories", "sessions_app")
SURFACES = {
    "admin",
    "management",
    "tasks",
    "schedules",
    "checks",
    "web",
    "views",
    "api",
    "templatetags",
    "urls",
    "apps",
    "migrations",
}

# What domain code may not import, and the one module that may.
KEPT_OUT = ("django_q", "django.http", "django.contrib.admin", "django.shortcuts", "ninja", "django_htmx")
ALLOWED = {
    "sessions_app/queue/tasks.py": {"django_q"},
    "memories/bearer.py": {"ninja", "django.http"},
}

TOP_LEVEL = {"manage.py", "claudeops", "memories", "sessions_app", "templates", "tests", "requirements.txt"}
BESIDE = {"README.md", "pyproject.toml", "docs", ".ci"}


def committed() -> list[Path]:
    """The files git knows, relative to the repository; what is deleted and not yet committed is left out."""
    if shutil.which("git") is None or not (BASE_DIR / ".git").exists():
        pytest.skip("needs git and a checkout: it reads the list of committed files")
    listed = subprocess.run(
        ["git", "-c", f"safe.directory={BASE_DIR}", "ls-files", "-z"],
        cwd=BASE_DIR,
        capture_output=True,
        text=True,
        check=True,
    )
    return [Path(name) for name in listed.stdout.split("\0") if name and (BASE_DIR / name).exists()]


def python_files() -> list[Path]:
    return [path.relative_to(BASE_DIR) for package in PACKAGES for path in sorted((BASE_DIR / package).rglob("*.py"))]


def imported(path: Path) -> Iterator[tuple[int, str]]:
    """(line, module) of every import in the file, wherever it stands; `from a import b` counts as a and as a.b."""
    for node in ast.walk(ast.parse((BASE_DIR / path).read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.lineno, node.module
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)


def within(module: str, package: str) -> bool:
    return module == package or module.startswith(package + ".")


def is_domain(path: Path) -> bool:
    return path.parts[0] != "claudeops" and path.parts[1].removesuffix(".py") not in SURFACES


@pytest.mark.processes
def test_the_import_contracts_hold():
    """import-linter reads pyproject.toml; every module has its layer there."""
    command = Path(sysconfig.get_path("scripts")) / "lint-imports"
    run = subprocess.run(
        [str(command), "--no-cache", "--no-logo"], cwd=BASE_DIR, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stdout + run.stderr


def test_no_domain_module_knows_the_queue_or_a_request():
    """import-linter cannot forbid a part of an external package, so what is inside Django is held here."""
    found = [
        f"{path}:{line} imports {module}"
        for path in python_files()
        if is_domain(path)
        for line, module in imported(path)
        for package in KEPT_OUT
        if within(module, package) and package not in ALLOWED.get(path.as_posix(), set())
    ]
    assert not found, "\n".join(found)


def test_the_rules_would_catch_a_domain_module_that_imports_the_queue(tmp_path, monkeypatch):
    (tmp_path / "memories").mkdir()
    (tmp_path / "memories" / "store.py").write_text("def f():\n    from django.http import HttpRequest\n")
    monkeypatch.setattr("tests.claudeops.test_architecture.BASE_DIR", tmp_path)
    with pytest.raises(AssertionError, match=r"memories/store\.py:2 imports django\.http"):
        test_no_domain_module_knows_the_queue_or_a_request()


def test_every_module_says_what_it_is_for():
    found = [
        str(path)
        for path in python_files()
        if "migrations" not in path.parts
        and (source := (BASE_DIR / path).read_text(encoding="utf-8")).strip()
        and ast.get_docstring(ast.parse(source)) is None
    ]
    assert not found


@pytest.mark.processes
def test_the_top_level_is_what_the_design_fixes():
    top = {path.parts[0] for path in committed()}
    strange = {name for name in top if name not in TOP_LEVEL | BESIDE and not name.startswith(".")}
    assert not strange
    assert top >= {"manage.py", "claudeops", "memories", "sessions_app", "tests", "requirements.txt", "pyproject.toml"}


@pytest.mark.processes
def test_nothing_committed_names_a_private_path_or_a_registry():
    """A checkout must work on any machine: no home folder of somebody's, no host that packages come from."""
    private = re.compile(
        rb"(?<![\w.])/(?:work|root|Users|home/(?!user\b|claudeops\b|agent\b)\w+)/[\w.-]"
        rb"|--(?:extra-)?index-url|--registry[ =]|\b(?:artifactory|nexus|devpi|verdaccio)\b",
        re.IGNORECASE,
    )
    found = []
    for path in committed():
        if path == Path(__file__).relative_to(BASE_DIR):
            continue
        for number, line in enumerate((BASE_DIR / path).read_bytes().splitlines(), 1):
            if hit := private.search(line):
                found.append(f"{path}:{number}: {hit.group().decode(errors='replace')}")
    assert not found, "\n".join(found)


def test_every_management_command_has_tests_of_its_own():
    """A command is covered when the tests call it by name, with call_command, by `commands` or as a process."""
    tests = "\n".join(path.read_text(encoding="utf-8") for path in sorted((BASE_DIR / "tests").rglob("*.py")))
    commands = [
        path.stem
        for package in PACKAGES
        for path in sorted((BASE_DIR / package / "management" / "commands").glob("*.py"))
        if not path.stem.startswith("_")
    ]
    untested = [
        name
        for name in commands
        if not re.search(
            rf"""(?:call_command\(\s*|manage\(\s*|manage\.py",\s*|run[,(]\s*)["']{re.escape(name)}["' ]""",
            tests,
        )
    ]
    assert not untested


def test_every_module_of_the_project_is_in_the_import_contract():
    """import-linter's `exhaustive` needs a container, which the top layer is not."""
    contract = (BASE_DIR / "pyproject.toml").read_text(encoding="utf-8")
    folder = BASE_DIR / "claudeops"
    modules = {path.stem for path in folder.glob("*.py")} | {path.parent.name for path in folder.glob("*/__init__.py")}
    missing = {name for name in modules - {"__init__"} if not re.search(rf"claudeops\.{name}\b", contract)}
    assert not missing
