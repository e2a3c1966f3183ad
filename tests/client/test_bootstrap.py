"""From the addresses a user gave to the first broker that answers."""

import asyncio
import contextlib
import gc

import pytest

from barnabas.client.bootstrap import bootstrap_addresses, enter
from barnabas.client.config import ADMIN, ClientSettings, parse
from barnabas.client.dialing import Address
from barnabas.client.errors import NoBrokersAvailable
from barnabas.protocol.api import ApiKey
from tests.client._fake import CUT, FakeBroker, not_a_broker, rude, silent, tls_alert, web
from tests.client._kit import settings_for
from tests.net._kit import until


def settings(bootstrap: str, **more: object) -> ClientSettings:
    return parse(ADMIN, settings_for(bootstrap, **more))


class TestEntering:
    def test_the_first_address_that_answers_wins(self) -> None:
        async def main() -> None:
            async with FakeBroker() as broker:
                chosen = settings(f"127.0.0.1:1,{broker.address}")
                entry = await enter(bootstrap_addresses(chosen), chosen)
                assert entry.address == Address("127.0.0.1", broker.port)
                assert entry.metadata.cluster_id == "fake"
                entry.peer.close()

        asyncio.run(main())

    @pytest.mark.slow
    def test_a_dead_address_does_not_hold_up_the_next_and_its_try_is_given_up(self) -> None:
        ended = asyncio.Event()

        async def watched(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await silent(reader, writer)
            ended.set()

        async def main() -> None:
            async with not_a_broker(watched) as port, FakeBroker() as broker:
                chosen = settings(f"127.0.0.1:{port},{broker.address}")
                entry = await enter(bootstrap_addresses(chosen), chosen)
                assert entry.address.port == broker.port
                await until(ended.is_set)
                entry.peer.close()

        asyncio.run(main())

    @pytest.mark.slow
    def test_each_address_that_failed_is_named_with_its_cause(self) -> None:
        async def main() -> None:
            async with (
                not_a_broker(web) as http,
                not_a_broker(tls_alert) as tls,
                not_a_broker(rude) as closes,
                not_a_broker(silent) as says_nothing,
                FakeBroker() as broker,
            ):
                broker.responses[ApiKey.METADATA] = lambda _: CUT
                ports = (http, tls, closes, says_nothing, broker.port, 1)
                addresses = ",".join([f"127.0.0.1:{port}" for port in ports] + ["nosuch.invalid:9092"])
                chosen = settings(addresses, socket_connection_setup_timeout_ms=100)
                with pytest.raises(NoBrokersAvailable) as caught:
                    await enter(bootstrap_addresses(chosen), chosen)
            stages = [failure.stage for failure in caught.value.failures]
            assert stages == ["protocol", "TLS", "closed", "timeout", "login", "connect", "DNS"]
            text = str(caught.value)
            assert f"127.0.0.1:{http}: protocol: a web server (HTTP) answers there" in text
            assert f"127.0.0.1:{tls}: TLS: the port speaks TLS" in text
            assert f"127.0.0.1:{ports[4]}: login: the broker closed" in text
            assert "nosuch.invalid:9092: DNS: " in text

        asyncio.run(main())

    def test_one_who_stops_waiting_leaves_nothing_behind(self) -> None:
        unseen: list[object] = []

        async def main() -> None:
            asyncio.get_running_loop().set_exception_handler(lambda _, context: unseen.append(context))
            chosen = settings("127.0.0.1:1")
            for turns in range(40):
                task = asyncio.create_task(enter(bootstrap_addresses(chosen), chosen))
                for _ in range(turns):
                    await asyncio.sleep(0)
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError, NoBrokersAvailable):
                    await task
                del task
                gc.collect()

        asyncio.run(main())
        assert unseen == []

    def test_a_broker_too_old_or_too_new_for_us_says_so(self) -> None:
        async def main() -> None:
            async with FakeBroker() as broker:
                del broker.offered[ApiKey.METADATA]
                chosen = settings(broker.address)
                with pytest.raises(NoBrokersAvailable, match="offers no version of Metadata that we speak"):
                    await enter(bootstrap_addresses(chosen), chosen)

        asyncio.run(main())
