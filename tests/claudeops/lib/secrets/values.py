"""Random values of vendors' alphabets and lengths, made at run time: no credential stands in the repository."""

from __future__ import annotations

import base64
import json
import random
import string

DIGITS = string.digits
HEX = "0123456789abcdef"
LOWER = string.ascii_lowercase + DIGITS
UPPER = string.ascii_uppercase + DIGITS
BASE32 = string.ascii_uppercase + "234567"
ALNUM = string.ascii_letters + DIGITS
URL = ALNUM + "_-"
BASE64 = ALNUM + "+/"


class Maker:
    """Makes values from a seed, so that a failing case comes again."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def of(self, alphabet: str, length: int) -> str:
        """A value that begins and ends with a letter or digit and holds both."""
        while True:
            value = "".join(self.random.choices(alphabet, k=length))
            mixed = any(c.isdigit() for c in value) and (alphabet == DIGITS or any(c.isalpha() for c in value))
            if value[0].isalnum() and value[-1].isalnum() and mixed:
                return value

    def uuid(self) -> str:
        return "-".join(self.of(HEX, length) for length in (8, 4, 4, 4, 12))

    def base64(self, length: int) -> str:
        """The base64 of so many random bytes."""
        return base64.b64encode(self.random.randbytes(length)).decode()

    def jwt(self) -> str:
        parts = [{"alg": "HS256", "typ": "JWT"}, {"iss": self.of(HEX, 32), "iat": 1700000000, "exp": 2015360000}]
        encoded = [base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts]
        return ".".join([*encoded, self.of(URL, 43)])

    def pem(self, kind: str = "RSA PRIVATE KEY", lines: int = 12, end: str = "\n") -> str:
        body = ["MII" + self.of(BASE64, 61), *(self.of(BASE64, 64) for _ in range(lines)), self.of(BASE64, 22) + "=="]
        return end.join([f"-----BEGIN {kind}-----", *body, f"-----END {kind}-----"])

    def word(self) -> str:
        """A password as people choose them."""
        stem = self.random.choice(["tomate", "Winter", "katze", "Falcon", "orange", "Lagoon", "boot", "Mira", "kettle"])
        return stem + self.random.choice("!$#_") + self.of(DIGITS, 3)
