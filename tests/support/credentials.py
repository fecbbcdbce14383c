"""Made-up credentials of many kinds, each in a sentence. Built at run time, so that the repository holds none."""

from __future__ import annotations

import base64
import random
import string
from pathlib import Path

from django.apps import apps
from django.conf import settings
from django.db import connection

ALNUM = string.ascii_letters + string.digits
UPPER = string.ascii_uppercase + string.digits


def sentences() -> dict[str, str]:
    """Map each value to a sentence that holds it; the same ones in every run."""
    fixed = random.Random(14)

    def made(length: int, alphabet: str = ALNUM) -> str:
        return "".join(fixed.choice(alphabet) for _ in range(length))

    def b64(length: int) -> str:
        return base64.b64encode(fixed.randbytes(length)).decode()

    tokens = {
        "gh" + "p_" + made(36): "the deploy job uses {}",
        "github" + "_pat_" + made(82): "cloning works with {}",
        "gl" + "pat-" + made(20): "the runner registers with {}",
        "xo"
        + "xb-"
        + made(12, string.digits)
        + "-"
        + made(12, string.digits)
        + "-"
        + made(24): "the bot posts with {}",
        "AK" + "IA" + made(16, UPPER): "backups go to the bucket with key {}",
        "sk" + "-ant-api03-" + made(93): "the agent's key is {}",
        "sk" + "-proj-" + made(48): "embeddings are paid by {}",
        "AI" + "za" + made(35): "maps are drawn with {}",
        "sk" + "_live_" + made(24): "billing uses {}",
        "np" + "m_" + made(36): "publishing needs {}",
        "py" + "pi-" + "AgEIcHlwaS5vcmc" + made(60): "the wheel is uploaded with {}",
        "SG" + "." + made(22) + "." + made(43): "mail leaves with {}",
        "do" + "p_v1_" + made(64, "0123456789abcdef"): "the droplet is resized with {}",
        "hv" + "s." + made(24): "vault was unsealed with {}",
        "ey" + "J" + made(30) + ".ey" + "J" + made(40) + "." + made(43): "the API answers to {}",
        "co" + "ps_" + made(43): "the hook calls claudeops with {}",
        "tskey" + "-auth-" + made(12) + "-" + made(24): "the node joins with {}",
        "gl" + "sa_" + made(32) + "_" + made(8, "0123456789abcdef"): "dashboards are read with {}",
        "Tr0ub4dor" + made(8): "login fails with password={}",
        "Qx9" + made(10): "mysql is reached by mysql -u root -p{}",
        "Hz4" + made(12): "the URL is postgres://ops:{}@db.example/app",
        "Wm8" + made(14): "it sends curl -u admin:{} http://nas.example/",
        "Bq2" + made(30): "the header is Authorization: Bearer {}",
        b64(32): "the tunnel has PrivateKey = {}",
        made(24, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"): "the authenticator is otpauth://totp/nas?secret={}",
    }
    return {value: said.format(value) for value, said in tokens.items()}


def forty() -> dict[str, str]:
    """The same with sixteen further kinds."""
    fixed = random.Random(18)
    hexadecimal = "0123456789abcdef"
    further = (
        *(("h" + "f_", 34, ALNUM), ("gs" + "k_", 52, ALNUM), ("xa" + "i-", 80, ALNUM), ("r" + "8_", 37, ALNUM)),
        *(("ppl" + "x-", 48, ALNUM), ("nva" + "pi-", 64, ALNUM), ("pc" + "sk_", 60, ALNUM), ("nb" + "p_", 36, ALNUM)),
        *(("dck" + "r_pat_", 27, ALNUM), ("ruby" + "gems_", 48, hexadecimal), ("sq" + "p_", 40, hexadecimal)),
        *(("shp" + "at_", 32, hexadecimal), ("pu" + "l-", 40, hexadecimal), ("ml" + "sn.", 64, hexadecimal)),
        *(("dp." + "pt.", 43, ALNUM), ("xkey" + "sib-", 81, hexadecimal)),
    )
    made = {beginning + "".join(fixed.choice(signs) for _ in range(length)) for beginning, length, signs in further}
    return sentences() | {value: f"the job signs in with {value}" for value in sorted(made)}


def stored_bytes() -> dict[str, bytes]:
    """Return what the database and the files of the data folder hold: on PostgreSQL the rows of each table as text."""
    name = Path(str(connection.settings_dict["NAME"]))
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            # Not read as a file: closing it would drop the locks that this process has on it.
            stored = {name.name: connection.connection.serialize()}
            stored[f"{name.name}-wal"] = name.with_name(f"{name.name}-wal").read_bytes()
        else:
            stored = {}
            for model in apps.get_models():
                cursor.execute(f'SELECT t::text FROM "{model._meta.db_table}" t')
                stored[model._meta.db_table] = "\n".join(row for (row,) in cursor.fetchall()).encode()
    paths = (path for path in Path(settings.CLAUDEOPS_DATA_DIR).rglob("*") if path.is_file() and "pg" not in path.parts)
    return stored | {str(path): path.read_bytes() for path in paths if not path.name.startswith(name.name)}
