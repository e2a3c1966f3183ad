"""What listens where no broker does is told from its first bytes."""

import asyncio
import ssl
import subprocess
from pathlib import Path

import pytest

from barnabas.client.diagnosis import what_listens_at
from barnabas.client.dialing import Address
from tests.client._fake import FakeBroker, Talk, not_a_broker, rubbish, rude, tls_alert, web


@pytest.mark.parametrize(
    ("talk", "stage", "cause"),
    [
        (web, "protocol", "a web server (HTTP) answers there"),
        (tls_alert, "TLS", "the port speaks TLS"),
        (rubbish, "protocol", "it begins with b'220 mail.example'"),
    ],
)
def test_the_first_bytes_give_it_away(talk: Talk, stage: str, cause: str) -> None:
    async def main() -> None:
        async with not_a_broker(talk) as port:
            found = await what_listens_at(Address("127.0.0.1", port))
            assert found is not None
            assert found.stage == stage
            assert cause in found.cause

    asyncio.run(main())


def test_nothing_is_said_about_what_says_nothing() -> None:
    async def main() -> None:
        async with not_a_broker(rude) as port:
            assert await what_listens_at(Address("127.0.0.1", port)) is None
        assert await what_listens_at(Address("127.0.0.1", 1)) is None

    asyncio.run(main())


def test_a_broker_that_answers_after_all_is_not_slandered() -> None:
    async def main() -> None:
        async with FakeBroker() as broker:
            assert await what_listens_at(Address("127.0.0.1", broker.port)) is None

    asyncio.run(main())


def test_a_real_tls_server_is_known_as_one(tmp_path: Path) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "cert.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]
    command += ["-nodes", "-keyout", str(key), "-out", str(certificate), "-subj", "/CN=localhost"]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip("openssl is not installed")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)

    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda *_: None)  # the server's view of the probe
        server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0, ssl=context)
        async with server:
            port = server.sockets[0].getsockname()[1]
            found = await what_listens_at(Address("127.0.0.1", port))
        assert found is not None
        assert found.stage == "TLS"

    asyncio.run(main())
