"""A connection comes about with versions agreed, or fails with the stage and the cause."""

import asyncio

import pytest

from barnabas.client.config import ADMIN, ClientSettings, parse
from barnabas.client.dialing import Address, Agreed, ConnectFailure, connect
from barnabas.protocol.api import API, ApiKey
from barnabas.protocol.codes import ErrorCode
from barnabas.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from barnabas.protocol.versions import Versions
from tests.client._fake import FakeBroker, Talk, not_a_broker, rubbish, rude, silent
from tests.client._kit import settings_for


def settings(**more: object) -> ClientSettings:
    return parse(ADMIN, settings_for("unused:1", **more))


class TestAgreement:
    def test_the_newest_version_is_tried_first_and_names_the_client(self) -> None:
        async def main() -> None:
            async with FakeBroker() as broker:
                peer, agreed = await connect(Address("127.0.0.1", broker.port), settings())
                ((_, version, request),) = broker.seen
                assert version == API[ApiKey.API_VERSIONS].versions.high
                assert isinstance(request, ApiVersionsRequest)
                assert request.client_software_name == "barnabas"
                assert agreed.version_of(ApiKey.METADATA) == API[ApiKey.METADATA].versions.high
                peer.close()

        asyncio.run(main())

    @pytest.mark.parametrize("newest", [0, 1, 2, 3])
    def test_an_older_broker_is_asked_again_in_its_own_newest(self, newest: int) -> None:
        async def main() -> None:
            async with FakeBroker(api_versions_max=newest) as broker:
                peer, agreed = await connect(Address("127.0.0.1", broker.port), settings())
                assert [version for _, version, _ in broker.seen] == [4, newest]
                assert agreed.version_of(ApiKey.FETCH) is not None
                peer.close()

        asyncio.run(main())

    def test_a_broker_that_refuses_even_the_oldest_is_told_of(self) -> None:
        async def main() -> None:
            async with FakeBroker() as broker:
                broker.responses[ApiKey.API_VERSIONS] = lambda _: ApiVersionsResponse(
                    error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED
                )
                with pytest.raises(ConnectFailure, match="CLUSTER_AUTHORIZATION_FAILED") as caught:
                    await connect(Address("127.0.0.1", broker.port), settings())
                assert caught.value.failure.stage == "protocol"

        asyncio.run(main())

    @pytest.mark.parametrize(
        ("theirs", "version"),
        [((0, 99), "top"), ((0, 3), 3), ((4, 4), 4), ((99, 99), None), (None, None)],
        ids=str,
    )
    def test_the_version_is_the_top_of_what_both_speak(
        self, theirs: tuple[int, int] | None, version: int | str | None
    ) -> None:
        offered: dict[int, Versions] = {} if theirs is None else {ApiKey.METADATA: Versions(*theirs)}
        top = API[ApiKey.METADATA].versions.high
        assert Agreed(offered, {}).version_of(ApiKey.METADATA) == (top if version == "top" else version)


class TestFailures:
    def test_a_name_that_nobody_knows(self) -> None:
        with pytest.raises(ConnectFailure) as caught:
            asyncio.run(connect(Address("nosuch.invalid", 9092), settings()))
        assert caught.value.failure.stage == "DNS"
        assert caught.value.failure.address == "nosuch.invalid:9092"
        assert caught.value.retriable

    def test_a_port_that_nobody_listens_on(self) -> None:
        with pytest.raises(ConnectFailure) as caught:
            asyncio.run(connect(Address("127.0.0.1", 1), settings(), node=3))
        assert str(caught.value) == (
            "cannot use 127.0.0.1:1 (advertised by broker 3): connect: Connection refused"
        )

    @pytest.mark.parametrize(
        ("talk", "stage", "cause"),
        [
            (rubbish, "protocol", "what answers there is not a Kafka broker"),
            (rude, "closed", "the connection was closed at the first request"),
            (silent, "timeout", "the connection is open, but nothing answers on it within 50 ms"),
        ],
    )
    def test_something_that_is_no_broker(self, talk: Talk, stage: str, cause: str) -> None:
        async def main() -> None:
            async with not_a_broker(talk) as port:
                with pytest.raises(ConnectFailure) as caught:
                    await connect(Address("127.0.0.1", port), settings(socket_connection_setup_timeout_ms=50))
                assert caught.value.failure.stage == stage
                assert cause in caught.value.failure.cause

        asyncio.run(main())


def test_an_address_of_version_six_prints_in_brackets() -> None:
    assert str(Address("::1", 9092)) == "[::1]:9092"
    assert str(Address("localhost", 9092)) == "localhost:9092"
