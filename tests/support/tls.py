"""A self-signed certificate for a test server, made for the run, and a server that never ends its handshake."""

from __future__ import annotations

import datetime
import ipaddress
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

BEGINNING_OF_A_HANDSHAKE = b"\x16\x03\x03\x40\x00"
"""The head of a TLS record that announces 16 kB."""


def self_signed(folder: Path) -> Path:
    """A file with a self-signed certificate for 127.0.0.1 and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a model of the tests")])
    now = datetime.datetime.now(datetime.UTC)
    address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=2))
        .not_valid_after(now + datetime.timedelta(days=2))
        .add_extension(address, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    made = folder / "model.pem"
    made.write_bytes(
        certificate.public_bytes(serialization.Encoding.PEM)
        + key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return made


def context(certificate: Path) -> ssl.SSLContext:
    """The TLS context of a server with that certificate."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.load_cert_chain(certificate)
    return made


@contextmanager
def dripping() -> Iterator[tuple[str, threading.Event]]:
    """The https address of a server that sends its part of the handshake a byte at a time without end, and an event
    that is set when the client has gone."""
    left, closing = threading.Event(), threading.Event()

    def drip(taken: socket.socket) -> None:
        with taken:
            taken.settimeout(0.02)
            try:
                taken.sendall(BEGINNING_OF_A_HANDSHAKE)
                while not closing.is_set():
                    try:
                        taken.sendall(b"\x02")
                        if taken.recv(4096) == b"":
                            break
                    except TimeoutError:
                        continue
            except OSError:
                pass
            if not closing.is_set():
                left.set()

    def serve() -> None:
        while True:
            try:
                taken, _ = server.accept()
            except OSError:
                return  # closed
            threading.Thread(target=drip, args=[taken], daemon=True).start()

    server = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"https://127.0.0.1:{server.getsockname()[1]}", left
    finally:
        closing.set()
        server.shutdown(socket.SHUT_RDWR)
        server.close()
        thread.join(10)
