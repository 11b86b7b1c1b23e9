#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How a fleet's hub proves who it is to a real nats-server, and which brokers it does not trust.

Each way that docs/fleet.md names works: TLS, mTLS, user and password, NKey, JWT; a wrong authority,
a certificate for another name, a wrong password, a stranger's key, an expired JWT do not, and a
line says why. All over loopback.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import json
import os
import pathlib
import socket
import subprocess
import sys
import time
import unittest
from collections.abc import Callable

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "live"))

import live  # noqa: E402

SERVER = live.ROOT / ".venv" / "bin" / "nats-server"
LIMIT_S = 120
OPERATOR, ACCOUNT, USER = 14 << 3, 0, 20 << 3  # first letters of NKeys: O, A, U
SEED = 18 << 3


def base32(data: bytes) -> str:
    checksum = binascii.crc_hqx(data, 0).to_bytes(2, "little")
    return base64.b32encode(data + checksum).decode().rstrip("=")


def base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


class Key:
    """An Ed25519 key as NATS writes it."""

    def __init__(self, folder: pathlib.Path, name: str, kind: int) -> None:
        self.folder, self.pem = folder, folder / f"{name}.pem"
        subprocess.run(
            ["openssl", "genpkey", "-algorithm", "ed25519", "-out", self.pem], check=True
        )
        private = self.der("-outform", "DER")[-32:]
        self.public = base32(bytes([kind]) + self.der("-pubout", "-outform", "DER")[-32:])
        self.seed = base32(bytes([SEED | kind >> 5, (kind & 31) << 3]) + private)

    def der(self, *words: str) -> bytes:
        command = ["openssl", "pkey", "-in", str(self.pem), *words]
        return subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout

    def sign(self, subject: str, name: str, nats: dict, **more: int) -> str:
        """A JWT of NATS, version 2."""
        head = {"typ": "JWT", "alg": "ed25519-nkey"}
        claims = {
            "jti": name, "iat": int(time.time()) - 60, "iss": self.public, "name": name,
            "sub": subject, "nats": {**nats, "version": 2}, **more,
        }  # fmt: skip
        text = ".".join(base64url(json.dumps(part).encode()) for part in (head, claims))
        path = self.folder / f"{name}.claims"
        path.write_text(text)
        command = ["openssl", "pkeyutl", "-sign", "-rawin", "-inkey", self.pem, "-in", path]
        signature = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
        return f"{text}.{base64url(signature)}"


class Authority:
    """A CA, and the certificates it signs."""

    def __init__(self, folder: pathlib.Path, name: str) -> None:
        self.folder, self.name = folder, name
        self.certificate, self.key = folder / f"{name}.crt", folder / f"{name}.key"
        self.request(["-x509", "-days", "2", "-subj", f"/CN={name}"], self.key, self.certificate)

    def request(self, words: list[str], key: pathlib.Path, out: pathlib.Path) -> None:
        command = ["openssl", "req", "-new", "-nodes", "-newkey", "ec", "-pkeyopt"]
        command += ["ec_paramgen_curve:prime256v1", "-keyout", str(key), "-out", str(out)]
        subprocess.run([*command, *words], check=True, capture_output=True)

    def sign(self, name: str, address: str) -> tuple[pathlib.Path, pathlib.Path]:
        certificate, key = self.folder / f"{name}.crt", self.folder / f"{name}.key"
        request, names = self.folder / f"{name}.csr", self.folder / f"{name}.ext"
        names.write_text(f"subjectAltName=IP:{address}\n")
        self.request(["-subj", f"/CN={name}"], key, request)
        command = ["openssl", "x509", "-req", "-days", "2", "-in", request, "-CA"]
        command += [self.certificate, "-CAkey", self.key, "-CAcreateserial", "-extfile", names]
        subprocess.run([*command, "-out", certificate], check=True, capture_output=True)
        return certificate, key


class Credentials(live.LiveTest):
    def setUp(self) -> None:
        super().setUp()
        if not os.access(SERVER, os.X_OK):
            self.skipTest("nats-server is not installed")
        for name in [name for name in self.env if name.startswith("PERFTRACKER_")]:
            self.env.pop(name)
        self.ca = Authority(self.folder, "ca")
        self.other = Authority(self.folder, "other")
        self.server = self.ca.sign("server", "127.0.0.1")
        self.hubs = 0

    # --- the processes ---

    def begin(self, words: list[str], log: str) -> subprocess.Popen[bytes]:
        with open(self.folder / log, "wb") as file:
            process = subprocess.Popen(words, stdout=file, stderr=file, env=self.env)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def broker(self, name: str, text: str, tls: str | None = None) -> int:
        """A nats-server with this configuration. Returns its port."""
        with contextlib.closing(socket.socket()) as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        path = self.folder / f"{name}.conf"
        certificate, key = self.server
        tls = tls or f'tls {{ cert_file: "{certificate}", key_file: "{key}" }}'
        path.write_text(f'listen: "127.0.0.1:{port}"\n{tls}\n{text}\n')
        self.begin([str(SERVER), "-c", str(path)], f"{name}.log")
        return port

    def hub(self, url: str, words: tuple[str, ...] = (), **bus: object) -> Callable[[], str]:
        """A hub with these keys of bus. Returns what reads its log."""
        self.hubs += 1
        place = self.folder / f"hub{self.hubs}"
        place.mkdir()
        lines = "".join(f"  {key}: {value}\n" for key, value in bus.items())
        site = place / "site.yaml"
        site.write_text(
            f"cluster: test\nhost: h{self.hubs}\nbus:\n  url: {url}\n{lines}"
            f"hub: {{folder: {place}/jobs, run: {place}/run, store: none}}\n"
        )
        log = f"hub{self.hubs}.log"
        self.begin([live.PROGRAM, "hub", "--config", str(site), *words], log)
        return lambda: (self.folder / log).read_text(errors="replace")

    def await_text(self, log: Callable[[], str], text: str, never: str) -> None:
        deadline = time.monotonic() + LIMIT_S
        while time.monotonic() < deadline and text.lower() not in log().lower():
            self.assertNotIn(never, log())
            time.sleep(0.1)
        self.assertIn(text.lower(), log().lower())

    def assert_cells(self, cells: list[tuple[Callable[[], str], str | None]]) -> None:
        """Each hub connects, or says this text and does not."""
        for log, why in cells:
            if why is None:
                self.await_text(log, "event=bus-connected", "event=bus-not-reached")
            else:
                self.await_text(log, "event=bus-not-reached", "event=bus-connected")
                self.assertIn(why.lower(), log().lower())
        for log, why in cells:
            if why is not None:
                self.assertNotIn("event=bus-connected", log())

    def secret(self, name: str, text: str) -> pathlib.Path:
        path = self.folder / name
        path.write_text(text + "\n")
        path.chmod(0o600)
        return path

    # --- the matrix ---

    def test_a_password_over_tls(self) -> None:
        port = self.broker(
            "password", 'authorization { users: [ { user: "hub", password: "right" } ] }'
        )
        stranger = self.ca.sign("elsewhere", "127.0.0.2")
        named = self.broker(
            "named", 'authorization { users: [ { user: "hub", password: "right" } ] }',
            f'tls {{ cert_file: "{stranger[0]}", key_file: "{stranger[1]}" }}',
        )  # fmt: skip
        url, ca = f"tls://127.0.0.1:{port}", self.ca.certificate
        right = {"user": "hub", "password_file": self.secret("right", "right")}
        self.assert_cells([
            (self.hub(url, ca=ca, **right), None),
            (self.hub(url, ca=ca, user="hub", password_file=self.secret("bad", "wrong")),
             "authorization"),
            (self.hub(url, ca=ca), "authorization"),
            (self.hub(url, ca=self.other.certificate, **right), "certificate"),
            (self.hub(url, **right), "certificate"),
            (self.hub(f"tls://127.0.0.1:{named}", ca=ca, **right), "mismatch"),
            (self.hub(f"nats://127.0.0.1:{port}", **right), "wants TLS"),
        ])  # fmt: skip

    def test_a_certificate_of_the_client(self) -> None:
        certificate, key = self.server
        port = self.broker(
            "mtls", "",
            f'tls {{ cert_file: "{certificate}", key_file: "{key}", '
            f'ca_file: "{self.ca.certificate}", verify: true }}',
        )  # fmt: skip
        url, ca = f"tls://127.0.0.1:{port}", self.ca.certificate
        own, foreign = self.ca.sign("client", "127.0.0.1"), self.other.sign("thief", "127.0.0.1")
        self.assert_cells([
            (self.hub(url, ca=ca, certificate=own[0], key=own[1]), None),
            (self.hub(url, ca=ca), ""),
            (self.hub(url, ca=ca, certificate=foreign[0], key=foreign[1]), ""),
        ])  # fmt: skip

    def test_an_nkey(self) -> None:
        hub, thief = Key(self.folder, "hub", USER), Key(self.folder, "thief", USER)
        port = self.broker("nkey", f'authorization {{ users: [ {{ nkey: "{hub.public}" }} ] }}')
        url, ca = f"tls://127.0.0.1:{port}", self.ca.certificate

        def keys(public: Key, seed: Key) -> dict[str, pathlib.Path]:
            name = f"{public.pem.stem}-{seed.pem.stem}"
            return {
                "nkey_file": self.secret(f"{name}.pub", public.public),
                "nkey_seed_file": self.secret(f"{name}.seed", seed.seed),
            }

        self.assert_cells([
            (self.hub(url, ca=ca, **keys(hub, hub)), None),
            (self.hub(url, ca=ca, **keys(hub, thief)), "authorization"),
            (self.hub(url, ca=ca, **keys(thief, thief)), "authorization"),
        ])  # fmt: skip

    def test_a_jwt(self) -> None:
        operator, account = Key(self.folder, "op", OPERATOR), Key(self.folder, "acc", ACCOUNT)
        user, thief = Key(self.folder, "user", USER), Key(self.folder, "mallory", ACCOUNT)
        limits = dict.fromkeys(
            ("subs", "data", "payload", "imports", "exports", "conn", "leaf"), -1
        )
        of_operator = operator.sign(operator.public, "operator", {"type": "operator"})
        of_account = operator.sign(
            account.public, "account",
            {"type": "account", "limits": {**limits, "wildcards": True}},
        )  # fmt: skip
        port = self.broker(
            "jwt",
            f"operator: {self.secret('operator.jwt', of_operator)}\nresolver: MEMORY\n"
            f'resolver_preload: {{ {account.public}: "{of_account}" }}',
        )
        url, ca = f"tls://127.0.0.1:{port}", self.ca.certificate
        claims = {"type": "user", "subs": -1, "data": -1, "payload": -1}

        def credentials(name: str, signer: Key, **more: int) -> pathlib.Path:
            jwt = signer.sign(user.public, name, claims, **more)
            return self.secret(
                f"{name}.creds",
                f"-----BEGIN NATS USER JWT-----\n{jwt}\n------END NATS USER JWT------\n\n"
                f"-----BEGIN USER NKEY SEED-----\n{user.seed}\n------END USER NKEY SEED------",
            )

        self.assert_cells([
            (self.hub(url, ca=ca, credentials=credentials("good", account)), None),
            (self.hub(url, ca=ca, credentials=credentials("late", account, exp=1)),
             "authorization"),
            (self.hub(url, ca=ca, credentials=credentials("stolen", thief)), "authorization"),
            (self.hub(url, ca=ca), "authorization"),
        ])  # fmt: skip

    def test_plain_text_to_other_hosts_is_allowed_only_by_word_and_said_at_each_start(self) -> None:
        far = "nats://192.0.2.1:4222"  # of documents: no host has it
        log = self.hub(far)
        self.await_text(log, "expected tls:// to another host", "event=hub-serves")
        for _ in range(2):
            log = self.hub(far, insecure="yes")
            self.await_text(log, "event=insecure", "expected tls://")


if __name__ == "__main__":
    unittest.main()
