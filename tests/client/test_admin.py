"""The synchronous admin: the calls of the asynchronous one, and a life that leaves nothing behind."""

import contextlib
import gc
import inspect
import threading

import pytest

from barnabas.base.errors import ConfigFault
from barnabas.base.types import TopicPartition
from barnabas.client.admin import Admin
from barnabas.client.admin_types import OffsetSpec
from barnabas.client.aio_admin import Admin as AsyncAdmin
from barnabas.client.errors import (
    ClientClosed,
    KafkaError,
    NoBrokersAvailable,
)
from tests.client._faulty import faulty_broker
from tests.client._kit import settings_for
from tests.client._servers import ClientServer


def public(face: type) -> dict[str, inspect.Signature]:
    return {
        name: inspect.signature(member)
        for name, member in inspect.getmembers(face, inspect.isfunction)
        if not name.startswith("_") and name != "start"
    }


class TestTheTwoFaces:
    def test_they_have_the_same_calls_with_the_same_parameters_and_results(self) -> None:
        assert public(Admin) == public(AsyncAdmin)

    def test_they_say_the_same_about_each_call(self) -> None:
        for name in public(Admin).keys() - {"close"}:
            assert inspect.getdoc(getattr(Admin, name)) == inspect.getdoc(getattr(AsyncAdmin, name)), name


class TestLife:
    def test_closing_twice_is_fine_and_no_thread_is_left(self, bootstrap: str) -> None:
        before = threading.active_count()
        admin = Admin(settings_for(bootstrap))
        assert threading.active_count() == before + 1
        admin.close()
        admin.close()
        assert threading.active_count() == before

    def test_a_call_after_close_says_so(self, bootstrap: str) -> None:
        admin = Admin(settings_for(bootstrap))
        admin.close()
        with pytest.raises(ClientClosed, match="the client was closed"):
            admin.list_topics()

    def test_a_failed_start_leaves_no_thread(self) -> None:
        before = threading.active_count()
        with pytest.raises(NoBrokersAvailable, match=r"127.0.0.1:1: connect: Connection refused"):
            Admin(settings_for("127.0.0.1:1"))
        assert threading.active_count() == before

    def test_a_wrong_setting_is_named_with_the_right_one(self) -> None:
        with pytest.raises(ConfigFault, match=r"bootstrap.server: .* did you mean bootstrap.servers"):
            Admin(bootstrap_server="localhost:9092")

    def test_an_admin_that_was_forgotten_ends_its_thread(self, bootstrap: str) -> None:
        admin = Admin(settings_for(bootstrap))
        thread = admin._thread._thread
        del admin
        gc.collect()
        thread.join(10)
        assert not thread.is_alive()

    def test_threads_may_call_side_by_side(self, admin: Admin, topic: str) -> None:
        admin.create_topic(topic, 1)
        found: list[str] = []
        threads = [
            threading.Thread(target=lambda: found.append(admin.describe_topic(topic).name)) for _ in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == [topic] * 8

    def test_its_repr_says_where_it_is_connected(self, admin: Admin, bootstrap: str) -> None:
        assert repr(admin) == f"Admin({bootstrap}; open)"


@pytest.mark.slow
def test_calls_go_on_after_the_broker_restarts(own_server: ClientServer, topic: str) -> None:
    with Admin(settings_for(own_server.bootstrap_servers)) as admin:
        admin.create_topic(topic, 1)
        own_server.stop()
        own_server.start()
        assert admin.describe_topic(topic).name == topic
        assert [each.name for each in admin.list_topics()] == [topic]


@pytest.mark.slow
class TestFaults:
    """Calls that only read give their answer however the connection behaves."""

    def test_cuts_and_resets_at_any_byte_are_survived(self) -> None:
        with faulty_broker() as broker, Admin(settings_for(broker.bootstrap_servers)) as admin:
            admin.create_topic("t", 3)
            where = TopicPartition("t", 0)
            for count in (*range(0, 200, 23), *range(200, 3_000, 311)):
                broker.proxy.cut_after(count, reset=count % 2 == 0)
                with contextlib.suppress(KafkaError):
                    admin.list_groups(timeout_ms=20)
                broker.proxy.heal()
                assert len(admin.describe_topic("t").partitions) == 3
                assert admin.list_offsets({where: OffsetSpec.LATEST})[where].offset == 0

    def test_small_pieces_and_delays_change_nothing(self) -> None:
        with faulty_broker() as broker, Admin(settings_for(broker.bootstrap_servers)) as admin:
            broker.proxy.split(3)
            admin.create_topic("t", 3)
            broker.proxy.delay(2)
            assert [each.name for each in admin.list_topics()] == ["t"]

    def test_a_broker_that_falls_silent_is_given_up_and_asked_anew(self) -> None:
        settings = {"request.timeout.ms": 100, "socket.connection.setup.timeout.ms": 100}
        with faulty_broker() as broker, Admin(settings_for(broker.bootstrap_servers, **settings)) as admin:
            broker.proxy.stall()
            with pytest.raises(KafkaError) as caught:
                admin.describe_topic("t", timeout_ms=300)
            assert caught.value.retriable
            broker.proxy.heal()
            assert admin.list_topics() == []

    def test_a_refused_port_is_tried_until_it_is_back(self) -> None:
        with faulty_broker() as broker, Admin(settings_for(broker.bootstrap_servers)) as admin:
            broker.proxy.refuse()
            broker.proxy.cut()
            with pytest.raises(KafkaError) as caught:
                admin.list_topics(timeout_ms=200)
            assert caught.value.retriable
            broker.proxy.accept()
            assert admin.list_topics() == []
