"""Keys of ssh that sign commits, made by ssh-keygen; without it the test is skipped."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest


@dataclass(frozen=True)
class Key:
    """A key without a passphrase. `signing` are the options of git with which it signs a commit."""

    path: Path

    @property
    def signing(self) -> tuple[str, ...]:
        return ("-c", "gpg.format=ssh", "-c", f"user.signingkey={self.path}", "-c", "commit.gpgSign=true")

    def allowed(self, principal: str, options: str = "") -> str:
        """Return its line of an allowed_signers file."""
        kind, key, *_ = self.path.with_suffix(".pub").read_text().split()
        return f"{principal} {options} {kind} {key}\n".replace("  ", " ")


def make_key(folder: Path, name: str) -> Key:
    program = shutil.which("ssh-keygen")
    if program is None:
        pytest.skip("needs ssh-keygen, such as: apt install openssh-client")
    path = folder / name
    subprocess.run([program, "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", str(path)], check=True)
    return Key(path)
